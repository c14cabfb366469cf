"""A feed that is still being written, through naive chunking and through the exact stream.

Chunks are told at once; which of their naive ids are wrong is told when it is known.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..errors import StreamtokError
from ..views.lanes import LaneChunk, LaneRun

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["CHUNK", "LiveFeed"]

CHUNK = 1 << 10  # bytes that are taken at once, at most
_KEPT = 500  # chunks that can still be asked for
_MAX_PENDING = 1 << 20


class LiveFeed:
    """Chunks go in from one thread; any thread asks for `since`."""

    def __init__(self, encoding: Encoding) -> None:
        """Raises UnsupportedPatternError for an encoding that has no streams."""
        self._run = LaneRun(encoding, _MAX_PENDING)
        self._lock = threading.Lock()
        self._chunks: deque[LaneChunk] = deque(maxlen=_KEPT)
        self._number = 0  # of the next chunk
        self._is_done = False
        self._error = ""

    def run(self, blocks: Iterable[bytes]) -> None:
        """Take all blocks, then the end. Errors are sent to the page."""
        try:
            for block in blocks:
                for at in range(0, len(block), CHUNK):
                    self.add(block[at : at + CHUNK])
            self.add(b"", final=True)
        except (OSError, StreamtokError) as error:
            with self._lock:
                self._error = str(error)
                self._is_done = True

    def add(self, chunk: bytes, final: bool = False) -> None:
        """Take a chunk; final: the last one. Raises PendingLimitExceeded."""
        with self._lock:
            self._chunks.append(self._run.add(chunk, final))
            self._number += 1
            self._is_done = final

    def since(self, number: int, open: int) -> dict[str, Any] | None:
        """dict: the chunks from `number` on, and those from `open` on that had open ids; None: no
        news. A page asks with the number of the first chunk that it does not have, and of the first
        one that had ids which were not settled.
        """
        with self._lock:
            if number >= self._number and not self._is_done:
                return None
            first = self._number - len(self._chunks)
            rows = list(enumerate(self._chunks, first))
            return {
                "chunks": [{"number": n, **row.as_json()} for n, row in rows if n >= number],
                "skipped": max(0, first - number),
                "settled": [
                    [n, [one.is_wrong for one in row.naive]]
                    for n, row in rows
                    if open <= n < number
                ],
                "number": self._number,
                "bytes": self._run.place,
                "totals": dict(self._run.totals),
                "is_done": self._is_done,
                "error": self._error,
            }
