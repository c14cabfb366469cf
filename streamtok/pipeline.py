"""Source → documents → encoder → sink, and the checkpoints that let another process go on.

A group of parts goes through all stages before the next one is read, so that ids leave as soon as
they are certain, and between two groups the state of the run is four small things: the position in
the inputs, the encoder's state, the totals, and the sizes of the output files. `run` saves them now
and then. The order is what makes a crash harmless: first the ids are on the disk, then the
checkpoint says so, then complete files get their names.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ._core.documents import encode_documents
from .checkpoint import Checkpoint
from .chunker import StreamEncoder
from .sources import Feed, Part

if TYPE_CHECKING:
    from .encoding import IdArray


@dataclass
class Totals:
    """What has gone through: inputs and documents that have ended, bytes of text, ids, records
    that were skipped.
    """

    inputs: int = 0
    documents: int = 0
    bytes: int = 0
    tokens: int = 0
    skipped: int = 0


class IdSink(Protocol):
    """What takes ids and the places in them at which documents end."""

    def write(self, ids: IdArray, ends: Sequence[int] = ()) -> None: ...
    def finish(self) -> None: ...


class FileSink(IdSink, Protocol):
    """`sinks.Files`: what can be saved and published."""

    @property
    def has_complete(self) -> bool: ...
    def sync(self) -> None: ...
    def getstate(self) -> dict[str, Any]: ...
    def publish(self) -> None: ...


class DocumentEncoder:
    """Documents in parts to ids: each is a stream of its own.

    prepend, append: ids that each document begins and ends with. skip_empty: documents without
    text give nothing, not even these.
    """

    def __init__(
        self,
        stream: StreamEncoder,
        *,
        prepend: int | None = None,
        append: int | None = None,
        skip_empty: bool = False,
    ):
        self._stream = stream
        encoding = stream.encoding
        self._encoder = encoding._encoder
        self._matcher = encoding._matcher(*stream._settings[:2])
        self._has_batches = encoding._rules.normalizer is None
        self._frame = [-1 if one is None else one for one in (prepend, append)]
        self._before = np.array([] if prepend is None else [prepend], np.uint32)
        self._after = np.array([] if append is None else [append], np.uint32)
        self._has_frame = prepend is not None or append is not None
        self._skip_empty = skip_empty
        self.is_open = False  # inside a document, of which some text has come
        self.documents = 0
        self.bytes = 0

    def release(self) -> None:
        """Free what encoding has remembered; it can go on, more slowly at first."""
        self._encoder.release()

    def encode(self, parts: Sequence[Part]) -> tuple[IdArray, list[int]]:
        """(numpy.uint32 [n], ends): ids, and the places in them at which documents end.

        Raises what StreamEncoder.encode raises; offsets are those in the document.
        """
        found: list[IdArray] = []
        ends: list[int] = []
        size = start = 0  # ids found, parts done
        while start < len(parts):
            stop = start
            if self._has_batches and not self.is_open:
                while stop < len(parts) and parts[stop][1]:
                    stop += 1
            some = self._encode_documents(parts[start:stop]) if stop - start > 1 else None
            if some is None:
                stop = max(stop, start + 1)
                some = self._encode_parts(parts[start:stop])
            found.append(some[0])
            ends += [size + end for end in some[1]] if size else some[1]
            size += len(some[0])
            start = stop
        if len(found) == 1:
            return found[0], ends
        return np.concatenate(found) if found else np.empty(0, np.uint32), ends

    def _encode_documents(self, parts: Sequence[Part]) -> tuple[IdArray, list[int]] | None:
        """As `encode`, for whole documents at once; None, and nothing done, if one of them needs
        a closer look.
        """
        texts = [text for text, _ in parts if text or not self._skip_empty]
        try:
            some = encode_documents(
                self._encoder, texts, self._matcher, self._stream.errors, *self._frame
            )
        except UnicodeError:
            return None
        if some is not None:
            self.documents += len(texts)
            for text in texts:
                self.bytes += len(text) if type(text) is bytes else _utf8_length(text)
        return some

    def _encode_parts(self, parts: Sequence[Part]) -> tuple[IdArray, list[int]]:
        """As `encode`, one part after the other."""
        found: list[IdArray] = []
        last: list[int] = []  # how many of `found` there are at each end
        encode = self._stream.encode_to_numpy
        is_plain = not (self._has_frame or self._skip_empty)
        for text, is_end in parts:
            if not (is_plain or self.is_open):
                if not text and (self._skip_empty or not is_end):
                    continue
                found.append(self._before)
            found.append(encode(text, is_end))
            self.bytes += len(text) if type(text) is bytes else _utf8_length(text)
            if is_end:
                self.is_open = False
                self.documents += 1
                if not is_plain:
                    found.append(self._after)
                last.append(len(found))
            elif text:
                self.is_open = True
        if len(found) == 1:
            return found[0], [len(found[0])] if last else []
        if not found:
            return np.empty(0, np.uint32), []
        places = np.cumsum([len(ids) for ids in found])
        ends: list[int] = places[np.array(last, np.intp) - 1].tolist()
        return np.concatenate(found), ends

    def getstate(self) -> dict[str, Any]:
        """dict: all that is needed to go on, for JSON."""
        return {"open": self.is_open, "stream": base64.b64encode(self._stream.getstate()).decode()}

    def setstate(self, state: dict[str, Any]) -> None:
        """Go on where `getstate` was called. Raises StateError."""
        self._stream.setstate(base64.b64decode(state["stream"]))
        self.is_open = state["open"]


def _utf8_length(text: str | bytes) -> int:
    if isinstance(text, bytes) or text.isascii():
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))


class Run:
    """One run of the pipeline, from where it stands.

    With a checkpoint the sink must be a FileSink. `totals` moves as the run does; `has_begun` says
    whether this process has written anything.
    """

    def __init__(
        self,
        feed: Feed,
        encoder: DocumentEncoder,
        sink: IdSink,
        *,
        files: FileSink | None = None,
        checkpoint: Checkpoint | None = None,
        every: float = 5.0,
        totals: Totals | None = None,
    ):
        """files: the sink, if it has files to publish. every: seconds between checkpoints."""
        self._feed = feed
        self._encoder = encoder
        self._sink = sink
        self._files = files
        self._checkpoint = checkpoint
        self._every = every
        self._saved = time.monotonic()
        self._before = totals or Totals()
        self.totals = Totals(**asdict(self._before))
        self.has_begun = False

    @property
    def input_name(self) -> str:
        """str: the input that is read, for errors."""
        return self._feed.name

    def go(
        self,
        advance: Callable[[int, Totals], None] = lambda read, totals: None,
        stopped: type[BaseException] | tuple[type[BaseException], ...] = (),
    ) -> None:
        """Run to the end of the inputs; then all files are published.

        advance: called with the bytes read from the disk and the totals. stopped: an exception
        that is raised where the inputs wait, and is an end of them, such as that of a signal.
        """
        groups = self._feed.groups(self._encoder.is_open)
        try:
            for parts in groups:
                self._write(parts)
                self.has_begun = True
                advance(self._feed.read, self.totals)
                self._step()
        except stopped:
            self._write(self._feed.stop())
        finally:
            groups.close()  # type: ignore[attr-defined]
        self._encoder.release()  # a table of Parquet is made only now, and needs memory
        self._sink.finish()
        if self._files is not None:
            self.save(is_done=True)
            self._files.publish()
        if self._checkpoint is not None:
            self._checkpoint.remove()

    def _write(self, parts: Sequence[Part]) -> None:
        before, totals = self._before, self.totals
        if parts:
            ids, ends = self._encoder.encode(parts)
            self._sink.write(ids, ends)
            totals.tokens += len(ids)
        totals.inputs = self._feed.done
        totals.documents = before.documents + self._encoder.documents
        totals.bytes = before.bytes + self._encoder.bytes
        totals.skipped = before.skipped + self._feed.skipped

    def _step(self) -> None:
        """Between two groups: publish what is complete, and save if it is time."""
        if self._files is None:
            return
        is_due = time.monotonic() - self._saved >= self._every
        if self._files.has_complete or (self._checkpoint is not None and is_due):
            self.save()
            self._files.publish()

    def save(self, is_done: bool = False) -> None:
        """Make a checkpoint of this moment, between two groups. Costs some fsyncs.

        Raises OSError; the checkpoint before it is there then.
        """
        if self._checkpoint is None:
            return
        assert self._files is not None
        self._files.sync()
        self._checkpoint.save(
            {
                "done": is_done,
                "position": None if is_done else self._feed.position(),
                "encoder": self._encoder.getstate(),
                "files": self._files.getstate(),
                "totals": asdict(self.totals),
            }
        )
        self._saved = time.monotonic()
