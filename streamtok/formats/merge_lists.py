"""Vocabularies given by a list of merges, as in the files of GPT-2 and Hugging Face.

A rank table merges any two neighbours that form a token, and a token's id is its rank. A list of
merges names the pairs that merge, in order, and ids are listed separately. With such a list, a
token may come from no pair at all, or from several pairs at different positions in the list; ids
may be in any order; and a pre-token that is a token becomes its id without merging only if the file
says so (`ignore_merges`).

The engine needs no second algorithm for this. Of the pairs that make a token, only one can ever
merge, and the core finds it. So the tokens are sorted in the order of these pairs, and everything
else works as for a rank table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import TokenTable, find_parts, find_rows, gather_tokens
from ..errors import VocabularyError
from ..vocabulary.table import MAX_ID, NO_ID, Vocabulary, check_tokens
from .loading import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..vocabulary.pieces import Pieces

    Numbers = NDArray[np.uint32]

__all__ = [
    "find_merges",
    "from_rows",
    "in_order_of_merges",
    "to_merges",
    "without_unreachable_tokens",
]

MAX_MERGES = (1 << 21) - 257  # a limit of the core


def find_merges(names: Sequence[str], merges: list[Any], prefix: str = "") -> Numbers:
    """uint32 [m, 3]: for each merge, the numbers of its two texts and of the text that they make.

    names: the texts by number. merges: as in a tokenizer.json, "left right" or ["left", "right"].
    prefix: each right text must begin with it, and loses it in the merge. Raises VocabularyError
    for a merge that is malformed or contains an unknown text, naming the merge's position.
    """
    if len(merges) > MAX_MERGES or len(names) > MAX_MERGES:
        raise VocabularyError(
            f"there are {len(names)} tokens and {len(merges)} merges: "
            f"at most {MAX_MERGES} of each are possible"
        )
    rows, position = find_rows(list(names), merges, prefix)
    if position < 0:
        return rows
    merge = merges[position]
    pair = merge.split(" ", 2) if type(merge) is str else merge
    if type(pair) is not list or [*map(type, pair)] != [str, str]:
        raise VocabularyError(f"merge {position}: expected two tokens, found {shown(merge)}")
    left, right = pair
    where = f"merge {position}, of {shown(left)} and {shown(right)}"
    if not right.startswith(prefix):
        raise VocabularyError(f"{where}: the second must begin with {shown(prefix)}")
    known = set(names)
    missing = next(x for x in (left, right, left + right[len(prefix) :]) if x not in known)
    raise VocabularyError(f"{where}: {shown(missing)} is not in the vocabulary")


def from_rows(
    blob: bytes,
    offsets: Numbers,
    numbers: NDArray[np.int64],
    rows: Numbers,
    *,
    ignore_merges: bool,
    chosen: NDArray[np.bool_] | None = None,
    decode_only: Mapping[int, bytes] = MappingProxyType({}),
) -> Vocabulary:
    """The vocabulary made of tokens and an ordered list of merges.

    numbers: the tokens' ids, in any order. rows: the merges, as `find_merges` returns them. For a
    pair that is listed twice, the later row counts, as in the programs that read such files.
    chosen: bool [n], the tokens to use; None: all. ignore_merges: whether a pre-token that is a
    token becomes its id without merging; otherwise, tokens that no merges make can only be decoded.
    decode_only: further ids that can only be decoded. The result is a plain rank table if that is
    equivalent. Raises `VocabularyError`.
    """
    order = np.argsort(numbers, kind="stable").astype(np.uint32)
    if chosen is not None:
        order = order[chosen[order]]
        rows = rows[chosen[rows].all(axis=1)]
    rank = np.zeros(len(numbers), np.uint32)
    rank[order] = np.arange(len(order), dtype=np.uint32)
    blob, offsets = gather_tokens(blob, offsets, order)
    numbers, rows = numbers[order], rank[rows]
    lengths = np.diff(offsets)
    check_tokens(blob, offsets, numbers, decode_only)
    own = numbers.astype(np.uint32)
    made_by, lefts, rights, is_complete = find_parts(blob, offsets, rows)
    made = lefts != NO_ID
    if not decode_only and is_complete and (ignore_merges or (made | (lengths == 1)).all()):
        in_order = made_by[made]
        if (in_order[1:] > in_order[:-1]).all():  # merges are in order of id, so ids are ranks
            return Vocabulary(blob, offsets, own, parts=(lefts, rights))
    parts = made_by, lefts, rights
    return in_order_of_merges(blob, offsets, own, parts, None, dict(decode_only), ignore_merges)


def in_order_of_merges(
    blob: bytes,
    offsets: Numbers,
    own: Numbers,
    parts: tuple[Numbers, Numbers, Numbers],
    byte_ids: Numbers | None,
    decode_only: dict[int, bytes],
    ignore_merges: bool,
    model: Pieces | None = None,
) -> Vocabulary:
    """A vocabulary of bytes, tokens that merges make, and tokens that only a look-up finds.

    own: the id of each token. parts: for each token, as `find_parts` returns them. byte_ids: see
    `Vocabulary`. Raises VocabularyError.
    """
    rows, lefts, rights = parts
    made = rows.astype(np.int64)
    made[np.diff(offsets) == 1] = -1
    is_kept = (made < NO_ID) | ignore_merges
    for i in np.flatnonzero(~is_kept).tolist():
        decode_only.setdefault(int(own[i]), blob[int(offsets[i]) : int(offsets[i + 1])])
    by_merge = np.lexsort((own, made))
    order = by_merge[is_kept[by_merge]].astype(np.uint32)
    rank = np.full(len(own) + 1, NO_ID, np.uint32)
    rank[order] = np.arange(len(order), dtype=np.uint32)
    left_bytes = np.zeros(len(order), np.uint32)
    lefts, rights = lefts[order], rights[order]
    left_bytes[lefts != NO_ID] = np.diff(offsets)[lefts[lefts != NO_ID]]
    # The new numbers of the parts; NO_ID is kept.
    lefts, rights = (np.take(rank, np.minimum(side, len(own))) for side in (lefts, rights))
    kept, bounds = gather_tokens(blob, offsets, order)
    return Vocabulary(
        kept,
        bounds,
        own[order],
        lefts=left_bytes,
        byte_ids=byte_ids,
        decode_only=decode_only,
        parts=(lefts, rights),
        model=model,
    )


def to_merges(vocabulary: Vocabulary) -> list[tuple[bytes, bytes]]:
    """The pairs that can merge, in order: an equivalent list of merges.

    It has one pair for each token that merges make; no other pair can ever merge.
    """
    lefts = lefts_of(vocabulary)
    return [
        (token[:left], token[left:])
        for token, left in zip(vocabulary.to_list(), lefts.tolist(), strict=True)
        if left
    ]


def lefts_of(vocabulary: Vocabulary) -> NDArray[np.uint32]:
    """uint32 [n]: the size of each token's left part in bytes; 0 if no merge makes the token."""
    if vocabulary.lefts is not None:
        return vocabulary.lefts
    v = vocabulary
    return TokenTable(v.tokens, v.offsets, v.ids, None, v.byte_ids, v.ties).lefts()


def without_unreachable_tokens(vocabulary: Vocabulary) -> Vocabulary:
    """The vocabulary, in which tokens that no merges make become ids that can only be decoded.

    Such tokens take part in no merge, so merging does not change. The result encodes as
    `vocabulary` does if pre-tokens are not looked up before merging.
    """
    is_kept = (lefts_of(vocabulary) > 0) | (np.diff(vocabulary.offsets) == 1)
    if is_kept.all():
        return vocabulary
    kept = np.flatnonzero(is_kept).astype(np.uint32)
    tokens, offsets = gather_tokens(vocabulary.tokens, vocabulary.offsets, kept)
    rows = zip(vocabulary.ids.tolist(), vocabulary.to_list(), is_kept.tolist(), strict=True)
    decode_only = {id: token for id, token, stays in rows if not stays and id <= MAX_ID}
    return Vocabulary(
        tokens,
        offsets,
        vocabulary.ids[is_kept],
        lefts=None if vocabulary.lefts is None else vocabulary.lefts[is_kept],
        byte_ids=vocabulary.byte_ids,
        ties=None if vocabulary.ties is None else vocabulary.ties[is_kept],
        decode_only={**vocabulary.decode_only, **decode_only},
    )
