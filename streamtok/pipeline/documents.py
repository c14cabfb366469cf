"""Documents in parts to ids, each document a stream of its own, on one thread or several.

What may be encoded by itself becomes a task: documents that are there as a whole, in a list or many
in one buffer (`_core/delimited.pxi`), and of a long one what is between two clean cuts
(`_core/cuts.pxi`). Before the first cut and after the last the stream of the document goes on in
between, so that its state after a group of parts is what a stream that had seen everything would
go on from. Where a task meets anything that needs repair or is an error, it gives up, and a stream
takes the text and says what it has to say.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.encode import encode_delimited, encode_documents, find_documents
from ..chunker import StreamEncoder
from ..parallel.ordered_pool import Spread
from .sources import Documents

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._types import IdArray
    from .sources import Part

    EndArray = npt.NDArray[np.int64]

TASK = 1 << 18  # characters or bytes of a task, about
TASK_DOCUMENTS = 1 << 12
STEP = 32  # documents that are looked at together
SPREAD_FROM = 1 << 17  # bytes of a part that are worth cutting


_NO_END: EndArray = np.empty(0, np.int64)


class Encoded(NamedTuple):
    """ids: numpy.uint32 [n]; ends: numpy.int64, where in them documents end; bytes: of text."""

    ids: IdArray
    ends: EndArray
    bytes: int


class DocumentEncoder:
    """Documents in parts to ids.

    prepend, append: ids that each document begins and ends with. skip_empty: documents without
    text give nothing, not even these. num_threads: that encode, the caller's among them.
    """

    def __init__(
        self,
        stream: StreamEncoder,
        *,
        prepend: int | None = None,
        append: int | None = None,
        skip_empty: bool = False,
        num_threads: int = 1,
    ):
        self._stream = stream
        self._before = np.array([] if prepend is None else [prepend], np.uint32)
        self._after = np.array([] if append is None else [append], np.uint32)
        self._frame = (-1 if prepend is None else prepend, -1 if append is None else append)
        self._skip_empty = skip_empty
        self._spread: Spread[Encoded | _Odd] = Spread(num_threads)
        encoding = stream.encoding
        self._encoder = encoding._encoder
        self._cuts = encoding._cuts
        self._matcher = stream._matcher
        self._name = ""
        self._whole: list[str | bytes] = []
        self._whole_size = 0
        self.is_open = False  # inside a document, of which some text has been added
        self.documents = 0  # that have been taken
        self.bytes = 0
        self.failed_name: str | None = None

    def release(self) -> None:
        """Free what encoding has remembered, and end all threads; it can go on, more slowly."""
        self._spread.close()
        self._encoder.release()

    def encode(self, parts: Sequence[Part]) -> tuple[IdArray, EndArray]:
        """(numpy.uint32 [n], numpy.int64): ids, and the places in them at which documents end.

        Raises what StreamEncoder.encode raises; offsets are those in the document.
        """
        self.add(parts)
        found: list[IdArray] = []
        ends: list[EndArray] = []
        size = 0
        while self.n_tasks:
            one = self.take()
            found.append(one.ids)
            ends.append(one.ends + size)
            size += len(one.ids)
        if len(found) == 1:
            return found[0], ends[0]
        return _joined(found), np.concatenate([_NO_END, *ends])

    @property
    def n_tasks(self) -> int:
        """int: how many results can be taken."""
        return len(self._spread)

    @property
    def is_ahead(self) -> bool:
        """bool: whether there is work for all threads, so that results should be taken."""
        return len(self._spread) > 2 * self._spread.num_threads

    def add(self, parts: Sequence[Part], name: str = "") -> None:
        """Begin to encode the parts; their ids come from `take`. name: for `failed_name`.

        Raises what StreamEncoder.encode raises. What was added before can still be taken.
        """
        self._name = name
        for at in range(0, len(parts), STEP):
            step = parts[at : at + STEP]
            if self.is_open or self._cuts is None or not all([one[1] is True for one in step]):
                self._add_mixed(step)
                continue
            texts = [text for text, _ in step if text or not self._skip_empty]  # type: ignore[misc]
            self._whole += texts
            self._whole_size += sum(map(len, texts))
            if self._whole_size >= TASK or len(self._whole) >= TASK_DOCUMENTS:
                self._add_whole()
        self._add_whole()

    def _add_mixed(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if isinstance(part, Documents):
                self._add_whole()
                self._add_documents(part)
                continue
            text, is_end = part
            if not is_end or self.is_open or self._cuts is None:
                self._add_whole()
                self._add_part(text, is_end)
            elif text or not self._skip_empty:
                self._whole.append(text)
                self._whole_size += len(text)

    def _add_documents(self, documents: Documents) -> None:
        """Documents in one buffer, in tasks of about one size."""
        if self._cuts is None or self.is_open:
            for text in documents.texts():
                self._add_part(text, True)
            return
        data, delimiter, count = documents
        if len(data) <= TASK + TASK // 2:
            self._add_block(documents)
            return
        at = 0
        while at < len(data):
            count, stop = find_documents(data, delimiter, at, TASK)
            self._add_block(Documents(data[at:stop], delimiter, count))
            at = stop

    def _add_block(self, documents: Documents) -> None:
        data, delimiter, count = documents
        size = len(data) - count * len(delimiter)

        def work() -> Encoded | _Odd:
            how = self._stream.errors, *self._frame, self._skip_empty
            found = encode_delimited(self._encoder, self._matcher, data, delimiter, count, *how)
            if found is not None:
                return Encoded(*found, size)
            # One of them is odd, or only what the delimiter cuts in two.
            return self._encode_list(
                [one for one in documents.texts() if one or not self._skip_empty]
            )

        self._spread.add(work, self._name)

    def take(self) -> Encoded:
        """Encoded: the next ids. `documents` and `bytes` count what has been taken.

        Raises what StreamEncoder.encode raises; then `failed_name` says where.
        """
        name = self._spread.name
        try:
            found = self._spread.take()
            if isinstance(found, _Odd):
                found = found.encode(self)
        except Exception:
            self.failed_name = name
            raise
        self.documents += len(found.ends)
        self.bytes += found.bytes
        return found

    def _add_whole(self) -> None:
        """Documents that are there as a whole."""
        texts, self._whole, self._whole_size = self._whole, [], 0
        if texts:
            self._spread.add(lambda: self._encode_list(texts), self._name)

    def _encode_list(self, texts: list[str | bytes]) -> Encoded | _Odd:
        errors = self._stream.errors
        found = encode_documents(self._encoder, self._matcher, texts, errors, *self._frame)
        if found is None:
            return _OddDocuments(texts)
        return Encoded(found[0], np.array(found[1], np.int64), found[2])

    def _add_part(self, text: str | bytes, is_end: bool) -> None:
        """A part of a document that is open, or that it opens."""
        if not self.is_open and not text and (self._skip_empty or not is_end):
            return
        if not self.is_open and len(self._before):
            self._add_ids(self._before)
        if isinstance(text, bytes) and len(text) >= SPREAD_FROM:
            text = self._add_middle(text, is_end)
        ids = self._stream.encode_to_numpy(text, is_end)
        if is_end and len(self._after):
            ids = np.concatenate([ids, self._after])
        self.is_open = not is_end
        self._spread.add_done(
            Encoded(ids, _end(ids) if is_end else _NO_END, _utf8_length(text)), self._name
        )

    def _add_middle(self, text: bytes, is_end: bool) -> bytes:
        """bytes: what is left of `text` for the stream, behind the last cut."""
        cuts, matcher, size = self._cuts, self._matcher, len(text)
        if cuts is None:
            return text
        # A special token may reach into the text, or beyond it.
        first = cuts.find(text, matcher, matcher.reach, size)
        stop = size if is_end else max(0, size - matcher.reach)
        last = cuts.find(text, matcher, first + 1, stop, True) if 0 <= first < stop else -1
        if last < 0:
            return text
        begin = self._stream.bytes_in
        ids = self._stream.encode_to_numpy(text[:first], True)
        self._spread.add_done(Encoded(ids, _NO_END, first), self._name)
        view = memoryview(text)
        at = first
        while at < last:
            end = cuts.find(text, matcher, at + TASK, last) if last - at > TASK + TASK // 2 else -1
            end = last if end < 0 else end
            self._add_stretch(view[at:end], begin + at)
            at = end
        self._stream._begin_at(begin + last)
        return text[last:]

    def _add_stretch(self, view: memoryview, offset: int) -> None:
        def work() -> Encoded | _Odd:
            try:
                ids = self._encoder.encode(view, self._matcher, self._stream.errors, "array")
            except UnicodeError:
                ids = None
            if isinstance(ids, np.ndarray):
                return Encoded(ids, _NO_END, len(view))
            return _OddStretch(bytes(view), offset)

        self._spread.add(work, self._name)

    def _add_ids(self, ids: IdArray) -> None:
        self._spread.add_done(Encoded(ids, _NO_END, 0), self._name)

    def getstate(self) -> dict[str, Any]:
        """dict: all that is needed to go on, for JSON, when everything has been taken."""
        return {"open": self.is_open, "stream": base64.b64encode(self._stream.getstate()).decode()}

    def setstate(self, state: dict[str, Any]) -> None:
        """Go on where `getstate` was called. Raises StateError."""
        self._stream.setstate(base64.b64decode(state["stream"]))
        self.is_open = state["open"]


class _Odd(ABC):
    """Text that a stream must see to, in its turn."""

    @abstractmethod
    def encode(self, owner: DocumentEncoder) -> Encoded: ...


class _OddDocuments(_Odd):
    def __init__(self, texts: Sequence[str | bytes]):
        self.texts = texts

    def encode(self, owner: DocumentEncoder) -> Encoded:
        stream = owner._stream._twin()
        found: list[IdArray] = []
        ends: list[int] = []
        size = total = 0
        before = owner.documents
        for text in self.texts:
            found += [owner._before, stream.encode_to_numpy(text, True), owner._after]
            size += sum(len(ids) for ids in found[-3:])
            ends.append(size)
            total += _utf8_length(text)
            owner.documents += 1  # so that an error can say which
        owner.documents = before
        return Encoded(_joined(found), np.array(ends, np.int64), total)


class _OddStretch(_Odd):
    def __init__(self, text: bytes, offset: int):
        self.text = text
        self.offset = offset

    def encode(self, owner: DocumentEncoder) -> Encoded:
        stream = owner._stream._twin()
        stream._begin_at(self.offset)
        return Encoded(stream.encode_to_numpy(self.text, True), _NO_END, len(self.text))


def _end(ids: IdArray) -> EndArray:
    return np.array([len(ids)], np.int64)


def _joined(found: list[IdArray]) -> IdArray:
    return np.concatenate(found) if found else np.empty(0, np.uint32)


def _utf8_length(text: str | bytes) -> int:
    if isinstance(text, bytes) or text.isascii():
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))
