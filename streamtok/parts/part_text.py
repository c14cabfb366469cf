"""Opens the text of a part: bytes or rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ..pipeline.sources import FileInput, OnBad, ParquetInput, Reading
from ..pipeline.sources.open_blocks import records_before
from .bounds import FindCut, bytes_of_part, row_groups_of_part
from .ranges import Part


class PartText(NamedTuple):
    """What reads the text of a part; begin: where it begins in the input.

    source: None if there is nothing to read.
    """

    source: FileInput | ParquetInput | None
    begin: int

    @property
    def position(self) -> dict[str, Any] | None:
        """Where the source begins to read, as its `groups` takes it."""
        return {"at": self.begin, "records": 0, "crc": 0} if self.begin else None

    @property
    def seen(self) -> tuple[int, int]:
        """How many records ended in this text, and its bytes, when all was read."""
        if self.source is None:
            return 0, 0
        reached = self.source.position()
        if isinstance(self.source, ParquetInput):  # its log names row groups, which need no sums
            return 0, 0
        return reached["records"], reached["at"] - self.begin


def open_part_text(
    part: Part,
    reading: Reading,
    find_cut: Callable[[], FindCut],
    *,
    block_size: int,
    on_bad: OnBad,
) -> PartText:
    """Open the text of a part.

    find_cut: gives what finds where the text may be cut; not called for an input that is one part.
    on_bad: takes the lines and rows that are skipped, if `reading` says so. Raises OSError; as
    ParquetInput.
    """
    path = part.input.path
    if reading.parquet is not None:
        groups = row_groups_of_part(part, reading.parquet)
        return PartText(ParquetInput(path, path, reading, on_bad=on_bad, groups=groups), 0)
    is_whole = part.start == 0 and part.is_last
    begin, stop = (0, None) if is_whole else bytes_of_part(part, find_cut())
    if begin == stop and not part.is_last:
        return PartText(None, begin)
    end = reading.end

    def before() -> int:
        return records_before(path, begin, end) if end is not None else 0

    source = FileInput(
        path,
        path,
        functools.partial(reading.splitter, on_bad=on_bad, ends=part.is_last, before=before),
        may_be_compressed=is_whole and reading.unpack,
        block_size=block_size,
        stop=stop,
    )
    return PartText(source, begin)
