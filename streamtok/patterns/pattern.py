"""Pre-tokenization patterns: the tables that a scanner needs to cut text into pre-tokens.

`Pattern.compile` turns a regular expression into the tables of an automaton (`syntax.py`,
`dfa.py`); `automaton.py` says what the tables mean. The pre-tokens are the matches of tiktoken's
`find_iter`.

The scanner itself is written in Cython. Patterns that no such automaton can follow raise
`UnsupportedPatternError` with the name and position of the construct.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..threads import cached_property
from .automaton import Automaton
from .bundled_tables import bundled_tables
from .tables import Tables, Windows

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Pattern"]


class Pattern(Automaton):
    """A compiled pre-tokenization pattern; immutable, so threads may share it.

    >>> Pattern.compile(r"\\p{L}+|\\s+(?!\\S)|[^\\p{L}]").findall("tea  for 2")
    ['tea', ' ', ' ', 'for', ' ', '2']
    """

    source: str
    is_composed = False  # whether `source` is more than one regular expression, see `sequence.py`

    def __init__(self, source: str, tables: Tables) -> None:
        super().__init__(tables)
        self.source = source

    @classmethod
    def compile(cls, source: str) -> Pattern:
        """Compile `source`: load its bundled tables, or compute them in tens of milliseconds.

        Raises `PatternError` if `source` does not compile, and `UnsupportedPatternError` if no
        finite automaton of reasonable size can follow it.
        """
        bundled = bundled_tables(source)
        return cls(source, bundled[0] if bundled else _fresh_tables(source))

    @cached_property
    def windows(self) -> Windows | None:
        """Tables that find pre-token starts from four characters; None if they would not help."""
        bundled = bundled_tables(self.source)
        if bundled:
            return Windows.from_bytes(bundled[1]) if bundled[1] else None
        from .windows import derive_windows  # a rare case

        return derive_windows(self)

    @cached_property
    def substitutes(self) -> npt.NDArray[np.uint8] | None:
        """uint8 [0x10000]: for each code point, the ASCII character that windows may see instead
        of it, or 0; None if all are 0.

        Windows cover only ASCII. Any other character may be replaced by an ASCII character of the
        same class (`_core/scan/substitutes.h`): the automaton treats both alike, so pre-tokens
        begin at the same positions. A character has no substitute if its class has no ASCII
        characters, or only those that windows treat specially (triggers and their followers).
        """
        if self.windows is None:
            return None
        of_class = np.zeros(self.n_classes, np.uint8)
        for point in range(127, 0, -1):
            if self.windows.classes[point] < 128 and point != self.windows.trigger:
                of_class[self.class_of(point)] = point
        of_point = of_class[self.class_blocks[self.class_pages[: 0x10000 >> 7]]].reshape(-1)
        of_point[:128] = of_point[0xD800:0xE000] = 0
        return of_point if of_point.any() else None

    def __reduce__(self) -> tuple[Any, ...]:
        return Pattern.compile, (self.source,)

    def __repr__(self) -> str:
        return f"<Pattern {self.n_states} states, {self.n_classes} classes: {self.source[:40]!r}>"


@lru_cache(maxsize=16)
def _fresh_tables(source: str) -> Tables:
    from .dfa import compile_tables  # a rare case and a slow import

    return compile_tables(source)
