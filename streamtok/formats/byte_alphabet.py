"""GPT-2's alphabet: a printable character for each byte, so that tokens can be written as text.

Bytes that are printable in Latin-1 stand for themselves; the others, in order, for the characters
from U+0100 on (`bytes_to_unicode` in github.com/openai/gpt-2, MIT).
"""

from __future__ import annotations

__all__ = ["BYTES_OF", "CHARACTERS", "to_bytes", "to_text"]

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in set(_PRINTABLE)]

CHARACTERS: dict[int, str] = {byte: chr(byte) for byte in _PRINTABLE} | {
    byte: chr(0x100 + i) for i, byte in enumerate(_OTHERS)
}
BYTES_OF: dict[str, int] = {character: byte for byte, character in CHARACTERS.items()}

# The same as tables of str.translate, which is ten times as fast as a loop.
_TO_LATIN = {ord(character): byte for character, byte in BYTES_OF.items()} | {
    byte: 0x110000 - 1
    for byte in _OTHERS  # what is no character of the alphabet stays no byte
}
_FROM_LATIN = {byte: ord(character) for byte, character in CHARACTERS.items()}


def to_bytes(text: str) -> bytes | None:
    """The bytes that `text` stands for, None if it has a character that is not in the alphabet.

    >>> to_bytes("Ġthe")
    b' the'
    """
    try:
        return text.translate(_TO_LATIN).encode("latin-1")
    except UnicodeEncodeError:
        return None


def to_text(token: bytes) -> str:
    """What stands for `token` in a file.

    >>> to_text(b" the")
    'Ġthe'
    """
    return token.decode("latin-1").translate(_FROM_LATIN)
