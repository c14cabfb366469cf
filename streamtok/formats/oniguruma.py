"""Split patterns in the dialect of Oniguruma, which Hugging Face's tokenizers speaks, and back.

Most of what split patterns use is the same in both dialects. Four things are not, and are refused
or rewritten: `x{1,3}+` is possessive here and a repeated repetition there; `$` is the very end here
and the end of a line there; flags other than i; `&&` and nested sets. Where a pattern is written
for Oniguruma, possessive quantifiers are made greedy, and the tables are compared: they must be
those of the pattern itself.
"""

from __future__ import annotations

import re

from ..errors import PatternError, VocabularyError
from ..patterns.budget import Budget
from ..patterns.pattern import Pattern
from ..patterns.sequence import same_pieces
from .loading import shown

__all__ = ["from_oniguruma", "quoted", "to_oniguruma"]

# A pattern in parts: an escape, a set, a group's opening, a quantifier, any other character.
_PARTS = re.compile(
    r"""\\[pPx]\{[^}]{0,99}\} | \\. | \[\^?\]?(?:\\[pP]\{[^}]{0,99}\}|\\.|[^\]\\])*\]?
    | \(\?[^:=!>)]{0,99}[:=!>)]
    | (?P<quantifier>\{\d*,?\d*\}|[*+?])(?P<more>[+?]?) | .""",
    re.VERBOSE | re.DOTALL,
)


def from_oniguruma(pattern: str, place: str) -> str:
    """The pattern, unless something in it means something else here: VocabularyError."""
    try:
        Budget(pattern)
    except PatternError as error:
        raise VocabularyError(f"{place}: {error}") from error
    for part in _PARTS.finditer(pattern):
        text = part[0]
        if part["more"] == "+" and text.startswith("{"):
            _refuse(place, part, "is a repeated repetition in Oniguruma, not a possessive one")
        if text in ("$", "^"):
            _refuse(place, part, "stands for the ends of lines in Oniguruma")
        if text.startswith("(?") and text not in ("(?:", "(?i:", "(?=", "(?!", "(?>"):
            _refuse(place, part, "is a group that is not known here")
        if text.startswith("[") and ("&&" in text or "[" in text[1:].replace(r"\[", "")):
            _refuse(place, part, "is a set of sets")
        if text in (r"\h", r"\H", r"\R", r"\X", r"\K", r"\O", r"\y", r"\Y"):
            _refuse(place, part, "is an escape that is not known here")
    try:
        Pattern.compile(pattern)
    except PatternError as error:
        raise VocabularyError(f"{place}: the split pattern {shown(pattern)}: {error}") from error
    return pattern


def _refuse(place: str, part: re.Match[str], why: str) -> None:
    raise VocabularyError(
        f"{place}: {part[0]!r} at position {part.start()} of the split pattern {why}"
    )


def to_oniguruma(pattern: str) -> str:
    """A pattern that means to Oniguruma what `pattern` means here; else VocabularyError."""
    rewritten = "".join(
        part["quantifier"] if part["more"] == "+" else r"\z" if part[0] == "$" else part[0]
        for part in _PARTS.finditer(pattern)
    )
    try:
        from_oniguruma(rewritten, "rewritten for Oniguruma")
        wanted, found = Pattern.compile(pattern), Pattern.compile(rewritten)
    except PatternError as error:
        raise VocabularyError(f"the split pattern {pattern!r} has no tables: {error}") from error
    if not same_pieces(wanted, found):
        raise VocabularyError(
            f"the split pattern {pattern!r} means something else without possessive quantifiers"
        )
    return rewritten


def quoted(text: str) -> str:
    """A pattern that matches `text` and nothing else."""
    return "".join(rf"\x{{{ord(c):x}}}" if not c.isalnum() else c for c in text)
