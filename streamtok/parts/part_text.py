"""Opens the text of a part: bytes, a stretch of what a compressed file holds, or rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..pipeline.sources import (
    FileInput,
    FramesInput,
    ObjectInput,
    Opening,
    ParquetInput,
    Reading,
    is_compressed,
    open_input,
)
from .bounds import Cuts, bytes_of_part, row_groups_of_part, stretch_of_part
from .ranges import Part

__all__ = ["PartText", "open_part_text"]


class PartText(NamedTuple):
    """What reads the text of a part; begin: where it begins in what `behind` names.

    source: None if there is nothing to read. frame: the byte of a compressed input at which the
    frame begins from which `begin` counts; 0: the beginning of the text.
    """

    source: FileInput | ObjectInput | FramesInput | ParquetInput | None
    begin: int
    frame: int = 0

    @property
    def position(self) -> dict[str, Any] | None:
        """Where the source begins to read, as its `groups` takes it."""
        return {"at": self.begin, "records": 0, "crc": 0} if self.begin else None

    @property
    def behind(self) -> str:
        """What offsets in this text count from, for errors; "" for the beginning of the text."""
        return f" behind the frame at byte {self.frame}" if self.frame else ""


def open_part_text(
    part: Part, reading: Reading, cuts: Callable[[], Cuts], *, block_size: int
) -> PartText:
    """Open the text of a part.

    cuts: gives where the text may be cut; not called for an input that is one part. Raises OSError,
    ArchiveError for damage between the part's beginning and its first cut, or its end and the
    first cut after it; as ParquetInput.
    """
    path = part.input.path
    if reading.parquet is not None:
        column, groups = reading.parquet, row_groups_of_part(part, reading.parquet)
        rows = ParquetInput(path, path, column, skip_bad=reading.skip_bad_lines, groups=groups)
        return PartText(rows, 0)
    make_splitter = reading.splitter_maker(part.is_last)
    opening = Opening(reading.strip_bom and reading.jsonl is None)
    if part.start == 0 and part.is_last:
        source = open_input(
            path, path, make_splitter,
            may_be_compressed=reading.unpack, block_size=block_size, opening=opening,
        )  # fmt: skip
        return PartText(source, 0)
    if reading.unpack and is_compressed(path):
        stretch = stretch_of_part(part, cuts())
        frames = FramesInput(
            path, path, make_splitter, stretch, block_size=block_size, opening=opening
        )
        return PartText(frames, stretch.skipped, part.start)
    begin, end = bytes_of_part(part, cuts())
    if begin == end and not part.is_last:
        return PartText(None, begin)
    source = open_input(
        path, path, make_splitter,
        may_be_compressed=False, block_size=block_size, opening=opening, stop=end,
    )  # fmt: skip
    return PartText(source, begin)
