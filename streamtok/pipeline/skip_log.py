"""The log of skipped records: a line of JSON for each, with file, place and reason.

It lies beside the output as OUTPUT.skipped.jsonl. It is written and published like the output, and
its length is in the same record, so it holds each skipped line once, however often the run died.
For an output in a store it is made on this machine, and uploaded at the end.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

from ..errors import DocumentError
from ..files.part_file import PartFile, publish_left, remove_left
from ..stores import places
from ..stores.urls import is_url
from .sources import BadRecord

_LOOKED_AT = 1 << 16  # bytes of a file whose lines tell whether it is a log
_PLACES = {("line", "offset"), ("row_group", "row")}


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

        is_part: whether all records were skipped is not looked at. Nothing is written before the
        first record comes.
        """
        self.path = path
        self._limit = limit
        self._is_part = is_part
        self.lines_before: Callable[[], int] = lambda: 0  # of the part, for messages
        self._is_resumable = is_resumable
        self._file: PartFile | None = None
        self.because: dict[str, int] = {}

    @property
    def skipped(self) -> int:
        """How many records were skipped."""
        return sum(self.because.values())

    def add(self, bad: BadRecord, lines: int = 0) -> None:
        """Take one record. lines: how many come before those that it counts.

        Raises DocumentError if it is one too many, OSError.
        """
        self.because[bad.kind] = self.because.get(bad.kind, 0) + 1
        place = dict(bad.place)
        if "line" in place:
            place["line"] += lines
        if self.path is not None:
            if self._file is None:
                self._file = self._open(False)
            row = {"file": bad.file, **place, "reason": bad.reason}
            self._file.write(json.dumps(row).encode() + b"\n")
        if self._limit is not None and self.skipped > self._limit:
            kept = self._keep()
            if "line" in place:
                place["line"] += self.lines_before()
            raise DocumentError(
                f"{_where(bad.file, place)}: {bad.reason}; it is bad line number "
                f"{self.skipped:,}, and --max-bad-lines allows {self._limit:,} "
                f"({reasons(self.because)}){kept}"
            )

    __call__ = add

    def has_all(self, documents: int) -> bool:
        """Whether records were skipped, and nothing is left."""
        return bool(self.because) and not documents and not self._is_part

    def nothing_left(self) -> DocumentError:
        """The exception for a run that has skipped everything; the log is kept."""
        kept = self._keep()
        return DocumentError(
            f"nothing was encoded: {self.skipped:,} lines or rows were skipped "
            f"({reasons(self.because)}){kept}"
        )

    def _open(self, goes_on: bool) -> PartFile:
        assert self.path is not None
        return places.open_new(self.path, is_resumable=self._is_resumable, goes_on=goes_on)

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

    @property
    def size(self) -> int | None:
        """Bytes of the log; None if there is none."""
        return None if self._file is None else self._file.size

    def go_on(self, because: dict[str, int], size: int | None) -> None:
        """Continue from a row of the run's record. Raises OSError, CheckpointError."""
        self.because = dict(because)
        if size is not None and self.path is not None:
            self._file = self._open(True)
            self._file.cut_back(size, ())

    def finish(self) -> list[tuple[str, int]]:
        """The name and the size of what is left to publish."""
        if self._file is None or self.path is None:
            return []
        self._file.sync()
        return [(self.path, self._file.size)]

    def publish_left(self, done: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """Publish a log that an earlier process has finished; return the other files of `done`."""
        for name, size in done:
            if name == self.path:
                publish_left(name, size)
        return [one for one in done if one[0] != self.path]

    def publish(self) -> None:
        """Give the log its name. Without skipped records, remove that of an earlier run."""
        if self.path is None:
            return
        if self._file is not None:
            file, self._file = self._file, None
            file.sync()
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


def _where(file: str, place: dict[str, int]) -> str:
    if "line" in place:
        return f"{file} line {place['line']}"
    return f"{file} row group {place['row_group']} row {place['row']}"


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
