"""The step that replaces by a map of SentencePiece, as `tokenizers.normalizers.Precompiled` does.

That goes by grapheme clusters. One of less than 6 bytes becomes, as a whole, the replacement of the
shortest key that it begins with: so what follows this key in the cluster is lost. In all other
clusters, each character becomes its replacement, if it has one.

In a stream, the end of a chunk may lie in a cluster. As long as it is not certain what becomes of
its characters, they wait: never more than 5 bytes. Where the characters of a cluster are replaced
one by one, the context is the state of `clusters.py`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .char_sets import one_of
from .charsmap import read_charsmap
from .clusters import N_STATES, ON_BORDER, advance, is_settled, joiners, openers
from .growth import Growth, ratio
from .step import Blocks, Interest, Step, text_of, whole_block

__all__ = ["Precompiled"]

LONGEST = 5  # bytes of a cluster that is replaced as a whole


class _Map:
    """What a map does to clusters. Immutable; shared by all steps of the same map."""

    def __init__(self, data: bytes) -> None:
        self.keys = read_charsmap(data, LONGEST)
        self.growth = Growth(ratio(self.keys.items()))
        self.beginnings = {key[:end] for key in self.keys for end in range(1, len(key))}
        single = {key for key in self.keys if len(key) == 1}
        behind = {char for key in self.keys for char in key[1:]}
        self.changing = sorted((ord(char), ord(char)) for char in single | behind)
        self.islands = sorted([*self.changing, *joiners()])
        # Characters that make a cluster, or its replacement, of more than an ordinary character.
        self.island = re.compile(rf"(?:{one_of(openers())}+[\s\S]?|{one_of(self.islands)})+")
        self.is_island = re.compile(one_of(self.islands))

    def of_cluster(self, cluster: str) -> str | None:
        """The replacement of a cluster as a whole; None: its characters go one by one."""
        if len(cluster) > LONGEST or len(cluster.encode("utf-8", "surrogatepass")) > LONGEST:
            return None
        for end in range(1, len(cluster) + 1):
            found = self.keys.get(cluster[:end])
            if found is not None:
                return found
        return None

    def is_open(self, cluster: str) -> bool:
        """Whether what becomes of the beginning of a cluster depends on the rest of it."""
        if len(cluster.encode("utf-8", "surrogatepass")) > LONGEST:
            return False
        return cluster in self.beginnings or self.of_cluster(cluster) is not None


_map = lru_cache(maxsize=4)(_Map)


class _Walk:
    """Through a text, character by character, from one state to another."""

    def __init__(self, known: _Map, place: int) -> None:
        self.map = known
        self.blocks: Blocks = []
        self.cluster = ""  # what waits
        self.place = place  # in the rules for clusters

    def take(self, text: str) -> None:
        """Go on by all characters of `text`."""
        for char in text:
            self.place, is_border = advance(self.place, char)
            if is_border:
                self.end()
            if self.cluster or is_border:
                self.cluster += char
                if not self.map.is_open(self.cluster):
                    self.give_out()
            else:
                self.add(char)

    def end(self) -> None:
        """The cluster that waits is complete."""
        if not self.cluster:
            return
        found = self.map.of_cluster(self.cluster)
        if found is None:
            self.give_out()
            return
        self.blocks += whole_block(found, self.cluster)
        self.cluster = ""

    def give_out(self) -> None:
        """The waiting characters go one by one."""
        for char in self.cluster:
            self.add(char)
        self.cluster = ""

    def add(self, char: str) -> None:
        """A character by itself."""
        found = self.map.keys.get(char)
        self.blocks.append((char if found is None else found, char))

    def copy(self, text: str) -> None:
        """Text that stays as it is, and begins and ends a cluster."""
        if text:
            self.blocks.append((text, text))


class Precompiled(Step):
    """The replacements of `charsmap`, a `precompiled_charsmap` of SentencePiece."""

    __slots__ = ("_map", "charsmap", "growth", "spec")
    contexts = N_STATES

    def __init__(self, charsmap: bytes) -> None:
        """Raises ValueError for a map that is damaged."""
        self.charsmap = charsmap
        self.spec = ("Precompiled", charsmap)
        self._map = _map(charsmap)
        self.growth = self._map.growth

    def interest(self) -> Interest:
        return Interest(self._map.changing, holds_any=openers(), joins_any=joiners(), at_begin=True)

    def apply(self, text: str, where: int) -> str:
        return text_of(self.change(ON_BORDER, text, True, 0)[1])

    def begin(self, is_first: bool) -> int:
        return ON_BORDER

    def change(self, context: int, text: str, final: bool, seen: int) -> tuple[int, Blocks]:
        known = self._map
        walk = _Walk(known, context)
        start, size = 0, len(text)
        while start < size and not (
            is_settled(walk.place) and not known.is_island.match(text, start)
        ):
            walk.take(text[start])
            start += 1
        if start < size:
            walk.end()
        for island in known.island.finditer(text, start):
            first, end = island.span()
            first -= first > start  # the character that what is in an island is joined to
            walk.copy(text[start:first])
            start = end
            walk.place = ON_BORDER
            walk.take(text[first:end])
            if end == size and not final:
                break
            walk.end()
        if not final and start < size:
            walk.copy(text[start:-1])
            walk.place = ON_BORDER
            walk.take(text[-1])
        else:
            walk.copy(text[start:])
        if final:
            walk.end()
        # A cluster that waits is walked through again.
        return ON_BORDER if final or walk.cluster else walk.place, _joined(walk.blocks)


def _joined(blocks: Blocks) -> Blocks:
    """The same with fewer blocks: neighbours whose characters did not change are one."""
    joined: Blocks = []
    parts: list[str] = []
    for text, source in blocks:
        if text == source:
            parts.append(text)
            continue
        if parts:
            joined.append(("".join(parts),) * 2)
            parts = []
        joined.append((text, source))
    if parts:
        joined.append(("".join(parts),) * 2)
    return joined
