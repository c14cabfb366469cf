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

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

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
    "from_named_merges",
    "in_order_of_merges",
    "rows_of",
    "to_merges",
    "without_unreachable_tokens",
]

MAX_MERGES = (1 << 21) - 257  # a limit of the core
_Text = TypeVar("_Text", bytes, str)


def from_merges(
    ids: Mapping[bytes, int],
    merges: Sequence[tuple[bytes, bytes]],
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
    return from_named_merges(
        tokens, tokens, [ids[token] for token in tokens], merges,
        ignore_merges=ignore_merges, decode_only=decode_only or {},
    )  # fmt: skip


def from_named_merges(
    tokens: list[bytes],
    names: Sequence[_Text],
    numbers: list[int],
    merges: Sequence[Sequence[_Text]],
    *,
    ignore_merges: bool,
    decode_only: Mapping[int, bytes],
) -> Vocabulary:
    """As `from_merges`; names: what the merges call the tokens, which are in order of `numbers`."""
    lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
    _check(tokens, numbers, lengths)
    if not decode_only.keys().isdisjoint(numbers):
        raise VocabularyError("an id that can only be decoded is that of a token, too")
    rows = rows_of(merges, dict(zip(names, range(len(names)), strict=True)))
    blob, offsets, own = b"".join(tokens), offsets_of(lengths), np.array(numbers, np.uint32)
    places, lefts, rights, is_complete = find_parts(blob, offsets, rows)
    made = lefts != NO_ID
    if not decode_only and is_complete and (ignore_merges or (made | (lengths == 1)).all()):
        in_order = places[made]
        if (in_order[1:] > in_order[:-1]).all():  # of id, so ids are ranks
            return Vocabulary(blob, offsets, own, parts=(lefts, rights))
    parts = places, lefts, rights
    return in_order_of_merges(blob, offsets, own, parts, None, dict(decode_only), ignore_merges)


def rows_of(merges: Sequence[Sequence[_Text]], index: Mapping[_Text, int]) -> Numbers:
    """uint32 [m, 3]: the numbers of the two that merge, and of what they make.

    index: the number of each token. Raises VocabularyError for what has none, and for too many.
    """
    if len(merges) > MAX_MERGES or len(index) > MAX_MERGES:
        raise VocabularyError(
            f"there are {len(index)} tokens and {len(merges)} merges: "
            f"at most {MAX_MERGES} of each are possible"
        )
    lefts, rights = [pair[0] for pair in merges], [pair[1] for pair in merges]
    columns = lefts, rights, map(operator.add, lefts, rights)
    try:
        numbers = [
            np.fromiter(map(index.__getitem__, column), np.uint32, len(merges))
            for column in columns
        ]
    except KeyError:
        for place, (left, right) in enumerate(merges):
            for part in (left, right, left + right):
                if part not in index:
                    raise VocabularyError(
                        f"merge {place}, of {show_token(left)} and {show_token(right)}: "
                        f"{show_token(part)} is not in the vocabulary"
                    ) from None
        raise
    return np.stack(numbers, axis=1)


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


def _check(tokens: list[bytes], numbers: list[int], lengths: NDArray[np.int64]) -> None:
    for i in np.flatnonzero((lengths < 1) | (lengths > MAX_TOKEN_BYTES)).tolist():
        check_length(len(tokens[i]), numbers[i], "id")
    if numbers:
        check_numbers([*zip(numbers, tokens, strict=True)], "id")
    check_bytes({tokens[i][0] for i in np.flatnonzero(lengths == 1).tolist()})
