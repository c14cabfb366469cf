"""Records which files `train --save-counts` has counted, and how far it has read each.

The record is kept in the trainer's notes, with the counts, so that the two cannot disagree. A file
that may have changed since is read again as far as it was counted, and must have the same checksum.
Offsets count decompressed bytes. `sources` reads and decompresses the files.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import StreamtokError
from ..pipeline.sources import FileInput, ObjectInput, Whole, open_input
from ..pipeline.sources.blocks import skip_known
from .messages import input_name, shown

if TYPE_CHECKING:
    from ..training.trainer import Trainer

BLOCK = 1 << 23  # bytes that are counted at a time
_SETTLED = 2_000_000_000  # ns; a file changed again within this time may show the same times


def open_file(name: str) -> FileInput | ObjectInput:
    """Open a file or an object as one text, decompressed. Raises OSError if it cannot be read."""
    return open_input(
        name,
        input_name(name),
        lambda name, consumed, records, crc, is_open: Whole(consumed, records, crc),
        block_size=BLOCK,
    )


def blocks_of(
    source: FileInput | ObjectInput, position: dict[str, Any] | None = None
) -> Iterator[bytes]:
    """Yield the text from `position` on, in blocks large enough for several threads."""
    parts: list[bytes] = []
    size = 0
    for group in source.groups(position, False):
        for text, *_ in group:
            assert isinstance(text, bytes)
            parts.append(text)
            size += len(text)
            if size >= BLOCK:
                yield parts[0] if len(parts) == 1 else b"".join(parts)
                parts, size = [], 0
    if size:
        yield b"".join(parts)


class CountedFiles:
    """The files in the counts of a trainer. A file that is given twice is counted twice."""

    def __init__(self, trainer: Trainer, counts: str):
        """counts: the name of the file of counts, for errors.

        Raises StreamtokError if the trainer's notes do not tell which files it has counted.
        """
        self._trainer = trainer
        self._counts = shown(counts)
        self._entries: Any = trainer.notes.setdefault("files", [])
        self._block = b""  # the block being counted, from the end of the checksum on
        try:
            total = sum(entry["at"] for entry in self._entries)
        except (TypeError, KeyError):
            total = -1
        if total != trainer.bytes_in:
            raise StreamtokError(
                f"{self._counts} does not record which files it was counted from: "
                "use another file for --save-counts"
            )

    def in_order(self, names: list[str]) -> list[tuple[str, dict[str, Any]]]:
        """Each name with the record of what was counted of it; a partly counted file comes first.

        Raises StreamtokError if the counts include a file that is not in `names`.
        """
        left = list(self._entries)
        pairs = []
        for name in names:
            path = os.path.realpath(name)
            entry = next((one for one in left if one["path"] == path), None)
            if entry is None:
                entry = {"path": path, "at": 0, "crc": 0, "is_done": False, "status": None}
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

    def blocks(self, source: FileInput | ObjectInput, entry: dict[str, Any]) -> Iterator[bytes]:
        """Yield the text that has not been counted. The caller must count each block.

        Raises StreamtokError if the counted text has changed; OSError, ArchiveError.
        """
        path, at = entry["path"], entry["at"]
        status = _status(path)
        is_same = _is_settled(entry["status"]) and entry["status"][:4] == status[:4]
        if entry["is_done"] and is_same:
            return
        if at and is_same:
            rest = blocks_of(source, {"at": at, "records": 0, "crc": entry["crc"]})
        else:
            blocks = blocks_of(source)
            rest = skip_known(blocks, at, entry["crc"], self._changed(entry))
        if entry["is_done"]:
            if next(rest, b""):
                raise self._changed(entry)
            entry["status"] = status
            return
        if not any(one is entry for one in self._entries):
            self._entries.append(entry)
        entry["status"] = status
        for block in rest:
            self._block = block
            yield block
            self.note()
        self._trainer.end_document()
        entry["is_done"] = True

    def note(self) -> None:
        """Record how far the current file has been counted, even in the middle of a block."""
        others = 0
        begun = None
        for entry in self._entries:
            if entry["is_done"]:
                others += entry["at"]
            else:
                begun = entry
        if begun is None:
            return
        taken = self._trainer.bytes_in - others
        size = taken - begun["at"]
        crc = zlib.crc32(memoryview(self._block)[:size], begun["crc"])
        begun.update(at=taken, crc=crc)  # in one step, because a signal may come at any time
        self._block = self._block[size:]

    def _changed(self, entry: dict[str, Any]) -> StreamtokError:
        return StreamtokError(
            f"{shown(entry['path'])} has changed since its first {entry['at']:,} bytes were "
            f"counted in {self._counts}: use another file for --save-counts"
        )


def _status(path: str) -> list[int]:
    """Size, modification time, change time and inode of a file, and the present time."""
    now = time.time_ns()
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, now]


def _is_settled(status: list[int] | None) -> bool:
    """Whether a file that still has this status must have the same bytes."""
    return status is not None and max(status[1:3]) + _SETTLED < status[4]
