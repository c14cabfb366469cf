"""The bundled form of a vocabulary, and the three vocabularies that come with the package.

A bundled file holds a header, two arrays of little-endian uint32, and spelled-out bytes. The
arrays have one entry for each token, in order of rank. They give the numbers of the two tokens
that token i is made of: its left part and its right part. A token that is not made of two earlier
tokens is spelled out: its left entry is 2**32 - 1, its right entry is its length, and its bytes
follow the arrays. Ids are 0 … n - 1. The CRC covers everything after it, so a flipped bit is found.

The core needs exactly these parts, so that loading neither decompresses nor searches. Version 2
held the deflated tokens and the lengths of the left parts. This is the size of all three files,
and the time to make a `Vocabulary` and its `TokenTable`:

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

BUNDLED_NAMES = ("r50k_base", "cl100k_base", "o200k_base")

_MAGIC = b"stokvoc"
_VERSION = 3
_HEADER = struct.Struct("<7sB4I")  # magic, version, CRC, tokens, bytes spelled out, flags
_CRC_END = 12
_ALL_MERGE = 1  # flag: no merge makes any spelled-out token that is longer than a byte


def loads_bundled(data: bytes, source: str = "<bytes>") -> Vocabulary:
    """Read the contents of a bundled file. Any damage raises `VocabularyError` naming `source`."""
    if data[: len(_MAGIC)] != _MAGIC or len(data) < _HEADER.size:
        raise VocabularyError(f"{source} is not a bundled vocabulary, or is cut short")
    _, version, crc, count, n_spelled, flags = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise VocabularyError(
            f"{source} has version {version} of the bundled form: expected version {_VERSION}"
        )
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
        object.__setattr__(vocabulary, "parts", (lefts, rights))
    return vocabulary


def dumps_bundled(vocabulary: Vocabulary) -> bytes:
    """The contents of a bundled file.

    Raises `VocabularyError` unless `vocabulary` is a rank table with the ids 0 … n - 1.
    """
    if not vocabulary.is_rank_table or vocabulary.ids[-1] != len(vocabulary) - 1:
        raise VocabularyError("only a rank table with the ids 0 … n - 1 can be bundled")
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
    tail = b"".join(spelled)
    body = np.array(parts, "<u4").T.tobytes() + tail
    fields = len(parts), len(tail), _ALL_MERGE if all_merge else 0
    crc = binascii.crc32(_HEADER.pack(_MAGIC, _VERSION, 0, *fields)[_CRC_END:] + body)
    return _HEADER.pack(_MAGIC, _VERSION, crc, *fields) + body


def bundled_path(name: str) -> str:
    """The path, inside the package, of the bundled vocabulary `name`."""
    if name not in BUNDLED_NAMES:
        raise VocabularyError(
            f"no bundled vocabulary is named {name!r}: expected one of {', '.join(BUNDLED_NAMES)}"
        )
    return os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", name + ".vocab")


def load_bundled(name: str) -> Vocabulary:
    """Load one of `BUNDLED_NAMES` from the package's data. Raises `VocabularyError`."""
    path = bundled_path(name)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise VocabularyError(f"the bundled vocabulary {name} cannot be read: {error}") from error
    return loads_bundled(data, path)


def save_bundled(vocabulary: Vocabulary, path: str | os.PathLike[str]) -> None:
    """Write a bundled file. It appears when it is complete. Raises `VocabularyError`, `OSError`."""
    from ..files.part_file import write_whole  # not needed to encode

    write_whole(path, dumps_bundled(vocabulary))
