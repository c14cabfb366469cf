"""Encodes documents that arrive in parts, each as a stream of its own, on one or more threads.

Text that can be encoded independently becomes a task: a list of whole documents, a buffer of many
documents (`_core/texts/delimited.pxi`), or the segment of a long document between two clean cuts
(`_core/scan/cuts.pxi`). The stream encodes only the text before the first cut and after the last
one, yet its state after a group of parts is the same as if it had encoded all of them.

A task gives up on text that is invalid or not allowed. A stream then encodes that text in order,
and repairs it or raises the error.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from .._core.encode import (
    ARRAY,
    WorkList,
    encode_delimited,
    find_documents,
    utf8_size,
)
from ..chunker import StreamEncoder
from ..errors import DisallowedSpecialError, PendingLimitExceeded, StreamtokError
from .ordered_pool import OrderedPool
from .sources.records import Positions
from .sources.splitters import Documents

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._types import IdArray
    from .sources.conversations import Conversations
    from .sources.splitters import Part

    EndArray = npt.NDArray[np.int64]

TASK = 1 << 18  # approximate characters or bytes per task
SPREAD_FROM = 1 << 17  # bytes; a shorter part is not worth splitting among threads
_AHEAD = 6  # queued results per thread; a part adds up to three, and only one of them is slow

_NO_END: EndArray = np.empty(0, np.int64)


class Encoded(NamedTuple):
    """Encoded text. ids: uint32 [n]. ends: int64, the indexes in `ids` where documents end.

    bytes: size of the text. mask: only for conversations, one byte per id, which is 1 if the
    assistant wrote the id, else 0.
    """

    ids: IdArray
    ends: EndArray
    bytes: int
    mask: Any = None


Result: TypeAlias = "Encoded | Callable[[], Encoded]"
"""A task's result, or a function that encodes, in order, text that the task could not encode."""


_NOWHERE = Positions(lambda number: "")


