"""Which tokens of a byte-level BPE vocabulary stay when others go, and the vocabulary of those.

A token stays reachable if the two tokens that merge into it stay, and their parts. The merges keep
their order: while the bytes of a token merge into it, all merges that happen are its own, and they
are as before, since fewer others compete with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._core.encode import gather_tokens
from .table import NO_ID, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from .._core.encode import TokenTable

__all__ = ["pruned_vocabulary"]


def pruned_vocabulary(
    vocabulary: Vocabulary, table: TokenTable, wanted: Collection[int], size: int | None
) -> tuple[Vocabulary, npt.NDArray[np.uint32]]:
    """The vocabulary of the wanted ids, and those ids, increasing: their places are the new ids.

    Bytes and the parts of tokens come with them. wanted: also ids that are not in the table. size:
    of the other tokens, the first ones are kept, as many as fit into so many ids. Raises ValueError
    if the size is too small.
    """
    is_byte = np.diff(vocabulary.offsets) == 1
    parts = list(zip(*(side.tolist() for side in table.parts()), strict=True))
    kept: set[int] = set()
    for number in np.flatnonzero(is_byte | np.isin(vocabulary.ids, [*wanted])).tolist():
        kept |= _needed(number, parts, kept)
    others = {*wanted}.difference(vocabulary.ids.tolist())
    n_kept = len(kept) + len(others)
    if size is not None:
        if size < n_kept:
            raise ValueError(
                f"size {size} is too small: bytes, special and added tokens are {n_kept} ids"
            )
        for number in range(len(vocabulary)):
            more = _needed(number, parts, kept)
            if len(kept) + len(others) + len(more) > size:
                break
            kept |= more
    numbers = np.array(sorted(kept), np.uint32)
    old_ids = np.union1d(vocabulary.ids[numbers], np.array([*others], np.uint32))
    tokens, offsets = gather_tokens(vocabulary.tokens, vocabulary.offsets, numbers)
    lefts = table.lefts()[numbers]
    # With a token that no merges make, a table would merge any two tokens that form it.
    is_plain = vocabulary.lefts is None and ((lefts > 0) | is_byte[numbers]).all()
    new_ids = {id: new for new, id in enumerate(old_ids.tolist())}
    return Vocabulary(
        tokens,
        offsets,
        np.searchsorted(old_ids, vocabulary.ids[numbers]).astype(np.uint32),
        lefts=None if is_plain else lefts,
        decode_only={
            new_ids[id]: token for id, token in vocabulary.decode_only.items() if id in new_ids
        },
    ), old_ids


def _needed(number: int, parts: list[tuple[int, int]], kept: set[int]) -> set[int]:
    """The token with this number and its parts, without those that are kept."""
    needed: set[int] = set()
    waiting = [number]
    while waiting:
        number = waiting.pop()
        if number != NO_ID and number not in kept and number not in needed:
            needed.add(number)
            waiting += parts[number]
    return needed
