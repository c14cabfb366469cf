"""What `character_merges.from_character_merges` makes, of the tables of a tokenizer.json: in bulk.

The order of the tokens is the same: 256 bytes, the prefixes of characters, all others. Prefixes are
found as numbers: a character's UTF-8 as four bytes, the first one highest, zeros after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._core.encode import find_parts, gather_tokens
from ..engines.rules import MARK
from ..errors import VocabularyError
from ..vocabulary.table import MAX_TOKEN_BYTES, NO_ID, Vocabulary
from .merge_lists import MAX_MERGES, in_order_of_merges

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from .._core.json_tables import TextIds

    Numbers = NDArray[np.uint32]

__all__ = ["from_character_rows"]


def from_character_rows(
    ids: TextIds,
    merges: Numbers,
    kept: NDArray[np.bool_],
    folds: bool,
    *,
    ignore_merges: bool,
) -> Vocabulary | None:
    """The vocabulary of tokens of characters; None for tokens that `character_vocabulary` refuses.

    merges: uint32 [m, 3], as in `MergeRows`. kept: bool [n], which of the ids are entries. folds:
    whether "▁" is a space; no text has a real one then.
    """
    blob, offsets = ids.replaced(MARK.encode(), b" ") if folds else ids.arrays()[:2]
    numbers = ids.arrays()[2]
    byte_rows = [ids.row(f"<0x{byte:02X}>") for byte in range(256)]
    byte_ids = {byte: row for byte, row in enumerate(byte_rows) if row >= 0 and kept[row]}
    is_byte = np.zeros(len(ids), np.bool_)
    is_byte[list(byte_ids.values())] = True
    entries = np.flatnonzero(kept & ~is_byte)
    lengths = np.diff(offsets)
    if is_byte[merges].any() or not len(entries) or not kept[merges].all():
        return None
    if int(lengths[entries].min()) < 1 or int(lengths[entries].max()) > MAX_TOKEN_BYTES:
        return None
    taken = np.sort(numbers[kept])
    if (taken[1:] == taken[:-1]).any():
        return None
    data = np.frombuffer(blob + b"\0\0\0", np.uint8)
    prefixes, token_of = _characters(data, offsets, lengths, entries)
    others = entries[token_of[entries] == NO_ID].astype(np.uint32)
    first = 256 + sum(map(len, prefixes))
    token_of[others] = np.arange(first, first + len(others), dtype=np.uint32)
    known = np.flatnonzero((token_of < 256) & kept & ~is_byte)
    own = np.full(first + len(others), NO_ID, np.uint32)
    own[token_of[entries]] = numbers[entries]
    if len(set(byte_ids) | set(token_of[known].tolist())) < 256:
        return None
    rows = np.concatenate([_prefix_merges(prefixes), token_of[merges]]).astype(np.uint32)
    if len(rows) > MAX_MERGES or len(own) > MAX_MERGES:
        return None
    rest, bounds = gather_tokens(blob, offsets, others)
    tokens = b"".join([bytes(range(256)), *map(_spelled, prefixes, (2, 3, 4)), rest])
    sizes = [np.ones(256, np.int64), *(np.full(len(p), k) for k, p in enumerate(prefixes, 2))]
    all_lengths = np.concatenate([*sizes, np.diff(bounds)])
    starts = np.concatenate([[0], np.cumsum(all_lengths)]).astype(np.uint32)
    fallback = own[:256].copy()
    decode_only: dict[int, bytes] = {}
    for byte, row in byte_ids.items():
        number = int(numbers[row])
        fallback[byte] = number
        if own[byte] == NO_ID:
            own[byte] = number
        else:
            decode_only[number] = bytes([byte])  # the id of the byte still decodes
    parts = find_parts(tokens, starts, rows)[:3]
    try:
        return in_order_of_merges(tokens, starts, own, parts, fallback, decode_only, ignore_merges)
    except VocabularyError:
        return None


def _characters(
    data: NDArray[np.uint8], offsets: Numbers, lengths: Numbers, entries: NDArray[Any]
) -> tuple[list[Numbers], Numbers]:
    """The prefixes of 2, 3 and 4 bytes, each sorted; uint32 [n]: the tokens of single characters.

    NO_ID for the rows of other texts.
    """
    begins = offsets[entries].astype(np.int64)
    leads = data[begins]
    sizes = 1 + (leads >= 0xC0).astype(np.int64) + (leads >= 0xE0) + (leads >= 0xF0)
    is_single = sizes == lengths[entries]
    rows, begins, sizes = entries[is_single], begins[is_single], sizes[is_single]
    keys = np.zeros(len(rows), np.uint32)
    for i in range(4):
        byte = np.where(i < sizes, data[begins + i], 0).astype(np.uint32)
        keys |= byte << np.uint32(24 - 8 * i)
    token_of = np.full(len(offsets) - 1, NO_ID, np.uint32)
    token_of[rows[sizes == 1]] = keys[sizes == 1] >> 24
    prefixes = []
    first = 256
    for size in (2, 3, 4):
        shift = np.uint32(8 * (4 - size))
        found = np.sort(keys[sizes >= size] >> shift)
        found = found[np.append(True, found[1:] != found[:-1])] if len(found) else found
        whole = sizes == size
        places = np.searchsorted(found, keys[whole] >> shift)
        token_of[rows[whole]] = first + places
        first += len(found)
        prefixes.append(found)
    return prefixes, token_of


def _prefix_merges(prefixes: list[Numbers]) -> Numbers:
    """uint32 [k, 3]: what merges first: a byte, or a shorter prefix, and the next byte."""
    rows = []
    first = 256
    for i, prefix in enumerate(prefixes):
        before = prefix >> np.uint32(8)
        lefts = before.astype(np.int64)
        if i:
            lefts = first - len(prefixes[i - 1]) + np.searchsorted(prefixes[i - 1], before)
        made = np.arange(first, first + len(prefix))
        rows.append(np.stack([lefts, prefix & np.uint32(0xFF), made], axis=1))
        first += len(prefix)
    return np.concatenate(rows).astype(np.uint32)


def _spelled(prefix: Numbers, size: int) -> bytes:
    """The bytes of prefixes of this size, end to end."""
    return prefix.astype(">u4").view(np.uint8).reshape(-1, 4)[:, 4 - size :].tobytes()
