"""The merges of an encoding, as the core uses them: by rank, and by the two tokens to merge.

Tokens are numbered in order of rank. The rank shown is the token's id in a rank table; in a
vocabulary that lists its merges, it is this number, or the number that tied tokens share.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from ...threads import cached_property
from ...vocabulary.table import NO_ID

if TYPE_CHECKING:
    from ...definition import Defined


class MergeTable:
    """Ids, ranks and parts of the tokens of an encoding. Made and cached by `merge_table`."""

    def __init__(self, encoding: Defined) -> None:
        vocabulary = encoding.definition.vocabulary
        self.ids: list[int] = vocabulary.ids.tolist()  # by number; NO_ID for a token without an id
        self._vocabulary = vocabulary
        self._ties = None if vocabulary.ties is None else vocabulary.ties.tolist()
        self._table = encoding.definition.table
        self.described: dict[int, Any] = {}  # id -> `tokens.Token`: a cache

    @cached_property
    def number_of(self) -> dict[int, int]:
        """Id -> number. Special tokens, and ids that are only decoded, have no number."""
        found = {id: number for number, id in enumerate(self.ids) if id != NO_ID}
        if self._vocabulary.byte_ids is not None:
            for byte, id in enumerate(self._vocabulary.byte_ids.tolist()):
                if id != NO_ID and bytes([byte]) in self._singles:
                    found.setdefault(id, self._singles[bytes([byte])])
        return found

    @cached_property
    def _singles(self) -> dict[bytes, int]:
        return {token: number for number, token in enumerate(self.tokens) if len(token) == 1}

    @cached_property
    def tokens(self) -> list[bytes]:
        """The bytes of each token, by number."""
        return self._vocabulary.to_list()

    @cached_property
    def _parts(self) -> tuple[list[int], list[int]]:
        lefts, rights = self._table.parts()
        return lefts.tolist(), rights.tolist()

    @cached_property
    def _merges(self) -> dict[tuple[int, int], int]:
        lefts, rights = self._parts
        pairs = zip(lefts, rights, strict=True)
        return {pair: number for number, pair in enumerate(pairs) if pair[0] != NO_ID}

    def rank(self, number: int) -> int:
        """int: the priority of the merge that makes this token; lower is earlier."""
        if self._vocabulary.is_rank_table:
            return self.ids[number]
        return number if self._ties is None else int(self._ties[number])

    def parts(self, number: int) -> tuple[int, int] | None:
        """(number, number): the two tokens that merge into this one; None if no merge makes it."""
        left, right = self._parts[0][number], self._parts[1][number]
        return None if left == NO_ID else (left, right)

    def merged(self, left: int, right: int) -> int | None:
        """int | None: the token that these two neighbours merge into."""
        return self._merges.get((left, right))

    def single(self, byte: int) -> int:
        """int: the number of the token that is this byte."""
        return self._singles[bytes([byte])]


_tables: weakref.WeakKeyDictionary[Defined, MergeTable] = weakref.WeakKeyDictionary()


def merge_table(encoding: Defined) -> MergeTable:
    """MergeTable: the table of an encoding. The first call for it takes tens of milliseconds."""
    found = _tables.get(encoding)
    if found is None:
        found = _tables[encoding] = MergeTable(encoding)
    return found
