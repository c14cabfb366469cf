"""The bytes of whatever can be read: a file, a pipe, an object in a store, standard input."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from ...files import naming
from ..stores import places
from ..stores.object_reader import read_blocks
from ..stores.objects import Stored, describe
from ..stores.urls import is_url
from .blocks import BLOCK_SIZE, STDIN, Waiting, read_descriptor, up_to
from .compression import START_SIZE, detect


def open_blocks(
    place: str,
    name: str | None = None,
    *,
    start: int = 0,
    stop: int | None = None,
    size: int = BLOCK_SIZE,
    waiting: Waiting = contextlib.nullcontext,
    about: Stored | None = None,
    on_open: Callable[[int], None] = lambda fd: None,
) -> Iterator[bytes]:
    """Yield the bytes start:stop of what is at a place, at most `size` at a time, as they arrive.

    place: a path, a URL, or "-" for standard input; only files and objects begin elsewhere than at
    their beginning. name: for errors, `place` by default. Waits inside `waiting()`. about: what
    `describe` said of the object before. on_open: called with the descriptor of a file or a pipe,
    which is closed when the generator is. Raises OSError.
    """
    name = place if name is None else name
    if is_url(place):
        about = describe(place) if about is None else about
        for block in read_blocks(place, about, start, stop, waiting):
            for at in range(0, len(block), size):
                yield block[at : at + size]
        return
    with contextlib.ExitStack() as stack:
        fd = STDIN
        if place != "-":
            with waiting():  # opening a FIFO waits for its writer
                fd = os.open(place, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            stack.callback(os.close, fd)
            stack.enter_context(naming(name))
        on_open(fd)
        if start:
            os.lseek(fd, start, os.SEEK_SET)
        blocks = read_descriptor(fd, name, size, waiting)
        stack.enter_context(contextlib.closing(blocks))  # type: ignore[type-var]  # a generator
        yield from blocks if stop is None else up_to(blocks, stop - start)


def is_compressed(place: str) -> bool:
    """Whether a file or an object begins as compressed data does. Raises OSError."""
    return detect(places.read_head(place, START_SIZE)) is not None
