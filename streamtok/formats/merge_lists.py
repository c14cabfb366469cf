"""Vocabularies that say which pairs merge: lists of merges, as in GPT-2's and Hugging Face's files.

A rank table merges any two neighbours that are a token together, and a token's id is its rank. A
list of merges names the pairs, in order, and ids are given apart from it. The two differ: a token
may be there that no listed pair makes, a token may be made in two ways at different places of the
list, ids may be in any order, and a piece that is a token is looked up first only where the file
says so. The engine does all that with the table it has, since a token is only ever made by one of
the pairs (`_core/makers.pyx` finds it): tokens stand in the order of the merges that make them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._core.makers import find_makers
from .._core.vocab import TokenTable
from ..errors import VocabularyError
from ..vocabulary.table import MAX_ID, MAX_TOKEN_BYTES, Vocabulary, offsets_of, show_token

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["from_merges", "to_merges", "without_lost_tokens"]

MAX_MERGES = (1 << 21) - 257  # of the core


def from_merges(
    ids: Mapping[bytes, int],
    merges: Iterable[tuple[bytes, bytes]],
    *,
    whole_pieces: bool,
    others: Mapping[int, bytes] | None = None,
) -> Vocabulary:
    """Make a vocabulary of tokens with their ids, and of the pairs that merge, the first first.

    Of a pair that is listed twice the later place counts, as in the programs that read such files.
    whole_pieces: whether a piece that is a token is that token even if merges do not make it;
    otherwise such tokens only decode. others: further ids that only decode. The result is a plain
    rank table where that says the same. Raises `VocabularyError` for merges of or into something
    that is no token, and for tokens and ids as `Vocabulary.from_ranks` does.
    """
    tokens = list(ids)
    _check(tokens, ids)
    index = {token: i for i, token in enumerate(tokens)}
    places: dict[tuple[int, int], int] = {}
    for place, (left, right) in enumerate(merges):
        for part in (left, right, left + right):
            if part not in index:
                raise VocabularyError(
                    f"merge {place} is of {show_token(left)} and {show_token(right)}, "
                    f"but {show_token(part)} is not in the vocabulary"
                )
        places[index[left], index[right]] = place
    if len(places) > MAX_MERGES or len(tokens) > MAX_MERGES:
        raise VocabularyError(f"{len(places)} merges are more than the {MAX_MERGES} that fit")
    # In order of the place that counts; a pair's row is its priority.
    pairs = sorted(places, key=places.__getitem__)
    rows = np.array(pairs, np.uint32).reshape(-1, 2)
    blob = b"".join(tokens)
    makers = find_makers(blob, offsets_of(_lengths(tokens)), rows)
    return _ordered(
        tokens, ids, makers, pairs, whole_pieces=whole_pieces, decode_only=others or {}
    )


def _ordered(
    tokens: list[bytes],
    ids: Mapping[bytes, int],
    makers: NDArray[np.uint32],
    pairs: Sequence[tuple[int, int]],
    *,
    whole_pieces: bool,
    others: Mapping[int, bytes],
) -> Vocabulary:
    """The vocabulary in which each token's number says when it is made."""
    made = makers.tolist()
    is_single = [len(token) == 1 for token in tokens]
    decode_only = dict(others)
    order = []
    for i, token in enumerate(tokens):
        if is_single[i] or made[i] < len(pairs) or whole_pieces:
            order.append(i)
        else:
            decode_only[ids[token]] = token
    # Bytes, then what merges make, then what only a look-up finds. Beyond that the ids decide.
    order.sort(key=lambda i: (-1 if is_single[i] else made[i], ids[tokens[i]]))
    kept = [tokens[i] for i in order]
    lefts = np.array(
        [len(tokens[pairs[made[i]][0]]) if made[i] < len(pairs) else 0 for i in order], np.uint32
    )
    vocabulary = Vocabulary(
        b"".join(kept),
        offsets_of(_lengths(kept)),
        np.array([ids[token] for token in kept], np.uint32),
        lefts=lefts,
        decode_only=decode_only,
    )
    return _as_rank_table(vocabulary) or vocabulary


