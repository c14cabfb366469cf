"""A stretch of the text in a compressed file, read without what lies before its first frame."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from .blocks import BLOCK_SIZE, up_to
from .compression import unpack
from .inputs import ByteInput, Opening
from .make_splitter import MakeSplitter
from .open_blocks import open_blocks


class Stretch(NamedTuple):
    """A stretch of the text in a compressed file.

    start, stop: bytes of the file where frames begin; stop is None if the stretch ends with the
    text. skipped, more: bytes of the text; the stretch begins `skipped` bytes after the beginning
    of the frame at `start`, and ends `more` bytes after that of the frame at `stop`.
    """

    start: int
    skipped: int
    stop: int | None
    more: int


def text_behind(path: str, start: int, stop: int | None, size: int) -> Iterator[bytes]:
    """The text in the frames from byte `start` of a file or an object up to `stop`, or the end.

    size: bytes to read at a time. Raises OSError, and ArchiveError also if no frame ends at `stop`.
    """
    return unpack(open_blocks(path, start=start, stop=stop, size=size), path, start)


class FramesInput(ByteInput):
    """A stretch of the text in a compressed file or object.

    Positions are those after the beginning of the stretch's first frame.
    """

    def __init__(
        self,
        path: str,
        name: str,
        make_splitter: MakeSplitter,
        stretch: Stretch,
        *,
        block_size: int = BLOCK_SIZE,
        opening: Opening,
    ):
        """As for FileInput; `stretch` tells what to read."""
        super().__init__(name, make_splitter, None, opening)
        self._path = path
        self._stretch = stretch
        self._block_size = block_size

    def _blocks(self, position: dict[str, Any] | None) -> Iterator[bytes]:
        assert self._splitter is not None
        self._splitter.has_crc = False
        one, size = self._stretch, self._block_size
        texts = text_behind(self._path, one.start, one.stop, size)
        if one.stop is not None:
            behind = text_behind(self._path, one.stop, None, size)
            texts = itertools.chain(texts, up_to(behind, one.more))
        skipped = position["at"] if position else 0
        for text in texts:
            rest = text[skipped:]
            skipped -= len(text) - len(rest)
            self.read += len(rest)
            if rest:
                yield rest
