"""The byte alphabet of GPT-2: one printable character for each byte, so that tokens are text.

Bytes that are printable in Latin-1 are represented by themselves. The other bytes become, in order,
the characters from U+0100 on (`bytes_to_unicode` in github.com/openai/gpt-2, MIT). Hugging Face
calls it the ByteLevel alphabet.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from .arrays import offsets_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_REMAPPED = [byte for byte in range(256) if byte not in _PRINTABLE]

BYTES_IN_ORDER = (*_PRINTABLE, *_REMAPPED)  # by their characters; also GPT-2's ids of the bytes
CHARACTERS = {byte: chr(byte) for byte in _PRINTABLE} | {
    byte: chr(0x100 + i) for i, byte in enumerate(_REMAPPED)
}
BYTES_OF = {character: byte for byte, character in CHARACTERS.items()}

# Tables for str.translate, which is ten times as fast as a loop. A Latin-1 character outside of the
# alphabet becomes one that Latin-1 cannot encode, so that `to_bytes` detects it.
_TO_LATIN = {ord(character): byte for character, byte in BYTES_OF.items()} | dict.fromkeys(
    _REMAPPED, 0x10FFFF
)
_FROM_LATIN = {byte: ord(character) for byte, character in CHARACTERS.items()}

_BYTE_OF_CODE = np.array([BYTES_OF.get(chr(code), 0x100) for code in range(0x200)], np.uint16)


def to_bytes(text: str) -> bytes | None:
    """The bytes that `text` represents, or None if a character is not in the alphabet.

    >>> to_bytes("Ġthe")
    b' the'
    """
    try:
        return text.translate(_TO_LATIN).encode("latin-1")
    except UnicodeEncodeError:
        return None


def all_to_bytes(texts: Collection[str]) -> tuple[bytes, NDArray[np.uint32], NDArray[np.bool_]]:
    """`to_bytes` of each text: all bytes, n + 1 offsets, and which texts are in the alphabet.

    A text with other characters gets one meaningless byte for each character.
    """
    codes = np.frombuffer("".join(texts).encode("utf-32-le"), "<u4")
    found = _BYTE_OF_CODE[np.minimum(codes, len(_BYTE_OF_CODE) - 1)]
    offsets = offsets_of(np.fromiter(map(len, texts), np.int64, len(texts)))
    has_bytes = np.ones(len(texts), np.bool_)
    has_bytes[np.searchsorted(offsets[1:], np.flatnonzero(found > 0xFF), "right")] = False
    return found.astype(np.uint8).tobytes(), offsets, has_bytes


def to_text(token: bytes) -> str:
    """The characters that represent `token` in a file.

    >>> to_text(b" the")
    'Ġthe'
    """
    return token.decode("latin-1").translate(_FROM_LATIN)
