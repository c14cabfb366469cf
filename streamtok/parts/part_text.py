"""Opens the text of a part: bytes, a stretch of a compressed file's text, or rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ..pipeline.sources import (
    FileInput,
    FramesInput,
    MakeSplitter,
    OnBad,
    ParquetInput,
    Reading,
    Stretch,
    is_compressed,
    open_blocks,
)
from .bounds import Cuts, bytes_of_part, row_groups_of_part, stretch_of_part
from .ranges import Part

_BLOCK = 1 << 20  # bytes


class PartText(NamedTuple):
    """What reads the text of a part; begin: where it begins in what `behind` names.

    source: None if there is nothing to read. frame: the byte of a compressed input at which the
    frame begins from which `begin` counts; 0: the beginning of the text.
    """

    source: FileInput | FramesInput | ParquetInput | None
    begin: int
    frame: int = 0

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

    @property
    def behind(self) -> str:
        """The origin of offsets in errors; "" for the beginning of the text."""
        return f" after the frame at byte {self.frame}" if self.frame else ""


def open_part_text(
    part: Part,
    reading: Reading,
    cuts: Callable[[], Cuts],
    *,
    block_size: int,
    on_bad: OnBad,
) -> PartText:
    """Open the text of a part.

    cuts: gives where the text may be cut; not called for an input that is one part. on_bad: takes
    the lines and rows that are skipped, if `reading` says so. Raises OSError, ArchiveError for
    damage between the part's beginning and its first cut, or its end and the first cut after it; as
    ParquetInput.
    """
    path = part.input.path
    if reading.parquet is not None:
        groups = row_groups_of_part(part, reading.parquet)
        return PartText(ParquetInput(path, path, reading, on_bad=on_bad, groups=groups), 0)
    opened: list[PartText] = []
    end = reading.end

    def before() -> int:
        return records_before(part, opened[0], end) if end is not None else 0

    make = functools.partial(reading.splitter, on_bad=on_bad, ends=part.is_last, before=before)
    opened.append(_open(part, reading, cuts, make, block_size))
    return opened[0]


def _open(
    part: Part,
    reading: Reading,
    cuts: Callable[[], Cuts],
    make_splitter: MakeSplitter,
    block_size: int,
) -> PartText:
    path = part.input.path
    is_whole = part.start == 0 and part.is_last
    if not is_whole and reading.unpack and is_compressed(path):
        stretch = stretch_of_part(part, cuts())
        frames = FramesInput(path, make_splitter, stretch, block_size)
        return PartText(frames, stretch.skipped, part.start)
    begin, end = (0, None) if is_whole else bytes_of_part(part, cuts())
    if begin == end and not part.is_last:
        return PartText(None, begin)
    source = FileInput(
        path, path, make_splitter,
        may_be_compressed=is_whole and reading.unpack, block_size=block_size, stop=end,
    )  # fmt: skip
    return PartText(source, begin)


def records_before(part: Part, text: PartText, end: bytes) -> int:
    """How many records of the input end before this text, each with `end`. Reads what is there."""
    path = part.input.path
    if part.start and text.frame:
        blocks = Stretch(0, 0, text.frame, text.begin).blocks(path, _BLOCK)
    else:
        blocks = open_blocks(path, stop=text.begin, size=_BLOCK)
    count, held = 0, b""
    for block in blocks:
        data = held + block
        count += data.count(end)
        held = data[len(data) - len(end) + 1 :] if len(end) > 1 else b""
    return count
