"""Vocabularies given by a list of merges, as in the files of GPT-2 and Hugging Face.

A rank table merges any two neighbours that are a token together, and a token's id is its rank. A
list of merges names the pairs that merge, in order, and gives the ids apart from them. So a token
may come from no pair at all, or from several pairs at different places of the list; ids may be in
any order; and a pre-token that is a token becomes its id without merging only if the file says so
(`ignore_merges`).

The engine needs no second algorithm for this. Only one of the pairs that make a token can ever
merge, and the core finds it. So the tokens are put in the order of those pairs, and the rest works
as for a rank table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from .._core.encode import TokenTable, find_parts, gather_tokens
from ..errors import VocabularyError
from ..vocabulary.table import (
    MAX_ID,
    MAX_TOKEN_BYTES,
    NO_ID,
    Vocabulary,
    check_bytes,
    check_length,
    check_numbers,
    offsets_of,
    show_token,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..models.pieces import Pieces

    Numbers = NDArray[np.uint32]

__all__ = [
    "from_merges",
    "from_rows",
    "in_order_of_merges",
    "to_merges",
    "without_unreachable_tokens",
]

MAX_MERGES = (1 << 21) - 257  # a limit of the core


def from_merges(
    ids: Mapping[bytes, int],
    merges: Iterable[tuple[bytes, bytes]],
    *,
    ignore_merges: bool,
    decode_only: Mapping[int, bytes] | None = None,
) -> Vocabulary:
    """A vocabulary of tokens with their ids, and of the pairs that merge, in order of priority.

    The later entry counts for a pair that is listed twice, as in the programs that read such files.
    ignore_merges: whether a pre-token that is a token becomes its id without merging; otherwise,
    tokens that no merges make can only be decoded. decode_only: more ids that can only be decoded.
    The result is a plain rank table if that is equivalent. Raises `VocabularyError` for merges
    whose parts or result are not tokens, and for tokens and ids as `Vocabulary.from_ranks` does.
    """
    tokens = sorted(ids, key=ids.__getitem__)
    _check(tokens, ids)
    index = {token: i for i, token in enumerate(tokens)}
    places: dict[tuple[int, int], int] = {}
    made: dict[tuple[int, int], int] = {}
    for place, (left, right) in enumerate(merges):
        for part in (left, right, left + right):
            if part not in index:
                raise VocabularyError(
                    f"merge {place}, of {show_token(left)} and {show_token(right)}: "
                    f"{show_token(part)} is not in the vocabulary"
                )
        pair = index[left], index[right]
        places[pair], made[pair] = place, index[left + right]
    if len(places) > MAX_MERGES or len(tokens) > MAX_MERGES:
        raise VocabularyError(
            f"there are {len(tokens)} tokens and {len(places)} merges: "
            f"at most {MAX_MERGES} of each are possible"
        )
    # In order of the rank that counts, so that a pair's row is its priority.
    rows = [(*pair, made[pair]) for pair in sorted(places, key=places.__getitem__)]
    vocabulary = from_rows(
        b"".join(tokens),
        offsets_of(np.fromiter(map(len, tokens), np.int64, len(tokens))),
        np.array([ids[token] for token in tokens], np.uint32),
        np.array(rows, np.uint32).reshape(-1, 3),
        ignore_merges=ignore_merges,
        decode_only=decode_only,
    )
    if vocabulary is None:
        raise VocabularyError("an id that can only be decoded is that of a token, too")
    return vocabulary


def from_rows(
    blob: bytes,
    offsets: NDArray[np.uint32],
    ids: NDArray[np.uint32],
    merges: NDArray[np.uint32],
    *,
    ignore_merges: bool,
    decode_only: Mapping[int, bytes] | None = None,
) -> Vocabulary | None:
    """What `from_merges` makes, of arrays; None for arrays that it would refuse: it says why.

    blob, offsets, ids: the tokens, strictly in order of id. merges: uint32 [m, 3], the numbers of
    the two that merge and of what they make. Costs about 20 ms for 100 000 tokens.
    """
    decode_only = dict(decode_only or {})
    lengths = np.diff(offsets)
    if not _are_sound(blob, offsets, lengths, ids, merges, decode_only):
        return None
    rows, lefts, rights, is_complete = find_parts(blob, offsets, merges)
    singles = lengths == 1
    unmade = (lefts == NO_ID) & ~singles
    made = np.flatnonzero(lefts != NO_ID)
    if not decode_only and is_complete and (ignore_merges or not unmade.any()):
        places = rows[made]
        if (places[1:] > places[:-1]).all():  # in order of id, so ids are ranks
            return Vocabulary(blob, offsets, ids, parts=(lefts, rights))
    parts = rows, lefts, rights
    return in_order_of_merges(blob, offsets, ids, parts, None, decode_only, ignore_merges)


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
    """Bytes, then tokens of merges, then those that only a look-up finds, as their ids are.

    own: the id of each token; parts: of each, as `find_parts` has them; byte_ids: as in
    `from_character_merges`. Raises VocabularyError.
    """
    rows, lefts, rights = parts
    made = rows.astype(np.int64)
    made[np.diff(offsets) == 1] = -1
    is_kept = (made < NO_ID) | ignore_merges
    for i in np.flatnonzero(~is_kept).tolist():
        decode_only.setdefault(int(own[i]), blob[int(offsets[i]) : int(offsets[i + 1])])
    by_place = np.lexsort((own, made))
    order = by_place[is_kept[by_place]].astype(np.uint32)
    place = np.full(len(own) + 1, NO_ID, np.uint32)
    place[order] = np.arange(len(order), dtype=np.uint32)
    left_bytes = np.zeros(len(order), np.uint32)
    lefts, rights = lefts[order], rights[order]
    left_bytes[lefts != NO_ID] = np.diff(offsets)[lefts[lefts != NO_ID]]
    kept, bounds = gather_tokens(blob, offsets, order)
    return Vocabulary(
        kept,
        bounds,
        own[order],
        lefts=left_bytes,
        byte_ids=byte_ids,
        decode_only=decode_only,
        parts=(_renumbered(lefts, place), _renumbered(rights, place)),
        model=model,
    )


def _are_sound(
    blob: bytes,
    offsets: NDArray[np.uint32],
    lengths: NDArray[np.uint32],
    ids: NDArray[np.uint32],
    merges: NDArray[np.uint32],
    decode_only: Mapping[int, bytes],
) -> bool:
    """Whether `from_merges` would refuse none of this."""
    if not 256 <= len(ids) <= MAX_MERGES or len(merges) > MAX_MERGES:
        return False
    if int(lengths.min()) < 1 or int(lengths.max()) > MAX_TOKEN_BYTES:
        return False
    if not (ids[1:] > ids[:-1]).all() or int(ids[-1]) > MAX_ID:
        return False
    if decode_only:
        others = np.fromiter(decode_only, np.uint32, len(decode_only))
        places = np.minimum(np.searchsorted(ids, others), len(ids) - 1)
        if (ids[places] == others).any():
            return False
    singles = np.frombuffer(blob, np.uint8)[offsets[:-1][lengths == 1]]
    return len(singles) == 256 and len(set(singles.tolist())) == 256


def _renumbered(parts: NDArray[np.uint32], place: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The new numbers of `parts`; NO_ID stays."""
    return np.take(place, np.minimum(parts, len(place) - 1))


