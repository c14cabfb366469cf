"""How much work a pattern may make: bounds that hold before and while it is compiled.

A few characters can ask for anything: `((a{1,20}){1,20}){1,20}` is 8 000 characters when all its
repeats are written out, and the tables of `[ab]*a[ab]{15}` have 65 536 rows. Two bounds, and what
they refuse is named with its place:

- `Budget` looks at the source once, before anything is expanded. Its length, also with its repeats
  written out, is bounded for every use, the `regex` package's included, which writes them out, too.
- What makes tables counts its steps with `spend`, one for about what a loop of Python does in a
  microsecond. Steps also bound memory: nothing is kept that no step was counted for.

The look at the source knows groups, sets, escapes and repeats, and not their meaning.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from ..errors import PatternError, UnsupportedPatternError

__all__ = ["MAX_EXPANDED", "MAX_LENGTH", "MAX_STEPS", "Budget", "shortened"]

MAX_LENGTH = 1 << 16  # characters of a pattern: the longest known have some thousands
MAX_EXPANDED = 100_000  # characters of it with all repeats written out
MAX_STEPS = 2_000_000  # of making tables: o200k_base, the largest in use, takes 100 000

_PARTS = re.compile(
    r"""\\[pPxuUN]\{[^}]{0,99}\} | \\. | \[\^?\]?(?:\\.|[^\]\\])*\]?
    | (?P<comment>\(\?\#[^)]*\)?) | (?P<blank>\s) | (?P<open>\() | (?P<close>\))
    | (?P<repeat>\{(?P<low>\d*)(?P<comma>,?)(?P<high>\d*)\}|[*+?]) | .""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_VERBOSE = re.compile(r"\(\?[a-zA-Z]*x")


def shortened(written: str, most: int = 40) -> str:
    """A part of a pattern, or another text, for a message: its beginning and its end."""
    if len(written) <= most:
        return written
    return f"{written[: most // 2]}…{written[most // 2 + 1 - most :]}"


class _Repeat(NamedTuple):
    """A repeat with its item."""

    size: int  # written out
    start: int
    end: int


class Budget:
    """The steps that are left for the pattern `source`.

    Raises PatternError for a source that is too long, or too long with its repeats written out.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.steps = MAX_STEPS
        if len(source) > MAX_LENGTH:
            raise PatternError(f"the pattern has {len(source)} characters, more than {MAX_LENGTH}")
        self.largest = self._largest_repeat()

    def spend(self, steps: int) -> None:
        """Count steps; raises UnsupportedPatternError when there are no more."""
        self.steps -= steps
        if self.steps < 0:
            self.refuse(f"more than {MAX_STEPS} steps")

    def refuse(self, what: str) -> NoReturn:
        """Raise the UnsupportedPatternError that says what tables would take, and where."""
        message = f"the tables of the pattern take {what}"
        if self.largest is None:
            raise UnsupportedPatternError(message, construct=what)
        raise UnsupportedPatternError(
            f"{message}: {self._shown(self.largest)}",
            construct="repeat",
            position=self.largest.start,
        )

    def _shown(self, repeat: _Repeat) -> str:
        written = shortened(self.source[repeat.start : repeat.end])
        return f"the repeat {written!r} at position {repeat.start} is its largest part"

    def _largest_repeat(self) -> _Repeat | None:
        """The repeat that is the longest when written out, if there is any."""
        # Where the flag x is set, white space and comments may come between a repeat and its item:
        # then it is taken for one of the largest item so far.
        is_verbose = _VERBOSE.search(self.source) is not None
        largest: _Repeat | None = None
        # Of each open group: where it begins, its size so far, and that of the item that a repeat
        # would take, with its beginning.
        stack = [(0, 0, 0, 0)]
        for match in _PARTS.finditer(self.source):
            start, size, item, item_start = stack[-1]
            if match["open"]:
                stack.append((match.start(), 0, 0, match.end()))
            elif match["close"] and len(stack) > 1:
                stack.pop()
                outer_start, outer, last, _ = stack[-1]
                last = max(last, size) if is_verbose else size
                stack[-1] = outer_start, outer + size, last, start
            elif match["repeat"]:
                times = _times(match)
                more = item * (times - 1)
                if times > 1 and (largest is None or item * times > largest.size):
                    largest = _Repeat(item * times, item_start, match.end())
                stack[-1] = start, size + more, item + more, item_start
                if item * times > MAX_EXPANDED and largest:
                    self._too_large(largest)
            elif match["comment"] or (match["blank"] and is_verbose):
                stack[-1] = start, size + 1, item, item_start
            else:
                stack[-1] = start, size + 1, max(item, 1) if is_verbose else 1, match.start()
        if sum(size for _, size, _, _ in stack) > MAX_EXPANDED and largest:
            self._too_large(largest)
        return largest

    def _too_large(self, repeat: _Repeat) -> NoReturn:
        raise PatternError(
            f"the pattern has more than {MAX_EXPANDED} characters with its repeats written "
            f"out: {self._shown(repeat)}"
        )


def _times(match: re.Match[str]) -> int:
    """How often at most the item of a repeat is written out."""
    digits = match["high"] or match["low"] or "1"
    return int(digits) + (not match["high"] and bool(match["comma"])) if len(digits) < 9 else 10**9
