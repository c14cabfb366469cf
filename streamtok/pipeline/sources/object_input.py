"""An object in a store as an input, and the choice between it and a file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ...stores.object_reader import read_blocks
from ...stores.objects import describe, read_range
from ...stores.urls import is_url
from .blocks import BLOCK_SIZE, Waiting
from .compression import START_SIZE, detect
from .inputs import ByteInput, FileInput, Opening
from .make_splitter import MakeSplitter

__all__ = ["ObjectInput", "open_input"]


class ObjectInput(ByteInput):
    """An object, plain or compressed."""

    def __init__(
        self,
        url: str,
        name: str,
        make_splitter: MakeSplitter,
        *,
        may_be_compressed: bool = True,
        block_size: int = BLOCK_SIZE,
        opening: Opening,
        waiting: Waiting = contextlib.nullcontext,
        stop: int | None = None,
    ):
        """As for FileInput. Raises OSError if the store does not tell the object's size."""
        self._about = describe(url)
        super().__init__(name, make_splitter, self._about.size, opening)
        self._url = url
        self._may_be_compressed = may_be_compressed
        self._block_size = block_size
        self._waiting = waiting
        self._stop = stop

    @property
    def may_wait(self) -> bool:
        return self.size is None

    def fingerprint(self) -> dict[str, Any]:
        return {"name": self.name, **self._about._asdict()}

    def _blocks(self, position: dict[str, Any] | None) -> Iterator[bytes]:
        at = position["at"] if position else 0
        if self.size is not None and not self._is_compressed(self.size):
            assert self._splitter is not None
            self._splitter.has_crc = False  # `fingerprint` tells whether it is the same
            self.read += at
            yield from self._counted(at)
            return
        yield from self._unpacked(self._counted(0), self._may_be_compressed, position)

    def _is_compressed(self, size: int) -> bool:
        if not self._may_be_compressed:
            return False
        return detect(read_range(self._url, 0, min(START_SIZE, size))) is not None

    def _counted(self, start: int) -> Iterator[bytes]:
        step = self._block_size
        for block in read_blocks(self._url, self._about, start, self._stop, self._waiting):
            for at in range(0, len(block), step):
                part = block[at : at + step]
                self.read += len(part)
                yield part


def open_input(
    path: str,
    name: str,
    make_splitter: MakeSplitter,
    *,
    may_be_compressed: bool = True,
    block_size: int = BLOCK_SIZE,
    opening: Opening | None = None,
    waiting: Waiting = contextlib.nullcontext,
    stop: int | None = None,
    reads_ahead: bool = False,
) -> FileInput | ObjectInput:
    """The bytes at a path, a URL, or "-" for standard input, as FileInput takes them."""
    settings: dict[str, Any] = {
        "may_be_compressed": may_be_compressed,
        "block_size": block_size,
        "opening": opening or Opening(),
        "waiting": waiting,
        "stop": stop,
    }
    if is_url(path):  # objects are read ahead in any case
        return ObjectInput(path, name, make_splitter, **settings)
    return FileInput(path, name, make_splitter, **settings, reads_ahead=reads_ahead)
