"""Chunks of what Python programs read from: iterables, files, stream readers."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any

CHUNK_SIZE = 1 << 16


def read_chunks(source: Any) -> Iterator[Any]:
    """Iterator: chunks of a file object (what it has, at most 64 KiB), or those of an iterable.

    A file is read in chunks rather than in lines: the ids are the same, and a line may be long.
    """
    read = getattr(source, "read1", None) or getattr(source, "read", None)
    if read is None:
        yield from source
        return
    while True:
        chunk = read(CHUNK_SIZE)
        if chunk is None:  # a raw file that does not block, and has nothing yet
            import select

            select.select([source], [], [])
        elif not len(chunk):
            return
        else:
            yield chunk


async def aread_chunks(source: Any) -> AsyncIterator[Any]:
    """AsyncIterator: chunks of an `asyncio.StreamReader` or another object whose `read` is
    awaited, those of an asynchronous iterable, or those of anything that `read_chunks` takes.
    """
    read = getattr(source, "read", None)
    if read is not None and inspect.iscoroutinefunction(read):
        while chunk := await read(CHUNK_SIZE):
            yield chunk
    elif hasattr(source, "__aiter__"):
        async for chunk in source:
            yield chunk
    else:
        for chunk in read_chunks(source):
            yield chunk
