"""The step that applies a map of SentencePiece as `tokenizers.normalizers.Precompiled` does.

It works by grapheme clusters. If a cluster of less than 6 bytes begins with a key, the whole
cluster becomes the replacement of the shortest such key; the rest of the cluster is lost. In other
clusters, single characters that are keys are replaced.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .char_sets import one_of
from .charsmap import read_charsmap
from .clusters import ON_BORDER, advance, joiners, openers
from .growth import Growth, ratio
from .step import Interest, Step

__all__ = ["Precompiled"]

LONGEST = 5  # bytes of a cluster that is replaced as a whole


class _Map:
    """A map, applied to clusters. Immutable; shared by all steps with the same map."""

    def __init__(self, data: bytes) -> None:
        self.keys = read_charsmap(data, LONGEST)
        self.growth = Growth(ratio(self.keys.items()))
        single = {key for key in self.keys if len(key) == 1}
        later = {char for key in self.keys for char in key[1:]}
        self.changing = sorted((ord(char), ord(char)) for char in single | later)
        # Characters that may be replaced, or joined to others in a cluster.
        either = one_of(sorted([*self.changing, *joiners()]))
        self.island = re.compile(rf"(?:{one_of(openers())}+[\s\S]?|{either})+")

    def change(self, text: str) -> str:
        """The result for a text that begins at the border of a cluster."""
        parts: list[str] = []
        start, state = 0, ON_BORDER
        for at, char in enumerate(text):
            state, is_border = advance(state, char)
            if is_border and at:
                parts.append(self._of_cluster(text[start:at]))
                start = at
        parts.append(self._of_cluster(text[start:]))
        return "".join(parts)

    def _of_cluster(self, cluster: str) -> str:
        keys = self.keys
        if len(cluster) <= LONGEST and len(cluster.encode("utf-8", "surrogatepass")) <= LONGEST:
            for end in range(1, len(cluster) + 1):
                found = keys.get(cluster[:end])
                if found is not None:
                    return found
        return "".join([keys.get(char, char) for char in cluster])


_map = lru_cache(maxsize=4)(_Map)


class Precompiled(Step):
    """The replacements of `charsmap`, a `precompiled_charsmap` of SentencePiece."""

    __slots__ = ("_map", "charsmap", "growth", "spec")

    def __init__(self, charsmap: bytes) -> None:
        """Raises ValueError for a damaged map."""
        self.charsmap = charsmap
        self.spec = ("Precompiled", charsmap)
        self._map = _map(charsmap)
        self.growth = self._map.growth

    def interest(self) -> Interest:
        return Interest(self._map.changing, holds_any=openers(), joins_any=joiners(), at_begin=True)

    def apply(self, text: str, where: int) -> str:
        parts: list[str] = []
        done = 0
        for island in self._map.island.finditer(text):
            start, end = island.span()
            start -= start > done  # include the character that the island may be joined to
            parts += text[done:start], self._map.change(text[start:end])
            done = end
        return "".join([*parts, text[done:]])
