"""Text as it is shown: every character can be seen, and none does anything to a terminal.

Spaces, line ends and control characters become signs; bytes that are not UTF-8 are hexadecimal
between angle brackets, characters that cannot be seen as their code points.

>>> visible(b" to\\tbe\\n"), visible(b"\\xe6\\x9d"), visible("\\u200b\\x1b[31m")
('·to⇥be⏎', '<E6><9D>', '<U+200B>␛[31m')
"""

from __future__ import annotations

import unicodedata

_SIGNS = {" ": "·", "\n": "⏎", "\r": "␍", "\t": "⇥", "\x7f": "␡"}
# Printable to Python, but nothing is drawn: fillers, selectors of variants, a Braille blank.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0").union(
    map(chr, [*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])
)
_CIRCLE = "◌"  # carries a mark that would combine with the token before


def visible(token: str | bytes) -> str:
    """str: the text of a token, of printable characters only."""
    text = token.decode("utf-8", "surrogateescape") if isinstance(token, bytes) else token
    if not text:
        return ""
    if text.isascii() and text.isprintable():
        return text.replace(" ", "·")
    shown = "".join([_sign(character) for character in text])
    return _CIRCLE + shown if unicodedata.category(shown[0])[0] == "M" else shown


def width(shown: str) -> int:
    """int: the columns that a terminal gives to what `visible` returned.

    Wide East Asian characters and emoji have two, marks that combine none. Terminals differ in
    marks that take up space (Mc) and in the newest emoji; marks are counted as `wcwidth` does.
    """
    return len(shown) if shown.isascii() else sum([_columns(character) for character in shown])


def _sign(character: str) -> str:
    if character.isprintable() and character not in _UNSEEN:  # of white space, only U+0020 is
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
