"""The bundled form of a vocabulary, and those that come with the package.

A header, then, in order of rank, the number of the token that is the left part of each token, then
those of the right parts, as little-endian uint32, then bytes. A token that is not made of two
before it has 2**32 - 1 for its left part and its length for the right one, and its bytes are
spelled out at the end. Ids are 0 … n - 1. The CRC is over all that follows it, so no flipped bit
goes unseen.

That is all that the core wants to know: nothing is unpacked, and no part is looked up. Version 2
held the tokens themselves, in deflate streams, and the lengths of the left parts. All three
files, and the time that making a `Vocabulary` and its `TokenTable` takes:

                all three    cl100k_base
  version 2     1.74 MB       17.7 ms
  version 3     2.80 MB        5.2 ms
"""

from __future__ import annotations

import binascii
import os
import struct

import numpy as np

from .._core.encode import TokenTable, spell
from ..errors import VocabularyError
from .table import NO_ID, Vocabulary

PACKED_NAMES = ("r50k_base", "cl100k_base", "o200k_base")

_MAGIC = b"stokvoc"
_VERSION = 3
_HEADER = struct.Struct("<7sB4I")  # magic, version, CRC, tokens, bytes spelled out, ALL_MERGE
_CRC_END = 12
_ALL_MERGE = 1  # flag: what is spelled out and longer than a byte is made by no merge


def loads_packed(data: bytes, source: str = "<bytes>") -> Vocabulary:
    """Unpack a vocabulary; anything but a sound file raises `VocabularyError` naming `source`."""
    if data[: len(_MAGIC)] != _MAGIC or len(data) < _HEADER.size:
        raise VocabularyError(f"{source} is not a packed vocabulary, or only the beginning of one")
    _, version, crc, count, n_spelled, flags = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise VocabularyError(f"{source} has version {version} of the packed form, not {_VERSION}")
    size = _HEADER.size + 8 * count + n_spelled
    if len(data) != size:
        raise VocabularyError(f"{source} is damaged: it has {len(data)} bytes instead of {size}")
    view = memoryview(data)
    if binascii.crc32(view[_CRC_END:]) != crc:
        raise VocabularyError(f"{source} is damaged: its checksum is wrong")
    try:
        parts = np.frombuffer(data, "<u4", 2 * count, _HEADER.size).astype(np.uint32, copy=False)
        lefts, rights = parts[:count], parts[count:]
        tokens, offsets = spell(lefts, rights, view[size - n_spelled :])
        ids = np.arange(count, dtype=np.uint32)
        offsets.flags.writeable = ids.flags.writeable = False
        vocabulary = Vocabulary(tokens, offsets, ids)
    except (ValueError, VocabularyError) as error:
        raise VocabularyError(f"{source} is damaged: {error}") from None
    if flags == _ALL_MERGE:
        object.__setattr__(vocabulary, "known_parts", (lefts, rights))
    return vocabulary


def dumps_packed(vocabulary: Vocabulary) -> bytes:
    """Pack a vocabulary, which must be a rank table with the ids 0 … n - 1."""
    if not vocabulary.is_rank_table or vocabulary.ids[-1] != len(vocabulary) - 1:
        raise VocabularyError("only rank tables whose ids have no gap can be packed")
    lefts = TokenTable(vocabulary.tokens, vocabulary.offsets, vocabulary.ids).lefts().tolist()
    numbers = vocabulary.to_ranks()
    parts, spelled, all_merge = [], [], True
    for i, (token, left) in enumerate(zip(numbers, lefts, strict=True)):
        pair = (numbers[token[:left]], numbers[token[left:]]) if left else (NO_ID, len(token))
        if left and max(pair) >= i:
            all_merge = False
            pair = (NO_ID, len(token))
        if pair[0] == NO_ID:
            spelled.append(token)
        parts.append(pair)
    body = np.array(parts, "<u4").T.tobytes() + b"".join(spelled)
    fields = len(parts), len(b"".join(spelled)), _ALL_MERGE if all_merge else 0
    crc = binascii.crc32(_HEADER.pack(_MAGIC, _VERSION, 0, *fields)[_CRC_END:] + body)
    return _HEADER.pack(_MAGIC, _VERSION, crc, *fields) + body


def packed_path(name: str) -> str:
    """Say where in the package the packed vocabulary `name` is kept."""
    if name not in PACKED_NAMES:
        raise VocabularyError(f"no packed vocabulary {name!r}: there are {', '.join(PACKED_NAMES)}")
    return os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", name + ".vocab")


def load_packed(name: str) -> Vocabulary:
    """Load one of `PACKED_NAMES` from the package's own data."""
    path = packed_path(name)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise VocabularyError(f"the packed vocabulary {name} cannot be read: {error}") from error
    return loads_packed(data, path)


def save_packed(vocabulary: Vocabulary, path: str | os.PathLike[str]) -> None:
    """Write a packed vocabulary, whole or not at all."""
    from ..files.part_file import write_whole  # not needed to encode

    write_whole(path, dumps_packed(vocabulary))
