"""The log of skipped records: a line of JSON for each, with file, place and reason.

It lies beside the output as OUTPUT.skipped.jsonl. It is written and published like the output, and
its length is in the same record, so it holds each skipped line once, however often the run died.
"""

from __future__ import annotations

import contextlib
import json

from ..errors import DocumentError
from ..files import PartFile, publish_left, remove_left
from .rows import Totals
from .sources import BadRecord
from .stores import places
from .stores.urls import is_url


def skip_log_path(output: str) -> str:
    """The path of the log of an output."""
    return f"{output}.skipped.jsonl"


def reasons(because: dict[str, int]) -> str:
    """Counts by reason, the most frequent first, as in "no text: 12, invalid JSON: 1"."""
    ordered = sorted(because.items(), key=lambda one: -one[1])
    return ", ".join(f"{reason}: {count:,}" for reason, count in ordered)


def check_skipped(totals: Totals, log: str | None) -> None:
    """Raise DocumentError if all records were skipped. log: names them."""
    if totals.skipped and not totals.documents:
        names = f"; {log} names them" if log else ""
        raise DocumentError(
            f"no document is left: {totals.skipped:,} lines or rows were skipped "
            f"({reasons(totals.skipped_because)}){names}"
        )


class SkipLog:
    """Counts the records that are skipped, and writes them down: call it with each of them.

    `because`: how many there were for each reason, those of earlier processes included.
    """

    def __init__(
        self,
        path: str | None = None,
        *,
        is_part: bool = False,
        is_resumable: bool = False,
    ):
        """path: the log; None: only count. is_part: all records may be skipped.

        Nothing is written before the first record comes.
        """
        self.path = path
        self._is_part = is_part
        self._is_resumable = is_resumable
        self._file: PartFile | None = None
        self.because: dict[str, int] = {}

    @property
    def skipped(self) -> int:
        """How many records were skipped."""
        return sum(self.because.values())

    def __call__(self, bad: BadRecord) -> None:
        """Take one record. Raises OSError."""
        self.because[bad.kind] = self.because.get(bad.kind, 0) + 1
        if self.path is not None:
            if self._file is None:
                self._file = self._open(False)
            row = {"file": bad.file, **bad.place, "reason": bad.reason}
            self._file.write(json.dumps(row).encode() + b"\n")

    def check_all(self, documents: int) -> None:
        """Raise DocumentError if records were skipped, and nothing is left; the log is kept."""
        if self.because and not documents and not self._is_part:
            if self._file is not None and self.path is not None:
                places.create(self.path, self._file.contents())
            totals = Totals(skipped=self.skipped, skipped_because=self.because)
            check_skipped(totals, self.path)

    def _open(self, goes_on: bool) -> PartFile:
        assert self.path is not None
        return places.open_new(self.path, is_resumable=self._is_resumable, goes_on=goes_on)

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
        if self._file is not None:
            file, self._file = self._file, None
            file.sync()
            file.close()
            file.publish()
        elif self.path is not None and not self.because:
            if not is_url(self.path):
                remove_left(self.path)
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
