"""Text for display: every character is visible, and none affects a terminal.

Spaces, line ends and control characters become symbols. Bytes that are not UTF-8 become hexadecimal
in angle brackets, and other invisible characters their code points.

>>> visible(b" to\\tbe\\n"), visible(b"\\xe6\\x9d"), visible("\\u200b\\x1b[31m")
('·to⇥be⏎', '<E6><9D>', '<U+200B>␛[31m')
"""

from __future__ import annotations

import unicodedata

_SIGNS = {" ": "·", "\n": "⏎", "\r": "␍", "\t": "⇥", "\x7f": "␡"}
# Printable to Python, but invisible: fillers, variation selectors, an empty Braille pattern.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0").union(
    map(chr, [*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])
)
_CIRCLE = "◌"  # carries a combining character, which would join the previous token


def visible(token: str | bytes) -> str:
    """str: the text of a token, in printable characters only."""
    text = token.decode("utf-8", "surrogateescape") if isinstance(token, bytes) else token
    if not text:
        return ""
    if text.isascii() and text.isprintable():
        return text.replace(" ", "·")
    shown = "".join([_sign(character) for character in text])
    return _CIRCLE + shown if unicodedata.category(shown[0])[0] == "M" else shown


def width(shown: str) -> int:
    """int: the terminal columns of a text that `visible` returned.

    Wide East Asian characters and emoji take two columns, combining characters none. Terminals
    differ in spacing combining characters (Mc) and in the newest emoji; the former are counted as
    `wcwidth` does.
    """
    return len(shown) if shown.isascii() else sum([_columns(character) for character in shown])


def _sign(character: str) -> str:
    if character.isprintable() and character not in _UNSEEN:  # the only white space is U+0020
        return _SIGNS.get(character, character)
    if character in _SIGNS:
        return _SIGNS[character]
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if 0xDC80 <= code <= 0xDCFF:
        return f"<{code - 0xDC00:02X}>"
    return f"<U+{code:04X}>"


def _columns(character: str) -> int:
    if unicodedata.category(character)[0] == "M":
        return 0
    if "\u1160" <= character <= "\u11ff" or "\ud7b0" <= character <= "\ud7ff":
        return 0  # vowels and final consonants of Hangul join the syllable that they follow
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
