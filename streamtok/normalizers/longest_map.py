"""The step that applies a map of SentencePiece as SentencePiece itself does.

At each offset, it replaces the longest key that begins there, or else keeps one character.
`precompiled.py` applies the same maps as `tokenizers` does, by grapheme clusters. User-defined
symbols take precedence over keys: the longest symbol is kept unchanged.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .char_sets import one_of, ranges_of_characters
from .charsmap import read_charsmap
from .growth import Growth, ratio
from .step import FIRST, Interest, Step

__all__ = ["LongestMap"]

LONGEST = 64  # bytes of a key; those of SentencePiece's maps have up to 12
DEEPEST = 32  # keys that begin at one offset; SentencePiece looks at no more
MOST_SYMBOLS = 1 << 24  # the sum of the squares of their lengths


class _Map:
    """Keys and symbols, and how to find them. Immutable; shared by equal steps."""

    def __init__(self, charsmap: bytes, symbols: tuple[str, ...]) -> None:
        self.keys = read_charsmap(charsmap, LONGEST, True) if charsmap else {}
        self.growth = ratio(self.keys.items())
        for key in self.keys:
            if len(key) > DEEPEST and sum(key[:n] in self.keys for n in range(len(key))) >= DEEPEST:
                raise ValueError(f"more than {DEEPEST} keys are prefixes of one key")
        if sum(len(symbol) ** 2 for symbol in symbols) > MOST_SYMBOLS:
            raise ValueError("the user-defined symbols are too long together")
        self.symbols = frozenset(symbols)
        self.key_prefixes = {key[:n] for key in self.keys for n in range(1, len(key))}
        self.symbol_prefixes = {key[:n] for key in symbols for n in range(1, len(key))}
        # The next offset where a key or symbol may begin: a single character, or the first
        # character of a longer one followed by a possible second character.
        names = [*self.keys, *symbols]
        single = one_of(ranges_of_characters({name for name in names if len(name) == 1}))
        first = one_of(ranges_of_characters({name[0] for name in names if len(name) > 1}))
        second = one_of(ranges_of_characters({name[1] for name in names if len(name) > 1}))
        self.changing = re.compile(f"{single}|{first}(?={second})")

    def found(self, text: str, at: int) -> tuple[str, int]:
        """The replacement of the text at an offset, and the end of that text."""
        for known, prefixes in (
            (self.symbols, self.symbol_prefixes),
            (self.keys, self.key_prefixes),
        ):
            longest = 0
            for end in range(at + 1, len(text) + 1):
                part = text[at:end]
                if part in known:
                    longest = end
                if part not in prefixes:
                    break
            if longest:
                part = text[at:longest]
                return self.keys[part] if known is self.keys else part, longest
        return text[at], at + 1


_map = lru_cache(maxsize=4)(_Map)


class LongestMap(Step):
    """The replacements of `charsmap`, a `precompiled_charsmap` of SentencePiece.

    charsmap: b"" for none. symbols: strings to keep unchanged. puts_space: prepend a space to the
    first segment of a stream if it is not empty, even if the map removes all of it.
    """

    __slots__ = ("_map", "growth", "puts_space", "spec")

    def __init__(self, charsmap: bytes, symbols: tuple[str, ...], puts_space: bool) -> None:
        """Raises ValueError for a damaged map, and for keys or symbols that are too long."""
        self.puts_space = puts_space
        self.spec = ("LongestMap", charsmap, symbols, puts_space)
        self._map = _map(charsmap, symbols)
        factor = self._map.growth if charsmap else None
        self.growth = Growth(factor, put=" " if puts_space else "")

    def replacements(self) -> frozenset[str]:
        """All replacements of keys."""
        return frozenset(self._map.keys.values())

    def interest(self) -> Interest:
        known = self._map
        names = [*known.keys, *known.symbols]
        return Interest(
            ranges_of_characters({key for key in known.keys if len(key) == 1}),
            ranges_of_characters({char for name in names for char in name[:-1]}),
            ranges_of_characters({char for name in names for char in name[1:]}),
            at_begin=self.puts_space,
        )

    def apply(self, text: str, where: int) -> str:
        parts = [" "] if self.puts_space and text and where & FIRST else []
        done = at = 0
        while match := self._map.changing.search(text, at):
            new, end = self._map.found(text, match.start())
            parts += text[done : match.start()], new
            done = at = end
        return "".join([*parts, text[done:]])
