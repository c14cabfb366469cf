"""Vocabularies that merge characters: SentencePiece's, and Hugging Face's without ByteLevel.

The core merges bytes, so the bytes of each character have to merge first. Each character of the
vocabulary is a token, and so is each prefix of its bytes; both precede all real tokens in the order
of merges. UTF-8 shows where a character begins, so these merges never cross into the next one, and
all of them happen before any others. The merges of the file then start from characters. A prefix
has no id: if it remains after merging, it is part of an unknown character, which becomes the ids of
its bytes.

Text may be cut between two characters that are adjacent in no token. In most vocabularies, these
places are before spaces. The pre-tokens between them are short, so the cache can hold them.
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
from ..vocabulary.table import NO_ID, Vocabulary, check_tokens
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
    """The first 2, 3 and 4 bytes of each non-ASCII character, which merge before all tokens.

    The characters themselves are included.
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
    """The vocabulary made of tokens with their ids and an ordered list of the pairs that merge.

    rows: the merges, as `find_merges` returns them; tokens are numbered in the order of `ids`. For
    a pair that is listed twice, the later row counts. byte_ids: ids by byte, for characters that
    are not tokens; a byte whose own character is a token needs no id. None: texts contain only
    characters that are tokens. ignore_merges: whether a pre-token that is a token becomes its id
    without merging. decode_only: further ids, which can only be decoded. folds: whether "▁" in
    `ids` means a space. model: turns pre-tokens into symbols, which are then merged. Raises
    VocabularyError for an id given twice.
    """
    numbers = np.fromiter(ids.values(), np.int64, len(ids))
    n_characters = np.fromiter(map(len, ids), np.int64, len(ids))
    joined = "".join(ids)
    texts = (joined.replace(MARK, " ") if folds else joined).encode()
    begins = np.flatnonzero(np.frombuffer(texts + b" ", np.int8) >= -64)  # offsets of characters
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
    # The number of each token: characters are in `first`, longer tokens follow.
    is_longer = n_characters > 1
    number_of = np.uint32(len(first) - 1) + np.cumsum(is_longer, dtype=np.uint32)
    number_of[singles] = [index[character] for character in characters]
    # In order of priority: first the prefixes, each made from a shorter one and a byte.
    prefix_rows = [(index[token[:-1]], token[-1], index[token]) for token in prefixes]
    pairs = np.concatenate([np.array(prefix_rows, np.uint32).reshape(-1, 3), number_of[rows]])
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
    own[number_of] = numbers
    fallback = [byte_ids.get(byte, int(own[byte])) for byte in range(256)]
    decodable = dict(decode_only)
    for byte in range(256):
        if own[byte] == NO_ID:
            own[byte] = fallback[byte]
        elif byte in byte_ids:
            decodable[byte_ids[byte]] = bytes([byte])  # the byte's id can still be decoded
    return in_order_of_merges(
        blob, offsets, own.astype(np.uint32), parts, np.array(fallback, np.uint32), decodable,
        ignore_merges, model,
    )  # fmt: skip


def pattern_of_cuts(vocabulary: Vocabulary) -> str:
    """A pattern that cuts only where no merge of this vocabulary of characters can cross.

    It cuts before a space, unless some token contains the preceding character followed by a space.
    """
    before: set[str] = set()
    blob, offsets = vocabulary.tokens, vocabulary.offsets
    spaces = np.flatnonzero(np.frombuffer(blob, np.uint8) == ord(" "))
    numbers = np.searchsorted(offsets, spaces, "right") - 1  # of the tokens that contain them
    for i in sorted(set(numbers[spaces > offsets[numbers]].tolist())):
        token = blob[int(offsets[i]) : int(offsets[i + 1])]
        before.update(_JOINED_SPACES.findall(token.decode("utf-8", "replace")))
    if not before:
        return CUT_BEFORE_SPACES
    if len(before) > 64 or "\ufffd" in before:
        return WHOLE_TEXT_PATTERN
    joined = "".join(f"\\x{{{ord(character):x}}}" for character in sorted(before))
    return rf"(?:[ {joined}]|[^ {joined}](?=[^ ]))*[\s\S]"
