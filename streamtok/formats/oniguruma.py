"""Patterns in the dialect of Oniguruma, which Hugging Face's tokenizers uses, and back.

Most of what pre-tokenization patterns use is the same in both dialects. Four things differ, and are
refused or rewritten: `x{1,3}+`, which is possessive here and a repeated repetition there; `$`, the
very end here and the end of a line there; flags other than i; `&&` and nested sets. To write a
pattern for Oniguruma, possessive quantifiers are made greedy, and the DFA tables of the result must
equal those of the pattern.
"""

from __future__ import annotations

import re

from ..errors import PatternError, VocabularyError
from ..patterns.budget import Budget
from ..patterns.pattern import Pattern
from ..patterns.sequence import same_pieces
from .loading import shown

__all__ = ["from_oniguruma", "quoted", "to_oniguruma"]

# The parts of a pattern: an escape, a set, the start of a group, a quantifier, any character.
_PARTS = re.compile(
    r"""\\[pPx]\{[^}]{0,99}\} | \\. | \[\^?\]?(?:\\[pP]\{[^}]{0,99}\}|\\.|[^\]\\])*\]?
    | \(\?[^:=!>)]{0,99}[:=!>)]
    | (?P<quantifier>\{\d*,?\d*\}|[*+?])(?P<more>[+?]?) | .""",
    re.VERBOSE | re.DOTALL,
)


def from_oniguruma(pattern: str, place: str) -> str:
    """`pattern`, if it means the same here. Otherwise raises VocabularyError naming the part."""
    try:
        Budget(pattern)
    except PatternError as error:
        raise VocabularyError(f"{place}: {error}") from error
    for part in _PARTS.finditer(pattern):
        text = part[0]
        if part["more"] == "+" and text.startswith("{"):
            _refuse(place, part, "is a repeated repetition in Oniguruma, and not possessive")
        if text in ("$", "^"):
            _refuse(place, part, "matches at every line in Oniguruma")
        if text.startswith("(?") and text not in ("(?:", "(?i:", "(?=", "(?!", "(?>"):
            _refuse(place, part, "starts a group that is not supported")
        if text.startswith("[") and ("&&" in text or "[" in text[1:].replace(r"\[", "")):
            _refuse(place, part, "is a nested set, which is not supported")
        if text in (r"\h", r"\H", r"\R", r"\X", r"\K", r"\O", r"\y", r"\Y"):
            _refuse(place, part, "is an escape that is not supported")
    try:
        Pattern.compile(pattern)
    except PatternError as error:
        raise VocabularyError(f"{place}: the pattern {shown(pattern)}: {error}") from error
    return pattern


def _refuse(place: str, part: re.Match[str], why: str) -> None:
    raise VocabularyError(f"{place}: {part[0]!r} at position {part.start()} of the pattern {why}")


def to_oniguruma(pattern: str) -> str:
    """A pattern that makes the same pre-tokens in Oniguruma. Raises VocabularyError if it fails."""
    rewritten = "".join(
        part["quantifier"] if part["more"] == "+" else r"\z" if part[0] == "$" else part[0]
        for part in _PARTS.finditer(pattern)
    )
    try:
        from_oniguruma(rewritten, "rewritten for Oniguruma")
        expected, found = Pattern.compile(pattern), Pattern.compile(rewritten)
    except PatternError as error:
        raise VocabularyError(f"no DFA matches the pattern {pattern!r}: {error}") from error
    if not same_pieces(expected, found):
        raise VocabularyError(
            f"the pattern {pattern!r} makes other pre-tokens without its possessive quantifiers, "
            "which Oniguruma does not have"
        )
    return rewritten


def quoted(text: str) -> str:
    """A pattern that matches exactly `text`."""
    return "".join(rf"\x{{{ord(c):x}}}" if not c.isalnum() else c for c in text)