class DocumentEncoder:
    """Encodes documents that arrive in parts.

    prepend, append: ids to put before and after each document; with several ids on one side,
    documents are encoded one at a time. skip_empty: emit nothing for empty documents, not even the
    ids of `prepend` and `append`. num_threads: number of encoding threads, including the caller's.
    conversations: the chat template, if the documents are conversations.
    """

    def __init__(
        self,
        stream: StreamEncoder,
        *,
        prepend: int | Sequence[int] | None = None,
        append: int | Sequence[int] | None = None,
        skip_empty: bool = False,
        num_threads: int = 1,
        conversations: Conversations | None = None,
    ):
        self._stream = stream
        self._conversations = conversations
        self._before, self._after = _ids(prepend), _ids(append)
        self._frame = _first(self._before), _first(self._after)
        self._skip_empty = skip_empty
        # The owner of a task: the positions of its group of parts, and the index of its document
        # (None if it has several).
        self._pool: OrderedPool[Result, tuple[Positions, int | None]]
        self._pool = OrderedPool(num_threads)
        encoding = stream.encoding
        self._encoder = encoding.definition.encoder
        has_simple_frame = max(len(self._before), len(self._after)) < 2
        self._matcher = stream.matcher
        texts = encoding.definition.texts
        # Whether whole documents can become tasks.
        self._takes_whole = has_simple_frame and texts.is_direct and conversations is None
        self._rules = encoding.definition.engine.rules(self._matcher)
        self._cuts = texts.cuts if has_simple_frame else None
        self._positions = _NOWHERE  # of the documents in the group of parts added last
        self._index = 0  # of the open document in that group, or else of the next one
        self._refused: int | None = None  # index of the document that failed in a task of several
        self.is_open = False  # a document has begun and not ended
        self.documents = 0  # in the results taken so far
        self.bytes = 0  # in the results taken so far
        self.failed_position: str | None = None  # of the document that could not be encoded

    def release(self) -> None:
        """Free the caches and end all threads.

        The encoder can still be used, but is slower at first.
        """
        self._pool.close()
        self._encoder.release()

    def encode(
        self, parts: Sequence[Part], positions: Positions = _NOWHERE
    ) -> tuple[IdArray, EndArray]:
        """Encode the parts; return their ids (uint32) and the indexes where documents end (int64).

        Raises the errors of StreamEncoder.encode, with offsets relative to the document.
        """
        self.add(parts, positions)
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
        """Number of results to take."""
        return len(self._pool)

    @property
    def is_ahead(self) -> bool:
        """Whether a result should be taken now: one is ready, or all threads have enough work."""
        n = self._pool.num_threads
        return self._pool.is_first_done or len(self._pool) > (_AHEAD * n if n > 1 else 2)

    def add(self, parts: Sequence[Part], positions: Positions = _NOWHERE) -> None:
        """Start to encode the parts; `take` returns their ids.

        positions: names the documents, for `failed_position`.

        Raises the errors of StreamEncoder.encode; the results of earlier parts can still be taken
        afterwards.
        """
        self._positions = positions
        self._index = 0
        whole: list[str | bytes] = []
        size = 0
        for part in parts:
            is_whole = (
                self._takes_whole
                and not isinstance(part, Documents)
                and part[1]
                and not self.is_open
            )
            if is_whole:
                self._index += 1
                whole.append(part[0])  # type: ignore[arg-type]
                size += len(part[0])
                if size < TASK:
                    continue
            self._add_whole(whole)
            whole, size = [], 0
            if isinstance(part, Documents):
                self._add_documents(part)
            elif not is_whole:
                self._add_part(*part)
        self._add_whole(whole)

    def _add_documents(self, documents: Documents) -> None:
        """Submit the documents of one buffer in tasks of about equal size."""
        if not self._takes_whole or self.is_open:
            for text in documents.texts():
                self._add_part(text, True)
            return
        data, delimiter, count = documents
        if len(data) <= TASK + TASK // 2:
            self._add_block(documents, self._index)
            self._index += count
            return
        at = 0
        while at < len(data):
            count, stop = find_documents(data, delimiter, at, TASK)
            self._add_block(Documents(data[at:stop], delimiter, count), self._index)
            self._index += count
            at = stop

    def _add_block(self, documents: Documents, first: int) -> None:
        data, delimiter, count = documents
        size = len(data) - count * len(delimiter)

        def work() -> Result:
            how = self._stream.errors, *self._frame, self._skip_empty
            try:
                found = encode_delimited(self._encoder, self._rules, data, delimiter, count, *how)
            except ValueError:  # a document must be repaired or refused
                return self._encode_list(documents.texts(), first)
            return Encoded(*found, size)

        self._pool.add(work, (self._positions, None))

    def take(self) -> Encoded:
        """Wait for the next result, count it in `documents` and `bytes`, and return it.

        Raises the errors of StreamEncoder.encode; `failed_position` then names the document.
        """
        positions, index = self._pool.owner
        try:
            found = self._pool.take()
            if not isinstance(found, Encoded):
                found = found()
        except Exception:
            index = self._refused if index is None else index
            self.failed_position = None if index is None else positions.name(index)
            raise
        self.documents += len(found.ends)
        self.bytes += found.bytes
        return found

    def _add_whole(self, texts: list[str | bytes]) -> None:
        """Submit the whole documents before the next one as one task."""
        if texts:
            first = self._index - len(texts)
            self._pool.add(lambda: self._encode_list(texts, first), (self._positions, None))

    def _encode_list(self, texts: list[Any], first: int) -> Result:
        kept = [one for one in texts if one] if self._skip_empty else texts
        how = self._stream.errors, ARRAY, 1, (TASK, TASK), None
        work = WorkList(self._encoder, self._rules, kept, *how, *self._frame)
        work.work()
        try:
            return Encoded(*work.flat())
        except ValueError:
            return lambda: self._encode_in_order(texts, first)

    def _encode_in_order(self, texts: list[Any], first: int) -> Encoded:
        stream = self._stream.twin()
        found: list[IdArray] = []
        ends: list[int] = []
        size = total = 0
        before = self.documents
        for self._refused, text in enumerate(texts, first):
            if self._skip_empty and not text:
                continue
            found += [self._before, stream.encode_to_numpy(text, True), self._after]
            size += sum(len(ids) for ids in found[-3:])
            ends.append(size)
            total += _utf8_length(text)
            self.documents += 1  # after an error, the number of documents before it
        self.documents = before
        self._refused = None
        return Encoded(_joined(found), np.array(ends, np.int64), total)

    def _add_part(self, text: str | bytes, is_end: bool) -> None:
        """Encode a part of the open document, or of a new one if none is open."""
        try:
            if self._conversations is None:
                self._encode_part(text, is_end)
            else:
                self._encode_conversation(text, self._conversations)
        except Exception:
            self.failed_position = self._positions.name(self._index)
            raise
        self._index += is_end

    def _encode_conversation(self, conversation: Any, conversations: Conversations) -> None:
        text = str(conversation.prompt)
        if self._skip_empty and not text:
            return
        ids, mask = conversations.template.encode_with_mask(conversation)
        ids = np.concatenate([self._before, ids, self._after])
        frame = bytes(len(self._before)), bytes(len(self._after))
        found = Encoded(ids, _end(ids), utf8_size(text), mask.tobytes().join(frame))
        self._pool.add_done(found, (self._positions, self._index))

    def _encode_part(self, text: str | bytes, is_end: bool) -> None:
        if not self.is_open and not text and (self._skip_empty or not is_end):
            return
        if not self.is_open and len(self._before):
            self._add_ids(self._before)
        is_worth_it = self._pool.num_threads > 1 and len(text) >= SPREAD_FROM
        if is_worth_it and isinstance(text, bytes):
            text = self._add_middle(text, is_end)
        ids = self._stream.encode_to_numpy(text, is_end)
        if is_end and len(self._after):
            ids = np.concatenate([ids, self._after])
        self.is_open = not is_end
        self._add_ids(ids, _end(ids) if is_end else _NO_END, _utf8_length(text))

    def _add_middle(self, text: bytes, is_end: bool) -> bytes:
        """Encode the text up to its last clean cut, mostly in tasks.

        Returns the text that remains, which the stream must encode.
        """
        cuts, matcher, size = self._cuts, self._matcher, len(text)
        if cuts is None:
            return text
        # A special token may begin before this text or end after it.
        first = cuts.find(text, matcher, matcher.reach, size)
        stop = size if is_end else max(0, size - matcher.reach)
        last = cuts.find(text, matcher, first + 1, stop, True) if 0 <= first < stop else -1
        if last < 0:
            return text
        begin = self._stream.bytes_in
        self._add_ids(self._stream.encode_to_numpy(text[:first], True), size=first)
        view = memoryview(text)
        at = first
        while at < last:
            end = cuts.find(text, matcher, at + TASK, last) if last - at > TASK + TASK // 2 else -1
            end = last if end < 0 else end
            self._add_segment(view[at:end], begin + at)
            at = end
        self._stream.begin_at(begin + last)
        return text[last:]

    def _add_segment(self, view: memoryview, offset: int) -> None:
        def work() -> Result:
            try:
                ids = self._encoder.encode(view, self._rules, self._stream.errors, ARRAY)
            except ValueError:  # invalid UTF-8 or a disallowed special token
                text = bytes(view)
                return lambda: self._encode_segment(text, offset)
            return Encoded(ids, _NO_END, len(view))

        self._pool.add(work, (self._positions, self._index))

    def _encode_segment(self, text: bytes, offset: int) -> Encoded:
        stream = self._stream.twin()
        stream.begin_at(offset)
        return Encoded(stream.encode_to_numpy(text, True), _NO_END, len(text))

    def _add_ids(self, ids: IdArray, ends: EndArray = _NO_END, size: int = 0) -> None:
        self._pool.add_done(Encoded(ids, ends, size), (self._positions, self._index))

    def begin(self) -> None:
        """Abandon the open document, if there is one. All results must have been taken."""
        self.is_open = False
        self._stream.reset()

    def begin_inside(self, offset: int) -> None:
        """Continue inside a document, after a clean cut at its byte `offset`."""
        self.is_open = True
        self._stream.begin_at(offset)

    def end_segment(self) -> None:
        """Encode the pending bytes of the open document, if there is one; it stays open.

        The text must have a clean cut at this position.
        """
        if self.is_open:
            self._add_ids(self._stream.encode_to_numpy(b"", True))

    def getstate(self) -> dict[str, Any]:
        """Return the state to continue from, as JSON values. All results must have been taken."""
        return {
            "open": self.is_open,
            "stream": base64.b64encode(self._stream.getstate()).decode(),
            "policy": self._stream.policy(),
        }

    def setstate(self, state: dict[str, Any]) -> None:
        """Continue from a state that `getstate` returned.

        The encoder that saved it may have treated special tokens and invalid UTF-8 differently.
        Raises StateError if the state is damaged or belongs to a different encoding.
        """
        self._stream.setstate_of(base64.b64decode(state["stream"]), state["policy"])
        self.is_open = state["open"]


