"""Vocabularies that merge characters: SentencePiece's, and Hugging Face's without ByteLevel.

The core merges bytes. So the bytes of each character merge first: every character that the
vocabulary knows is a token, and so is each prefix of its bytes, before all real tokens in the order
of merges. UTF-8 shows where a character begins, so these merges cross no boundary, and all of them
happen before any others. They leave the characters, and from there on the merges are those of the
file. The prefixes have no id: what is left of them, which is a character that the vocabulary does
not know, becomes the ids of its bytes.

Where no token holds two neighbouring characters, no merge can cross, and text may be cut there. In
most vocabularies that is before spaces. It gives short pre-tokens, which the cache knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from .._core.encode import find_parts, gather_tokens
from ..engines.rules import MARK
from ..errors import VocabularyError
from ..patterns.named import WHOLE_TEXT_PATTERN
from ..vocabulary.arrays import offsets_of
from ..vocabulary.table import (
    NO_ID,
    Vocabulary,
    check_tokens,
)
from .merge_lists import MAX_MERGES, in_order_of_merges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..vocabulary.pieces import Pieces

    Numbers = NDArray[np.uint32]

__all__ = [
    "CUT_BEFORE_SPACES",
    "character_prefixes",
    "from_character_merges",
    "pattern_of_cuts",
]

CUT_BEFORE_SPACES = r" *[^ ]+| +"
_JOINED_SPACES = re.compile(r"[^ ](?= )")


def character_prefixes(characters: Iterable[str]) -> list[bytes]:
    """What merges before all tokens: the first 2, 3 and 4 bytes of the characters that have them.

    The characters themselves are among them.
    """
    wide = [character.encode() for character in sorted(characters) if character > "\x7f"]
    found: dict[bytes, None] = {}
    for size in (2, 3, 4):
        found |= dict.fromkeys(character[:size] for character in wide if len(character) >= size)
    return list(found)


def from_character_merges(
    ids: Mapping[str, int],
    rows: Numbers,
    byte_ids: Mapping[int, int] | None,
    *,
    ignore_merges: bool,
    decode_only: Mapping[int, bytes] = MappingProxyType({}),
    folds: bool = False,
    model: Pieces | None = None,
) -> Vocabulary:
    """A vocabulary of tokens with their ids, and of the pairs of them that merge, in order.

    rows: as `find_merges` has them, by the numbers of tokens in `ids`. The later place counts for a
    pair that is listed twice. byte_ids: what becomes of the bytes of characters that are not
    tokens; a byte whose own character is one needs none. None: no text has other characters.
    ignore_merges: whether a pre-token that is a token becomes its id without merging. decode_only:
    more ids that can only be decoded. folds: a "▁" in `ids` is a space. model: makes symbols of
    pre-tokens, which are merged. Raises VocabularyError for ids that are given twice.
    """
    numbers = np.fromiter(ids.values(), np.int64, len(ids))
    n_characters = np.fromiter(map(len, ids), np.int64, len(ids))
    joined = "".join(ids)
    texts = (joined.replace(MARK, " ") if folds else joined).encode()
    begins = np.flatnonzero(np.frombuffer(texts + b" ", np.int8) >= -64)  # of characters
    bounds = begins[offsets_of(n_characters)].astype(np.uint32)
    is_closed = byte_ids is None
    byte_ids = byte_ids or {}
    more = {number: b"<0x%02X>" % byte for byte, number in byte_ids.items()}
    check_tokens(texts, bounds, numbers, more if is_closed else more | dict(decode_only))
    singles = np.flatnonzero(n_characters == 1)
    characters = [
        texts[begin:end]
        for begin, end in zip(bounds[singles].tolist(), bounds[singles + 1].tolist(), strict=True)
    ]
    prefixes = character_prefixes(character.decode() for character in characters)
    first = [*(bytes([byte]) for byte in range(256)), *prefixes]
    index = {token: i for i, token in enumerate(first)}
    # Where each token is: among these, or else after them.
    is_longer = n_characters > 1
    place = np.uint32(len(first) - 1) + np.cumsum(is_longer, dtype=np.uint32)
    place[singles] = [index[character] for character in characters]
    # In the order of priority: a prefix comes of its beginning and a byte, before all else.
    prefix_rows = [(index[token[:-1]], token[-1], index[token]) for token in prefixes]
    pairs = np.concatenate([np.array(prefix_rows, np.uint32).reshape(-1, 3), place[rows]])
    n_tokens = len(first) + int(is_longer.sum())
    if len(pairs) > MAX_MERGES or n_tokens > MAX_MERGES:
        raise VocabularyError(
            f"there are {n_tokens} tokens and {len(pairs)} merges: at most {MAX_MERGES} of each "
            "are possible, with the bytes of characters"
        )
    longer, ends = gather_tokens(texts, bounds, np.flatnonzero(is_longer).astype(np.uint32))
    blob = b"".join(first) + longer
    lengths = np.concatenate([[*map(len, first)], np.diff(ends)])
    offsets = offsets_of(lengths)
    parts = find_parts(blob, offsets, pairs)[:3]
    own = np.full(n_tokens, NO_ID, np.int64)
    own[place] = numbers
    fallback = [byte_ids.get(byte, int(own[byte])) for byte in range(256)]
    decodable = dict(decode_only)
    for byte in range(256):
        if own[byte] == NO_ID:
            own[byte] = fallback[byte]
        elif byte in byte_ids:
            decodable[byte_ids[byte]] = bytes([byte])  # the id of the byte still decodes
    return in_order_of_merges(
        blob, offsets, own.astype(np.uint32), parts, np.array(fallback, np.uint32), decodable,
        ignore_merges, model,
    )  # fmt: skip


def pattern_of_cuts(vocabulary: Vocabulary) -> str:
    """A pattern that cuts text where no merge of `vocabulary`, one of characters, can cross.

    It cuts before spaces, unless the character before one is before a space in a token.
    """
    before: set[str] = set()
    blob, offsets = vocabulary.tokens, vocabulary.offsets
    spaces = np.flatnonzero(np.frombuffer(blob, np.uint8) == ord(" "))
    numbers = np.searchsorted(offsets, spaces, "right") - 1  # of their tokens
    for i in sorted(set(numbers[spaces > offsets[numbers]].tolist())):
        token = blob[int(offsets[i]) : int(offsets[i + 1])]
        before.update(_JOINED_SPACES.findall(token.decode("utf-8", "replace")))
    if not before:
        return CUT_BEFORE_SPACES
    if len(before) > 64 or "\ufffd" in before:
        return WHOLE_TEXT_PATTERN
    joined = "".join(f"\\x{{{ord(character):x}}}" for character in sorted(before))
    return rf"(?:[ {joined}]|[^ {joined}](?=[^ ]))*[\s\S]"
