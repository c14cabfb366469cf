"""Remove tokens from a byte-level BPE vocabulary.

A token stays reachable if the two tokens that merge into it, and all their parts, are kept.
Merges keep their order. While the bytes of a token merge into it, only its own merges happen, in
the same way as before, since fewer others compete with them.
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
    """The pruned vocabulary, and the kept old ids, sorted: the index of each is its new id.

    Single bytes and the parts of wanted tokens are kept, too. wanted: ids, including some that are
    not in the table. size: if given, other tokens are kept in order until the next would make more
    than `size` ids. Raises ValueError if `size` is too small.
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
    # A rank table would merge any two tokens that form a token, even one that no merges make.
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
    """The numbers of the token `number` and of all its parts that are not yet in `kept`."""
    needed: set[int] = set()
    waiting = [number]
    while waiting:
        number = waiting.pop()
        if number != NO_ID and number not in kept and number not in needed:
            needed.add(number)
            waiting += parts[number]
    return needed