def explain(error: Exception, where: str) -> str:
    """Return the message of an error, with the command's options that would accept the text.

    where: the document or input, with which the message begins unless the error already names it.
    """
    what = str(error).partition("\n")[0].rstrip(".")
    if isinstance(error, UnicodeDecodeError):
        what = (
            f"byte {error.start} is not UTF-8 ({error.reason}); "
            "--errors replace or --errors surrogateescape accepts it"
        )
    elif isinstance(error, PendingLimitExceeded):
        what = f"{error} (--max-pending)"
    elif isinstance(error, DisallowedSpecialError):
        what += "; --special plain takes it as text, --special allow as one token"
    elif isinstance(error, StreamtokError):
        return str(error)
    return f"{where}: {what}" if where else what


def _ids(given: int | Sequence[int] | None) -> IdArray:
    listed = [] if given is None else [given] if isinstance(given, int) else given
    return np.array(listed, np.uint32)


def _first(ids: IdArray) -> int:
    """The only id, for the core; -1 if there is none."""
    return int(ids[0]) if len(ids) else -1


def _end(ids: IdArray) -> EndArray:
    return np.array([len(ids)], np.int64)


def _joined(found: list[IdArray]) -> IdArray:
    return np.concatenate(found) if found else np.empty(0, np.uint32)


def _utf8_length(text: str | bytes) -> int:
    return len(text) if isinstance(text, bytes) else utf8_size(text)
