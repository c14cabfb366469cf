"""Opens the text of a part: plain bytes, or a stretch of what a compressed file holds."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..pipeline.sources import (
    FileInput,
    FramesInput,
    MakeSplitter,
    ObjectInput,
    Opening,
    is_compressed,
    open_input,
)
from .bounds import Cuts, bytes_of_part, stretch_of_part
from .ranges import Part

__all__ = ["PartText", "open_part_text"]


class PartText(NamedTuple):
    """What reads the text of a part; begin: where it begins in what `behind` names.

    source: None if there is nothing to read. frame: the byte of a compressed input at which the
    frame begins from which `begin` counts; 0: the beginning of the text.
    """

    source: FileInput | ObjectInput | FramesInput | None
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
    part: Part,
    cuts: Cuts | None,
    make_splitter: MakeSplitter,
    *,
    unpack: bool = True,
    block_size: int,
    opening: Opening | None = None,
) -> PartText:
    """Open the text of a part.

    cuts: where the text may be cut; not used for an input that is one part. unpack: detect
    compression. The others: as for FileInput. Raises OSError, and ArchiveError for damage between
    the part's beginning and its first cut, or its end and the first cut behind.
    """
    path = part.input.path
    opening = opening or Opening()
    if part.start == 0 and part.is_last:
        source = open_input(
            path, path, make_splitter,
            may_be_compressed=unpack, block_size=block_size, opening=opening,
        )  # fmt: skip
        return PartText(source, 0)
    assert cuts is not None
    if unpack and is_compressed(path):
        stretch = stretch_of_part(part, cuts)
        frames = FramesInput(
            path, path, make_splitter, stretch, block_size=block_size, opening=opening
        )
        return PartText(frames, stretch.skipped, part.start)
    begin, end = bytes_of_part(part, cuts)
    if begin == end and not part.is_last:
        return PartText(None, begin)
    source = open_input(
        path, path, make_splitter,
        may_be_compressed=False, block_size=block_size, opening=opening, stop=end,
    )  # fmt: skip
    return PartText(source, begin)
