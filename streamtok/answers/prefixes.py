"""How many ids the beginnings of a text have, near the position where a budget ends.

A stream is fed until more ids are certain than the budget has: every longer beginning has at least
these, so none of them fits. The beginnings before that place are tried from the longest on: a copy
of the stream, from an offset shortly before, is ended there. A beginning may have fewer ids or more
than the whole text has up to the same place, since its end is not seen as such in the whole.
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

_SMALL_STEP = 8  # characters: a budget's end is looked for as closely as that
_BLOCK = 64  # places that are looked at together
_AHEAD = 64  # characters that are read on when a token has to become certain


class _Mark(NamedTuple):
    """A stream that was fed up to `position`, and has emitted so many ids by then."""

    position: int
    tokens: int
    tail: Tail


class Prefixes:
    """The beginnings of the text after `start` in a source."""

    def __init__(
        self, settings: Settings, source: TextWindow, start: int = 0, offset: int = 0
    ) -> None:
        """offset: bytes of UTF-8 before `start`, for errors."""
        self._token_bytes = settings.definition.decoder.token_bytes
        self._source = source
        self._start = start
        self._offset = offset
        self._marks = [_Mark(start, 0, settings.tail())]
        self._after: _TokensAfter | None = None
        self.stop = start  # no beginning that reaches this place is within the budget
        self.end = start  # of the whole text, if it is within the budget
        self.n_tokens = 0  # of it, then

    def advance(self, budget: int, each: float = 3.3) -> bool:
        """Whether the whole text is within the budget; if not, `stop` says where to look.

        each: characters that a token has, about.
        """
        source = self._source
        position, tokens, tail = self._marks[-1]
        step = max(_SMALL_STEP, min(int(budget * each * 0.9), 1 << 20))
        while True:
            tail.hurry()  # the sooner ids are certain, the fewer places are tried
            before = tail.copy()
            is_end = source.is_end(position + step)
            piece = source.at(position, position + step)
            given = tail.tokens_out
            found = feed(tail, piece, is_end, COUNT, self._offset)
            tokens = given + found
            if tokens > budget:
                if step <= _SMALL_STEP or len(piece) <= _SMALL_STEP:
                    self._marks.append(_Mark(position, given, before))
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
            self._marks.append(_Mark(position - len(piece), given, before))
            # What was seen so far says how much is left, but one should rather stop before it.
            each = (position - self._start) / max(tokens, 1)
            step = max(_SMALL_STEP, min(int((budget - tokens) * each * 0.9), 1 << 20))

    def places(self, above: int) -> Iterator[int]:
        """Where a beginning within the budget may end, from the last on; none up to `above`."""
        high = self.stop - 1
        while high > above:
            low = max(high - _BLOCK, above)
            text = self._source.text_at(low - 3 if low >= self._start + 3 else low, high + 4)
            base = low - 3 if low >= self._start + 3 else low
            found = character_ends(text, low - base, high - base)
            yield from (base + place for place in reversed(found) if base + place > low)
            high = low

    def count(self, stop: int) -> int:
        """The number of ids of the text up to `stop`, by itself."""
        mark = self._mark_before(stop)
        piece = self._source.at(mark.position, stop)
        found = feed(mark.tail.copy(), piece, True, COUNT)
        return mark.tokens + found

    def ends_token(self, stop: int) -> bool:
        """Whether the text up to `stop`, by itself, is made of the first tokens of the whole."""
        mark = self._mark_before(stop)
        piece = self._source.at(mark.position, stop)
        ids = feed(mark.tail.copy(), piece, True, LIST)
        own = b"".join(map(self._token_bytes, ids))
        if self._after is None or self._after.mark is not mark:
            self._after = _TokensAfter(self._token_bytes, self._source, mark)
        return self._after.has_end(own)

    def _mark_before(self, stop: int) -> _Mark:
        while self._marks[-1].position > stop:
            self._marks.pop()
        return self._marks[-1]


class _TokensAfter:
    """The tokens of the whole text after a mark, as far as they were asked for."""

    def __init__(
        self, token_bytes: Callable[[int], bytes], source: TextWindow, mark: _Mark
    ) -> None:
        self.mark = mark
        self._token_bytes = token_bytes
        self._source = source
        self._tail = mark.tail.copy()
        self._position = mark.position
        self._is_over = False
        self._bytes = b""
        self._ends = {0}

    def has_end(self, beginning: bytes) -> bool:
        """Whether the tokens begin with these bytes, and one of them ends there."""
        while len(self._bytes) < len(beginning) and not self._is_over:
            step = max(_AHEAD, self._position - self.mark.position)
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
        return len(beginning) in self._ends and self._bytes.startswith(beginning)


def feed(tail: Tail, piece: Any, final: bool, output: Output[Result], offset: int = 0) -> Result:
    """The ids that a piece makes certain, as `output` gives them.

    offset: bytes before the stream began, for errors.
    """
    try:
        result: Result = tail.encode(piece, final, output, NO_LIMIT)
    except UnicodeDecodeError as error:
        raise UnicodeDecodeError(
            error.encoding, error.object, offset + error.start, offset + error.end, error.reason
        ) from None
    except DisallowedSpecialError as refused:
        raise DisallowedSpecialError(offset + refused.offset, refused.text) from None
    return result
