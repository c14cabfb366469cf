"""Limits on the work of compiling a pattern, checked before and during compilation.

A short pattern can demand any amount of work: `((a{1,20}){1,20}){1,20}` is 8 000 characters when
all its repeats are written out, and the tables of `[ab]*a[ab]{15}` have 65 536 rows. So the length
of a source is bounded, and the compiler counts its steps with `spend`: a step takes about a
microsecond in a Python loop. Steps also bound memory, since everything that is kept is counted.
"""

from __future__ import annotations

from typing import NoReturn

from ..errors import PatternError, UnsupportedPatternError

__all__ = ["MAX_LENGTH", "MAX_STEPS", "Budget", "shortened"]

MAX_LENGTH = 1 << 16  # characters of a pattern: the longest known have a few thousand
MAX_STEPS = 2_000_000  # for the tables of a pattern: o200k_base, the largest in use, takes 100 000


def shortened(written: str, most: int = 40) -> str:
    """A part of a pattern or another text, for a message: only its two ends if it is too long."""
    if len(written) <= most:
        return written
    return f"{written[: most // 2]}…{written[most // 2 + 1 - most :]}"


class Budget:
    """The steps left for the pattern `source`. Raises PatternError if `source` is too long."""

    def __init__(self, source: str) -> None:
        self.steps = MAX_STEPS
        if len(source) > MAX_LENGTH:
            raise PatternError(f"the pattern has {len(source)} characters, more than {MAX_LENGTH}")

    def spend(self, steps: int) -> None:
        """Count steps; raise UnsupportedPatternError when none are left."""
        self.steps -= steps
        if self.steps < 0:
            self.refuse(f"more than {MAX_STEPS} steps")

    def refuse(self, what: str) -> NoReturn:
        """Raise an UnsupportedPatternError that names what the tables would take."""
        raise UnsupportedPatternError(f"the tables of the pattern take {what}", construct=what)
