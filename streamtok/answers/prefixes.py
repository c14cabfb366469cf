"""Counts the ids of the prefixes of a text, near the position where a budget is used up.

A stream is fed until more ids are certain than the budget allows. Every longer prefix has at least
these ids, so none of them fits. Shorter prefixes are tried, longest first: a copy of the stream as
it was shortly before the end of the prefix encodes the rest. A prefix may have fewer or more ids
than the whole text has up to the same position, because the whole text does not end there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from .._core.encode import COUNT, LIST
from ..engines.protocol import NO_LIMIT
from ..errors import DisallowedSpecialError
from .text_window import character_ends

if TYPE_CHECKING:
    from .._core.encode import Output, Tail
    from ..engines.protocol import Result
    from .text_settings import Settings
    from .text_window import TextWindow

__all__ = ["Prefixes", "feed"]

_SMALL_STEP = 8  # characters: the precision with which the end of a budget is located
_BLOCK = 64  # positions that are examined together
_AHEAD = 64  # characters to read ahead until a token is certain


class _Snapshot(NamedTuple):
    """A stream that was fed up to `position`, and the number of ids it has emitted by then."""

    position: int
    tokens: int
    tail: Tail


class Prefixes:
    """The prefixes of the text after `start` in a source."""

    def __init__(
        self, settings: Settings, source: TextWindow, start: int = 0, offset: int = 0
    ) -> None:
        """offset: bytes of UTF-8 before `start`, for errors."""
        self._token_bytes = settings.definition.decoder.token_bytes
        self._source = source
        self._start = start
        self._offset = offset
        self._snapshots = [_Snapshot(start, 0, settings.tail())]
        self._after: _TokensAfter | None = None
        self.stop = start  # no prefix this long fits the budget
        self.end = start  # the end of the whole text, if it fits the budget
        self.n_tokens = 0  # the ids of the whole text, if it fits

    def advance(self, budget: int, each: float = 3.3) -> bool:
        """Whether the whole text fits the budget; if not, no prefix that reaches `stop` fits.

        each: approximate characters per token.
        """
        source = self._source
        position, tokens, tail = self._snapshots[-1]
        step = max(_SMALL_STEP, min(int(budget * each * 0.9), 1 << 20))
        while True:
            tail.hurry()  # the sooner ids are certain, the fewer prefixes are tried
            before = tail.copy()
            is_end = source.is_end(position + step)
            piece = source.at(position, position + step)
            given = tail.tokens_out
            tokens = given + feed(tail, piece, is_end, COUNT, self._offset)
            if tokens > budget:
                if step <= _SMALL_STEP or len(piece) <= _SMALL_STEP:
                    self._snapshots.append(_Snapshot(position, given, before))
                    self.stop = position + len(piece)
                    return False
                step = max(_SMALL_STEP, min(step, len(piece)) // 4)
                tail = before
                continue
            position += len(piece)
            if is_end:
                self.end, self.n_tokens = position, tokens
                self.stop = position + 1
                return True
            self._snapshots.append(_Snapshot(position - len(piece), given, before))
            # Extrapolate to the end of the budget, but stop a little before it.
            each = (position - self._start) / max(tokens, 1)
            step = max(_SMALL_STEP, min(int((budget - tokens) * each * 0.9), 1 << 20))

    def positions(self, above: int) -> Iterator[int]:
        """Positions after `above` where a prefix that fits the budget may end, last first."""
        high = self.stop - 1
        while high > above:
            low = max(high - _BLOCK, above)
            base = low - 3 if low >= self._start + 3 else low
            text = self._source.text_at(base, high + 4)
            found = character_ends(text, low - base, high - base)
            yield from (base + end for end in reversed(found) if base + end > low)
            high = low

    def count(self, stop: int) -> int:
        """The number of ids of the text up to `stop`, encoded by itself."""
        snapshot, found = self._encoded(stop, COUNT)
        return snapshot.tokens + found

    def ends_token(self, stop: int) -> bool:
        """Whether the text up to `stop` consists of the first tokens of the whole text."""
        snapshot, ids = self._encoded(stop, LIST)
        own = b"".join(map(self._token_bytes, ids))
        if self._after is None or self._after.snapshot is not snapshot:
            self._after = _TokensAfter(self._token_bytes, self._source, snapshot)
        return self._after.has_end(own)

    def _encoded(self, stop: int, output: Output[Result]) -> tuple[_Snapshot, Result]:
        """The last snapshot before `stop`, and the ids from there to the end of the prefix."""
        while self._snapshots[-1].position > stop:
            self._snapshots.pop()
        snapshot = self._snapshots[-1]
        piece = self._source.at(snapshot.position, stop)
        return snapshot, feed(snapshot.tail.copy(), piece, True, output)


class _TokensAfter:
    """The tokens of the whole text after a snapshot, read on demand."""

    def __init__(
        self, token_bytes: Callable[[int], bytes], source: TextWindow, snapshot: _Snapshot
    ) -> None:
        self.snapshot = snapshot
        self._token_bytes = token_bytes
        self._source = source
        self._tail = snapshot.tail.copy()
        self._position = snapshot.position
        self._is_over = False
        self._bytes = b""
        self._ends = {0}

    def has_end(self, prefix: bytes) -> bool:
        """Whether the bytes of the tokens begin with `prefix`, and one token ends where it does."""
        while len(self._bytes) < len(prefix) and not self._is_over:
            step = max(_AHEAD, self._position - self.snapshot.position)
            self._is_over = self._source.is_end(self._position + step)
            piece = self._source.at(self._position, self._position + step)
            self._position += len(piece)
            parts = [self._bytes]
            size = len(self._bytes)
            for token in feed(self._tail, piece, self._is_over, LIST):
                parts.append(self._token_bytes(token))
                size += len(parts[-1])
                self._ends.add(size)
            self._bytes = b"".join(parts)
        return len(prefix) in self._ends and self._bytes.startswith(prefix)


def feed(tail: Tail, piece: Any, final: bool, output: Output[Result], offset: int = 0) -> Result:
    """Feed a piece, and return the ids that become certain, in the form of `output`.

    offset: bytes of the text before the stream, for errors.
    """
    try:
        return tail.encode(piece, final, output, NO_LIMIT)
    except UnicodeDecodeError as error:
        raise UnicodeDecodeError(
            error.encoding, error.object, offset + error.start, offset + error.end, error.reason
        ) from None
    except DisallowedSpecialError as refused:
        raise DisallowedSpecialError(offset + refused.offset, refused.text) from None
