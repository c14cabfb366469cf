"""The log of skipped records: a line of JSON for each, with file, place and reason.

It lies beside the output as OUTPUT.skipped.jsonl. It is written and published like the output, and
its size is in the same checkpoint, so it holds each skipped record once, however often the run
died. For an output in a store it is made on this machine, and uploaded at the end.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

from ..errors import DocumentError
from ..files.part_file import PartFile, Saved, publish_left, remove_left
from ..stores import places
from ..stores.urls import is_url
from .sources import BadRecord

_LOOKED_AT = 1 << 16  # bytes of a file whose lines tell whether it is a log
_PLACES = {("line", "offset"), ("line_in_part", "offset_in_part"), ("row_group", "row")}


def skip_log_path(output: str) -> str:
    """The path of the log of an output."""
    return f"{output}.skipped.jsonl"


def reasons(because: dict[str, int]) -> str:
    """Counts by reason, the most frequent first, as in "no text: 12, invalid JSON: 1"."""
    ordered = sorted(because.items(), key=lambda one: -one[1])
    return ", ".join(f"{reason}: {count:,}" for reason, count in ordered)


class SkipLog:
    """Counts the records that are skipped, and writes them down: call it with each of them.

    `because`: how many there were for each reason, those of earlier processes included.
    """

    def __init__(
        self,
        path: str | None = None,
        *,
        limit: int | None = None,
        is_part: bool = False,
        is_resumable: bool = False,
    ):
        """path: the log; None: only count. limit: records that may be skipped.

        is_part: a part of an input is read, from byte `begin` of its text on, and the log names
        lines and bytes of the part. Nothing is written before the first record comes.
        """
        self.path = path
        self._limit = limit
        self._is_part = is_part
        self.begin = 0
        self._is_resumable = is_resumable
        self._file: PartFile | None = None
        self.published: Saved | None = None  # the size and the digest of the log, if there is one
        self.because: dict[str, int] = {}

    @property
    def skipped(self) -> int:
        """How many records were skipped."""
        return sum(self.because.values())

    def __call__(self, bad: BadRecord) -> None:
        """Take one record. Raises DocumentError if it is one too many, OSError."""
        self.because[bad.kind] = self.because.get(bad.kind, 0) + 1
        if self.path is not None:
            if self._file is None:
                self._file = self._open(None)
            place = bad.place
            if self._is_part and "line" in place:
                offset = place["offset"] - self.begin
                place = {"line_in_part": place["line"], "offset_in_part": offset}
            row = {"file": bad.file, **place, "reason": bad.reason}
            self._file.write(json.dumps(row).encode() + b"\n")
        if self._limit is not None and self.skipped > self._limit:
            kept = self._keep()
            raise DocumentError(
                f"{bad.where()}: {bad.reason}; it is bad line number {self.skipped:,}, and "
                f"--max-bad-lines allows {self._limit:,} ({reasons(self.because)}){kept}"
            )

    def has_all(self, documents: int) -> bool:
        """Whether records were skipped, and nothing is left. Never of a part."""
        return bool(self.because) and not documents and not self._is_part

    def nothing_left(self) -> DocumentError:
        """The exception for a run that has skipped everything; the log is kept."""
        kept = self._keep()
        return DocumentError(
            f"nothing was encoded: {self.skipped:,} lines or rows were skipped "
            f"({reasons(self.because)}){kept}"
        )

    def _open(self, saved: Saved | None) -> PartFile:
        assert self.path is not None
        how = {"is_resumable": self._is_resumable, "saved": saved, "hashed_from": 0}
        return places.open_new(self.path, **how)  # type: ignore[arg-type]

    def _keep(self) -> str:
        """Copy the log to its place although the run fails; return words that say so."""
        if self._file is None or self.path is None:
            return ""
        places.create(self.path, self._file.contents())
        return f"; {self.path} names them"

    def sync(self) -> None:
        """Wait until all is on the disk."""
        if self._file is not None:
            self._file.sync()

    def getstate(self) -> dict[str, Any]:
        """The state to save after `sync`, as JSON values."""
        saved = None if self._file is None else self._file.saved()
        return {"file": saved, "because": self.because}

    def setstate(self, state: dict[str, Any], is_done: bool) -> None:
        """Continue from a state of `getstate`; is_done: the run had only to publish its files.

        Raises OSError, CheckpointError.
        """
        self.because = dict(state["because"])
        if state["file"] is None or self.path is None:
            return
        if is_done:
            publish_left(self.path, state["file"])
        else:
            self._file = self._open(state["file"])

    def publish(self) -> None:
        """Give the log its name. Without skipped records, remove that of an earlier run."""
        if self.path is None:
            return
        if self._file is not None:
            file, self._file = self._file, None
            file.sync()
            self.published = file.saved()
            file.close()
            file.publish()
        elif not self.because:
            if not is_url(self.path):
                remove_left(self.path)
            if is_skip_log(self.path):
                with contextlib.suppress(FileNotFoundError):
                    places.remove(self.path)

    def close(self) -> None:
        """Close the hidden file, and leave it for a later process."""
        if self._file is not None:
            self._file.close()

    def discard(self) -> None:
        """Remove the hidden file; does nothing after `publish`."""
        if self._file is not None:
            self._file.discard()


def is_skip_log(path: str) -> bool:
    """Whether the file is a log that we wrote: every line that is looked at is as ours are."""
    try:
        head = places.read_head(path, _LOOKED_AT)
    except OSError:
        return False
    *lines, rest = head.split(b"\n")
    is_whole = not rest or len(head) == _LOOKED_AT
    return is_whole and bool(lines) and all(map(_is_row, lines))


def _is_row(line: bytes) -> bool:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    if not isinstance(row, dict) or json.dumps(row).encode() != line:
        return False
    first, *place, last = row if len(row) > 2 else ("", "")
    kinds = [str, *(int for _ in place), str]
    return (
        (first, last) == ("file", "reason")
        and tuple(place) in _PLACES
        and list(map(type, row.values())) == kinds
    )
