"""Counts the documents of files for training, and records how far it has read each.

The record is kept in the trainer's notes, with the counts, so that the two cannot disagree. A file
that may have changed since is read again as far as it was counted, and its texts must have the same
checksum. `sources` reads the files and divides them into documents.
"""

from __future__ import annotations

import itertools
import os
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import StreamtokError
from ..files.named_errors import shown
from ..pipeline.sources import Documents, Input, Part, Reading
from ..stores.urls import is_url
from .counted_documents import DocumentCounter, batches, utf8_of

if TYPE_CHECKING:
    from ..training.trainer import Trainer

__all__ = ["CountedFiles", "count_inputs"]

_MAY_CHANGE = ("skip_bad_lines", "max_line")  # they only decide about what has not been read
_SETTLED = 2_000_000_000  # ns; a file changed again within this time may show the same times


_NOTHING = {
    "at": 0,  # bytes of text that are counted
    "crc": 0,  # of them
    "is_done": False,
    "status": None,
    "position": None,  # of the input, where counting can go on
    "skip": 0,  # bytes of text after that position that are counted
    "documents": 0,  # that have ended before it
    "is_open": False,  # whether it is inside a document
}


def count_inputs(
    trainer: Trainer,
    names: Sequence[str],
    open_input: Callable[[str], Input],
    *,
    is_split: bool,
    files: CountedFiles | None = None,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Count the documents of the inputs with these names, all of which are opened at first.

    is_split: whether an input may hold several documents. files: what is counted already, and
    takes a note of what is counted now. advance: called with the bytes that were read so far, and
    those of all inputs, 0 if unknown. Raises StreamtokError that names the input and the place of
    text that is none, and as `CountedFiles`; MemoryLimitExceeded, OSError.
    """
    pairs = [(name, {}) for name in names] if files is None else files.in_order(names)
    sources = [open_input(name) for name, _ in pairs]
    sizes = [source.size or 0 for source in sources if source.size is not None]
    total = sum(sizes) if len(sizes) == len(sources) else 0
    seen = 0
    for source, (name, entry) in zip(sources, pairs, strict=True):
        if files is not None and (source.size is None or is_url(name)):
            raise StreamtokError(f"--save-counts needs regular files: {shown(name)} is not one")
        begin = trainer.bytes_in - entry.get("at", 0)
        counter = DocumentCounter(trainer)
        if files is None:
            found = batches(source.groups(None, False))
        else:
            found = files.batches(source, entry, counter)
        try:
            for batch in found:
                counter.count(batch)
                advance(seen + source.read, total)
            trainer.end_document()
        except UnicodeError as error:
            what = counter.explain(error, source.name, None if is_split else begin)
            raise StreamtokError(what) from None
        seen += source.size or source.read
        advance(seen, total)


class _Begun(NamedTuple):
    """The batch that is being counted of an entry, and what the entry was before it."""

    entry: dict[str, Any]
    before: dict[str, Any]
    batch: list[Part]


class CountedFiles:
    """The files in the counts of a trainer. A file that is given twice is counted twice."""

    def __init__(self, trainer: Trainer, counts: str, reading: Reading):
        """counts: the name of the file of counts, for errors. reading: how its files are read.

        Raises StreamtokError if the trainer's notes do not tell which files it has counted.
        """
        self._trainer = trainer
        self._counts = shown(counts)
        self._entries: Any = trainer.notes.setdefault("files", [])
        self._check_reading(reading)
        self._begun: _Begun | None = None
        try:
            total = sum(entry["at"] for entry in self._entries)
            self._entries[:] = [{**_NOTHING, **entry} for entry in self._entries]
        except (TypeError, KeyError):
            total = -1
        if total != trainer.bytes_in:
            raise StreamtokError(
                f"{self._counts} does not record which files it was counted from: "
                "use another file for --save-counts"
            )

    def _check_reading(self, reading: Reading) -> None:
        row = reading.as_json()
        plain = Reading(errors=reading.errors).as_json()
        found = self._trainer.notes.setdefault("reading", row if not self._entries else plain)
        for name, value in row.items():
            if found.get(name) != value and name not in _MAY_CHANGE:
                option = f"--{'no-unpack' if name == 'unpack' else name.replace('_', '-')}"
                raise StreamtokError(
                    f"{self._counts} was counted with another {option}: give the same, or use "
                    "another file for --save-counts"
                )

    def in_order(self, names: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
        """Each name with the record of its counted part; a partly counted file comes first.

        Raises StreamtokError if the counts include a file that is not in `names`.
        """
        left = list(self._entries)
        pairs = []
        for name in names:
            path = os.path.realpath(name)
            entry = next((one for one in left if one["path"] == path), None)
            if entry is None:
                entry = {"path": path, **_NOTHING}
            else:
                left.remove(entry)
            pairs.append((name, entry))
        if left:
            more = f" and of {len(left) - 1} more" if len(left) > 1 else ""
            raise StreamtokError(
                f"{self._counts} also has the counts of {shown(left[0]['path'])}{more}: name all "
                "files that are counted there, or use another file for --save-counts"
            )
        return sorted(pairs, key=lambda pair: pair[1] not in self._entries or pair[1]["is_done"])

    def batches(
        self, source: Input, entry: dict[str, Any], counter: DocumentCounter
    ) -> Iterator[list[Part]]:
        """Yield the documents that have not been counted. `counter` must count each batch.

        Raises StreamtokError if the counted text has changed; OSError, ArchiveError, DocumentError.
        """
        path, at = entry["path"], entry["at"]
        status = _status(path)
        is_same = _is_settled(entry["status"]) and entry["status"][:4] == status[:4]
        if entry["is_done"] and is_same:
            return
        if is_same and entry["position"] is not None:
            counter.documents, counter.is_open = entry["documents"], entry["is_open"]
            found = batches(source.groups(entry["position"], counter.is_open))
            rest = self._skip(found, entry["skip"], None, counter, self._changed(entry))
        else:
            found = batches(source.groups(None, False))
            rest = self._skip(found, at, entry["crc"], counter, self._changed(entry))
        if entry["is_done"]:
            if any(text for batch in rest for part in batch for text, _ in _single(part)):
                raise self._changed(entry)
            entry["status"] = status
            return
        if not any(one is entry for one in self._entries):
            self._entries.append(entry)
        entry["status"] = status
        for batch in rest:
            self._begun = _Begun(entry, dict(entry), batch)
            yield batch
            self.note()
            here = {"documents": counter.documents, "is_open": counter.is_open}
            entry.update(position=source.position(), skip=0, **here)
            self._begun = None
        self._trainer.end_document()
        entry["is_done"] = True

    def _skip(
        self,
        found: Iterator[list[Part]],
        size: int,
        crc: int | None,
        counter: DocumentCounter,
        changed: StreamtokError,
    ) -> Iterator[list[Part]]:
        """Yield the batches without their first `size` bytes of text, which are counted.

        crc: of these bytes; None if they need no check. `counter` is told how far they go.
        """
        checked = 0
        rest: list[Part] = []
        while size:
            batch = next(found, None)
            if batch is None:
                raise changed
            for text, is_end in itertools.chain.from_iterable(map(_single, batch)):
                if not size:
                    rest.append((text, is_end))
                    continue
                data = utf8_of(text, self._trainer.errors)
                checked = zlib.crc32(memoryview(data)[:size], checked)
                left = data[size:]
                size -= len(data) - len(left)
                counter.is_open = bool(left) or not is_end
                counter.documents += not counter.is_open
                if left:
                    rest.append((left, is_end))
        if crc is not None and crc != checked:
            raise changed
        if not counter.is_open:
            self._trainer.end_document()
        if rest:
            yield rest
        yield from found

    def note(self) -> None:
        """Record how far the current file has been counted, even in the middle of a batch."""
        if self._begun is None:
            return
        entry, before, batch = self._begun
        taken = self._trainer.bytes_in - sum(e["at"] for e in self._entries if e is not entry)
        size = taken - before["at"]
        left, crc = size, before["crc"]
        for text, _ in itertools.chain.from_iterable(map(_single, batch)):
            if not left:
                break
            data = utf8_of(text, self._trainer.errors)
            crc = zlib.crc32(memoryview(data)[:left], crc)
            left -= min(left, len(data))
        # In one step, because a signal may come at any time.
        entry.update(before | {"at": taken, "crc": crc, "skip": before["skip"] + size})

    def _changed(self, entry: dict[str, Any]) -> StreamtokError:
        return StreamtokError(
            f"{shown(entry['path'])} has changed since its first {entry['at']:,} bytes were "
            f"counted in {self._counts}: use another file for --save-counts"
        )


def _single(part: Part) -> Sequence[tuple[str | bytes, bool]]:
    """The texts of a part, each with whether the document ends there."""
    if isinstance(part, Documents):
        return [(text, True) for text in part.texts()]
    return [part]


def _status(path: str) -> list[int]:
    """Size, modification time, change time and inode of a file, and the present time."""
    now = time.time_ns()
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, now]


def _is_settled(status: list[int] | None) -> bool:
    """Whether a file that still has this status must have the same bytes."""
    return status is not None and max(status[1:3]) + _SETTLED < status[4]
