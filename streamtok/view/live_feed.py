"""A feed that is still being written, through naive chunking and through the exact stream.

Whether an id of a naive chunk is wrong is known as soon as the exact stream has given the ids of
that place. So chunks are told at once, and their ids are settled later.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..errors import StreamtokError
from ..views.tokens import describe_ids
from ..views.visible import visible

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
        self._encoding = encoding
        self._stream = encoding.stream_encoder(
            disallowed_special=(), errors="replace", max_pending=_MAX_PENDING
        )
        self._lock = threading.Lock()
        self._chunks: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._open: deque[tuple[dict[str, Any], int]] = deque()  # naive tokens, and their starts
        self._exact: deque[tuple[int, int]] = deque()  # starts and ids, for those
        self._held = b""  # bytes whose ids are not emitted
        self._number = 0
        self._place = 0
        self._totals = dict.fromkeys(("naive", "wrong", "exact", "broken"), 0)
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
            naive, naive_spans = self._encoding.encode_with_offsets(
                chunk, "byte", disallowed_special=(), errors="replace"
            )
            exact, spans = self._stream.encode_with_offsets(chunk, final, unit="byte")
            begin, stop = self._place, self._place + len(chunk)
            row: dict[str, Any] = {
                "number": self._number,
                "shown": visible(chunk),
                "naive": [],
                "exact": [token.as_json() for token in describe_ids(self._encoding, exact)],
                "is_broken": self._encoding.decode_bytes(naive) != chunk,
            }
            for token, (start, _) in zip(
                describe_ids(self._encoding, naive), naive_spans.tolist(), strict=True
            ):
                told = {**token.as_json(), "is_wrong": None}
                row["naive"].append(told)
                self._open.append((told, begin + start))
            self._held += chunk
            if len(spans):
                self._held = self._held[len(self._held) - (stop - int(spans[-1, 1])) :]
                self._exact.extend(zip(spans[:, 0].tolist(), exact.tolist(), strict=True))
            if final:
                self._held = b""
            row["pending"] = len(self._held)
            row["pending_shown"] = visible(self._held)
            self._totals["naive"] += len(naive)
            self._totals["exact"] += len(exact)
            self._totals["broken"] += row["is_broken"]
            self._settle(stop - len(self._held))
            self._chunks.append(row)
            self._place = stop
            self._number += 1
            self._is_done = final

    def _settle(self, reached: int) -> None:
        """Say which naive ids before the byte `reached` are wrong."""
        while self._open and self._open[0][1] < reached:
            token, start = self._open.popleft()
            while self._exact and self._exact[0][0] < start:
                self._exact.popleft()
            same = (start, token["id"])
            token["is_wrong"] = not (self._exact and self._exact[0] == same)
            self._totals["wrong"] += token["is_wrong"]

    def since(self, number: int, open: int) -> dict[str, Any] | None:
        """dict: the chunks from `number` on, and those from `open` on that had open ids; None: no
        news. A page asks with the number of the first chunk that it does not have, and of the first
        one that had ids which were not settled.
        """
        with self._lock:
            if number >= self._number and not self._is_done:
                return None
            first = self._chunks[0]["number"] if self._chunks else 0
            settled = [
                [row["number"], [token["is_wrong"] for token in row["naive"]]]
                for row in self._chunks
                if open <= row["number"] < number
            ]
            return {
                "chunks": [row for row in self._chunks if row["number"] >= number],
                "skipped": max(0, first - number),
                "settled": settled,
                "number": self._number,
                "bytes": self._place,
                "totals": dict(self._totals),
                "is_done": self._is_done,
                "error": self._error,
            }