def to_merges(vocabulary: Vocabulary) -> list[tuple[bytes, bytes]]:
    """The pairs that can merge, in order: an equivalent list of merges.

    It has one pair for each token that merges make. Other pairs could never merge.
    """
    lefts = lefts_of(vocabulary)
    return [
        (token[:left], token[left:])
        for token, left in zip(vocabulary.to_list(), lefts.tolist(), strict=True)
        if left
    ]


def lefts_of(vocabulary: Vocabulary) -> NDArray[np.uint32]:
    """uint32 [n]: the bytes of the left part that merges into each token, 0 if none does."""
    if vocabulary.lefts is not None:
        return vocabulary.lefts
    v = vocabulary
    return TokenTable(v.tokens, v.offsets, v.ids, None, v.byte_ids, v.ties).lefts()


def without_unreachable_tokens(vocabulary: Vocabulary) -> Vocabulary:
    """The vocabulary, with tokens that no merges make turned into ids that can only be decoded.

    Merging stays the same, because such tokens take part in no merge. This is how a table encodes
    if pre-tokens are not looked up before merging.
    """
    lefts = lefts_of(vocabulary)
    lengths = np.diff(vocabulary.offsets)
    is_kept = (lefts > 0) | (lengths == 1)
    if is_kept.all():
        return vocabulary
    tokens = vocabulary.to_list()
    ids = vocabulary.ids.tolist()
    unreachable = np.flatnonzero(~is_kept).tolist()
    decode_only = {ids[i]: tokens[i] for i in unreachable if ids[i] <= MAX_ID}
    return Vocabulary(
        b"".join([tokens[i] for i in np.flatnonzero(is_kept).tolist()]),
        offsets_of(lengths[is_kept]),
        vocabulary.ids[is_kept],
        lefts=None if vocabulary.lefts is None else vocabulary.lefts[is_kept],
        byte_ids=vocabulary.byte_ids,
        ties=None if vocabulary.ties is None else vocabulary.ties[is_kept],
        decode_only={**vocabulary.decode_only, **decode_only},
    )


def _check(tokens: list[bytes], ids: Mapping[bytes, int]) -> None:
    for token in tokens:
        check_length(len(token), ids[token], "id")
    check_numbers(sorted((number, token) for token, number in ids.items()), "id")
    check_bytes({token[0] for token in tokens if len(token) == 1})