def _as_rank_table(vocabulary: Vocabulary) -> Vocabulary | None:
    """The same as a plain rank table, or None where that would merge otherwise.

    The merges made must be the same and in the same order: then every run is.
    """
    assert vocabulary.lefts is not None
    lefts = vocabulary.lefts
    made = lefts > 0
    if vocabulary.decode_only or not (np.diff(vocabulary.ids[made].astype(np.int64)) > 0).all():
        return None
    by_id = np.argsort(vocabulary.ids)
    tokens = vocabulary.to_list()
    plain = Vocabulary(
        b"".join([tokens[i] for i in by_id.tolist()]),
        offsets_of(np.diff(vocabulary.offsets)[by_id]),
        vocabulary.ids[by_id],
    )
    table = TokenTable(plain.tokens, plain.offsets, plain.ids)
    return plain if np.array_equal(table.lefts(), lefts[by_id]) else None


def to_merges(vocabulary: Vocabulary) -> list[tuple[bytes, bytes]]:
    """The pairs that can merge, in order: a list of merges that says the same.

    One pair for each token that merges make; others in the list could never happen.
    """
    lefts = lefts_of(vocabulary)
    return [
        (token[:left], token[left:])
        for token, left in zip(vocabulary.to_list(), lefts.tolist(), strict=True)
        if left
    ]


def lefts_of(vocabulary: Vocabulary) -> NDArray[np.uint32]:
    """For each token the bytes of the left of the two that merge into it, 0 where none do."""
    if vocabulary.lefts is not None:
        return vocabulary.lefts
    v = vocabulary
    return TokenTable(v.tokens, v.offsets, v.ids, None, v.byte_ids, v.ties).lefts()


def without_lost_tokens(vocabulary: Vocabulary) -> Vocabulary:
    """The vocabulary without the tokens that merges do not make; these then only decode.

    The same merges happen, since such tokens take part in none. It is how a table is used in which
    pieces are not looked up.
    """
    lefts = lefts_of(vocabulary)
    lengths = np.diff(vocabulary.offsets)
    is_kept = (lefts > 0) | (lengths == 1)
    if is_kept.all():
        return vocabulary
    tokens = vocabulary.to_list()
    ids = vocabulary.ids.tolist()
    others = dict(vocabulary.decode_only)
    others |= {ids[i]: tokens[i] for i in np.flatnonzero(~is_kept).tolist() if ids[i] <= MAX_ID}
    return Vocabulary(
        b"".join([tokens[i] for i in np.flatnonzero(is_kept).tolist()]),
        offsets_of(lengths[is_kept]),
        vocabulary.ids[is_kept],
        lefts=None if vocabulary.lefts is None else vocabulary.lefts[is_kept],
        byte_ids=vocabulary.byte_ids,
        ties=None if vocabulary.ties is None else vocabulary.ties[is_kept],
        decode_only=others,
    )


def _lengths(tokens: list[bytes]) -> NDArray[np.int64]:
    return np.fromiter(map(len, tokens), np.int64, len(tokens))


def _check(tokens: list[bytes], ids: Mapping[bytes, int]) -> None:
    owners: dict[int, bytes] = {}
    for token in tokens:
        number = ids[token]
        if not 1 <= len(token) <= MAX_TOKEN_BYTES:
            raise VocabularyError(
                f"the token of id {number} has {len(token)} bytes: not in 1 … {MAX_TOKEN_BYTES}"
            )
        if not 0 <= number <= MAX_ID:
            raise VocabularyError(f"the id of {show_token(token)} is {number}: not in 0 … {MAX_ID}")
        if number in owners:
            raise VocabularyError(
                f"id {number} is given twice: to {show_token(owners[number])} "
                f"and to {show_token(token)}"
            )
        owners[number] = token
    missing = [byte for byte in range(256) if bytes([byte]) not in ids]
    if missing:
        some = ", ".join(f"0x{byte:02x}" for byte in missing[:8]) + ", …" * (len(missing) > 8)
        raise VocabularyError(
            f"{len(missing)} of the 256 single bytes are not in the vocabulary: {some}"
        )
