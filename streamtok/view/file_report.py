"""The report on a file of any size, read once: its lines are the documents.

Blocks of bytes go in. The report has the tokens of the whole, of each line as a histogram, the
lines with the most tokens, the bytes that are not UTF-8 (they count as U+FFFD), and the lines that
`disallowed_special="all"` would refuse. Memory does not grow with the file.
"""

from __future__ import annotations

import heapq
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ..chunker import StreamEncoder
from ..pipeline.documents import DocumentEncoder
from ..pipeline.sources import BadBytes, Delimited
from ..views.visible import visible

if TYPE_CHECKING:
    from ..encoding import Encoding
    from ..pipeline.sources import Part

CLASSES = 25  # of lines by tokens: 0, 1, 2-3, 4-7, ...; the last one has all that are longer
MOST_LINES = 20  # the ones with the most tokens
MOST_PLACES = 100  # of bytes that are not UTF-8, and of special tokens
_PREVIEW = 100  # bytes of a line
_MAX_PENDING = 1 << 26


class FileReport:
    """`add` the blocks, then `finish`; `as_json` at any time."""

    def __init__(self, encoding: Encoding) -> None:
        """Raises UnsupportedPatternError for an encoding that has no streams."""
        how: dict[str, Any] = {"disallowed_special": (), "errors": "replace"}
        self._whole = encoding.counter(**how)
        stream = StreamEncoder(encoding, max_pending=_MAX_PENDING, **how)
        self._documents = DocumentEncoder(stream)
        self._splitter = Delimited(b"\n")
        self.n_bytes = 0
        self.is_done = False
        self._line = 0  # of the open line, from 0
        self._start = 0  # its first byte
        self._preview = b""  # its first bytes, of earlier blocks
        self._tokens = 0  # that it has so far
        self._line_tokens = 0
        self._histogram = np.zeros(CLASSES, np.int64)
        self._most: list[tuple[int, int, int, bytes]] = []  # a heap: tokens, -line, start, preview
        self._utf8 = BadBytes(MOST_PLACES)
        self._specials = _SpecialCheck(encoding.special_tokens_set)

    def add(self, block: bytes) -> None:
        """Take the next bytes. Raises PendingLimitExceeded for an endless pre-token."""
        self._whole.update(block)
        self._utf8.add(block)
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10).astype(np.int64) + self.n_bytes
        self._specials.add(block, self.n_bytes, self._line, ends)
        self._count(self._splitter.split(block), block, ends)
        self.n_bytes += len(block)

    def finish(self) -> None:
        """The file ends here."""
        if self.is_done:
            return
        self._whole.finish()
        self._utf8.add(b"", True)
        is_open = self._start < self.n_bytes
        ends = np.array([self.n_bytes] if is_open else [], np.int64)
        self._count(self._splitter.finish(), b"", ends)
        self.is_done = True

    def _count(self, parts: list[Part], block: bytes, ends: Any) -> None:
        """Count the lines that end at these places, and what is there of the next one."""
        ids, stops = self._documents.encode(parts)
        if len(stops) != len(ends):
            raise RuntimeError(f"{len(ends)} lines end here, but {len(stops)} documents")
        if not len(ends):
            self._tokens += len(ids)
            self._preview = (self._preview + block)[:_PREVIEW]
            return
        counts = np.diff(stops, prepend=0)
        counts[0] += self._tokens
        self._tokens = len(ids) - int(stops[-1])
        self._line_tokens += int(counts.sum())
        sizes = np.ceil(np.log2(counts + 1)).astype(np.int64)  # bits of the number
        self._histogram += np.bincount(np.minimum(sizes, CLASSES - 1), minlength=CLASSES)
        starts = np.concatenate([[self._start], ends[:-1] + 1])
        chosen = np.argsort(-counts, kind="stable")[:MOST_LINES]
        for i, tokens, start in zip(
            chosen.tolist(), counts[chosen].tolist(), starts[chosen].tolist(), strict=True
        ):
            self._keep(tokens, self._line + i, start, block, int(ends[i]))
        self._line += len(ends)
        self._start = int(ends[-1]) + 1
        self._preview = block[self._start - self.n_bytes :][:_PREVIEW]

    def _keep(self, tokens: int, line: int, start: int, block: bytes, end: int) -> None:
        if len(self._most) == MOST_LINES and (tokens, -line) <= self._most[0][:2]:
            return
        if start < self.n_bytes:
            preview = self._preview + block[: max(end - self.n_bytes, 0)]
        else:
            preview = block[start - self.n_bytes : end - self.n_bytes]
        heapq.heappush(self._most, (tokens, -line, start, preview[:_PREVIEW]))
        if len(self._most) > MOST_LINES:
            heapq.heappop(self._most)

    def as_json(self) -> dict[str, Any]:
        """dict: lines are numbered from 1, places are bytes from 0. Tokens are those so far."""
        most = [
            {"tokens": tokens, "line": 1 - line, "start": start, "shown": visible(preview)}
            for tokens, line, start, preview in sorted(self._most, reverse=True)
        ]
        return {
            "n_bytes": self.n_bytes,
            "is_done": self.is_done,
            "tokens": self._whole.total,
            "lines": self._line,
            "line_tokens": self._line_tokens,
            "histogram": self._histogram.tolist(),
            "most": most,
            "bad_bytes": self._utf8.count,
            "bad_places": self._utf8.places,
            "refused_lines": self._specials.lines,
            "refused_places": self._specials.places,
        }


class _SpecialCheck:
    """Counts the lines in which the text of a special token stands."""

    def __init__(self, specials: set[str]) -> None:
        self.lines = 0
        self.places: list[list[Any]] = []  # [byte, the token]
        texts = sorted((one.encode() for one in specials), key=len, reverse=True)
        self._expression = re.compile(b"|".join(map(re.escape, texts))) if texts else None
        self._reach = len(texts[0]) - 1 if texts else 0
        self._tail = b""
        self._last = -1

    def add(self, block: bytes, offset: int, line: int, ends: Any) -> None:
        """line: the one that is open at the beginning of the block, the byte `offset`."""
        if self._expression is None:
            return
        tail = len(self._tail)
        data = self._tail + block
        for found in self._expression.finditer(data):
            if found.end() <= tail:
                continue  # found in the block before
            start = found.start()
            if start < tail:
                number = line - data[start:tail].count(b"\n")
            else:
                number = line + int(np.searchsorted(ends, offset + start - tail))
            if number > self._last:
                self.lines += 1
                self._last = number
            if len(self.places) < MOST_PLACES:
                self.places.append([offset + start - tail, found[0].decode()])
        self._tail = data[len(data) - min(self._reach, len(data)) :]
