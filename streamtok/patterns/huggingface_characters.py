"""The characters that Hugging Face's pre-tokenizers treat as punctuation and as digits.

The sets were read from `tokenizers` 0.23, code point by code point; a test repeats this.
Punctuation is roughly that of Unicode 8 (the crate unicode_categories has not changed since 2016)
and all of ASCII's; digits are the numbers of Unicode 17.
"""

from __future__ import annotations

__all__ = ["DIGIT", "NOT_PUNCTUATION", "PUNCTUATION"]

# Differences from \p{P} and ASCII's punctuation in the tables of `patterns/unicode_classes.py`.
_MORE = r"\x{166d}\x{111c9}"
_FEWER = (
    r"\x{61d}\x{9fd}\x{a76}\x{c77}\x{c84}\x{1b4e}-\x{1b4f}\x{1b7d}-\x{1b7f}\x{2e43}-\x{2e4f}"
    r"\x{2e52}-\x{2e5d}\x{10d6e}\x{10ead}\x{10f55}-\x{10f59}\x{10f86}-\x{10f89}"
    r"\x{113d4}-\x{113d5}\x{113d7}-\x{113d8}\x{1144b}-\x{1144f}\x{1145a}-\x{1145b}\x{1145d}"
    r"\x{11660}-\x{1166c}\x{116b9}\x{1183b}\x{11944}-\x{11946}\x{119e2}\x{11a3f}-\x{11a46}"
    r"\x{11a9a}-\x{11a9c}\x{11a9e}-\x{11aa2}\x{11b00}-\x{11b09}\x{11be1}\x{11c41}-\x{11c45}"
    r"\x{11c70}-\x{11c71}\x{11ef7}-\x{11ef8}\x{11f43}-\x{11f4f}\x{11fff}\x{12ff1}-\x{12ff2}"
    r"\x{16d6d}-\x{16d6f}\x{16e97}-\x{16e9a}\x{16fe2}\x{1e5ff}\x{1e95e}-\x{1e95f}"
)

_ABOUT = rf"!-/:-@\[-`{{-~\p{{P}}{_MORE}"
PUNCTUATION = rf"(?![{_FEWER}])[{_ABOUT}]"
NOT_PUNCTUATION = rf"(?:[^\s{_ABOUT}]|[{_FEWER}])"  # and not white space
DIGIT = r"[\p{N}\x{11de0}-\x{11de9}\x{16ff4}-\x{16ff6}]"
