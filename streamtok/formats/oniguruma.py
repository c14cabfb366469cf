"""Converts patterns from the dialect of Oniguruma, which Hugging Face's tokenizers uses, and back.

Most features of pre-tokenization patterns are the same in both dialects. Five differ and are
refused: `x{1,3}+`, which is possessive in streamtok and a repeated repetition in Oniguruma; `^`,
which matches at every line in Oniguruma; flags other than i; `&&` and most nested sets; and, in
`(?i:…)`, letters that may have case variants of several characters, such as "ss" for "ß".

Three differ and are rewritten. Oniguruma's `\\w` has no joiners, but outside of sets it has the
superscript digits and the fractions of Latin-1. A set within a set, as in BLOOM's pattern, becomes
part of the outer one. `$`, as in the patterns of DeepSeek LLM and V2, is the end of the text in
streamtok and the end of a line in Oniguruma.

To write a pattern for Oniguruma, possessive quantifiers are made greedy, and DFA tables are
compared to make sure that the result cuts every text as the original does.
"""

from __future__ import annotations

import re

from ..errors import PatternError, VocabularyError
from ..patterns.budget import Budget
from ..patterns.pattern import Pattern
from ..patterns.sequence import same_pieces
from .loading import errors_at, shown

__all__ = ["from_oniguruma", "quoted", "to_oniguruma"]

# The parts of a pattern: an escape, a set, the start of a group, a quantifier, any character.
_PARTS = re.compile(
    r"""\\[pPx]\{[^}]{0,99}\} | \\. | \[\^?\]?(?:\\[pP]\{[^}]{0,99}\}|\\.|[^\]\\])*\]?
    | \(\?[^:=!>)]{0,99}[:=!>)]
    | (?P<quantifier>\{\d*,?\d*\}|[*+?])(?P<more>[+?]?) | .""",
    re.VERBOSE | re.DOTALL,
)
_WORD = r"\p{Posix_Word}"
_WORDS = {r"\w": _WORD, r"\W": r"\P{Posix_Word}"}
_WORDS_BACK = {r"\w": r"\w\x{200c}\x{200d}", _WORD: r"\w", r"\P{Posix_Word}": r"\W"}
_END_OF_LINE = r"(?![^\n])"
_LATIN_1 = r"\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}"
_IN_SET = re.compile(r"\\(?:[pP]\{[^}]{0,99}\}|.)", re.DOTALL)


# A set with a set inside, whose ends form no range with their neighbours; or a part to skip.
_NESTED = re.compile(
    r"""(?P<before>\[\^?(?:\\.|[^][\\])*(?:\\.|[^][\\-]))\[(?![]^:-])(?P<inner>(?:\\.|[^][\\])*(?<!-))\]
    (?P<after>(?!-)(?:\\.|[^][\\])*\]) | \\. | \[\^?\]?(?:\\.|[^]\\])*\]""",
    re.VERBOSE | re.DOTALL,
)


def _without_nested(found: re.Match[str]) -> str:
    if found["before"] is None or "&&" in found[0]:
        return found[0]
    return found["before"] + found["inner"] + found["after"]


def from_oniguruma(pattern: str, position: str) -> str:
    """The equivalent pattern for streamtok. Raises VocabularyError naming a part without an
    equivalent.
    """
    with errors_at(position):
        Budget(pattern)
    pattern = _NESTED.sub(_without_nested, pattern)
    for part in _PARTS.finditer(pattern):
        text = part[0]
        if part["more"] == "+" and text.startswith("{"):
            _refuse(position, part, "is a repeated repetition in Oniguruma, and not possessive")
        if text == "^":
            _refuse(position, part, "matches at every line in Oniguruma")
        if text.startswith("(?") and text not in ("(?:", "(?i:", "(?=", "(?!", "(?>"):
            _refuse(position, part, "starts a group that is not supported")
        if text.startswith("[") and ("&&" in text or "[" in text[1:].replace(r"\[", "")):
            _refuse(position, part, "is a nested set, which is not supported")
        if text in (r"\h", r"\H", r"\R", r"\X", r"\K", r"\O", r"\y", r"\Y"):
            _refuse(position, part, "is an escape that is not supported")
    _check_folding(pattern, position)
    translated = "".join(_translated(part[0]) for part in _PARTS.finditer(pattern))
    try:
        Pattern.compile(translated)
    except PatternError as error:
        raise VocabularyError(f"{position}: the pattern {shown(pattern)}: {error}") from error
    return translated


# Parts that end a run of letters in (?i:…), and have no case variants themselves.
_ENDS_RUN = re.compile(r"\||\.|\[\^.*|\[[\x00-\x5b\x5d-\x7f]*|\\[pPsSwWdD].*", re.DOTALL)
_LONG_FOLDING = re.compile("ss|st|ff|fi|fl", re.IGNORECASE)  # in ASCII


def _check_folding(pattern: str, position: str) -> None:
    """Refuse letters in (?i:…) that may match more or fewer letters in Oniguruma, but not in
    streamtok.
    """
    is_folding, row = [False], ""
    for part in _PARTS.finditer(pattern):
        text = part[0]
        if text.startswith("("):
            is_folding.append(is_folding[-1] or text == "(?i:")
        elif text == ")":
            if len(is_folding) > 1:
                is_folding.pop()
        elif part["quantifier"] or not is_folding[-1] or _ENDS_RUN.fullmatch(text):
            row = ""
        else:
            row += text
            is_plain = text.isascii() and text[0] != "[" and not text[1:2].isalnum()
            if not is_plain or _LONG_FOLDING.search(row):
                why = "in (?i:…) may match a case variant of several characters in Oniguruma"
                _refuse(position, part, f"{why}, such as ss for ß")


def _translated(part: str) -> str:
    if part in _WORDS:
        return ("[^" if part[1] == "W" else "[") + f"{_WORD}{_LATIN_1}]"
    if part == "$":
        return _END_OF_LINE
    if part.startswith("["):
        return _IN_SET.sub(lambda escape: _WORDS.get(escape[0], escape[0]), part)
    return part


def _refuse(position: str, part: re.Match[str], why: str) -> None:
    raise VocabularyError(
        f"{position}: {part[0]!r} at position {part.start()} of the pattern {why}"
    )


def to_oniguruma(pattern: str) -> str:
    """A pattern that makes the same pre-tokens in Oniguruma. Raises VocabularyError without one."""
    rewritten = "".join(_for_oniguruma(part) for part in _PARTS.finditer(pattern))
    try:
        again = from_oniguruma(rewritten, "rewritten for Oniguruma")
        expected, found = Pattern.compile(pattern), Pattern.compile(again)
    except PatternError as error:
        raise VocabularyError(f"no DFA matches the pattern {pattern!r}: {error}") from error
    if not same_pieces(expected, found):
        raise VocabularyError(
            f"the pattern {pattern!r} makes other pre-tokens without its possessive quantifiers, "
            "which Oniguruma does not have"
        )
    return rewritten


def _for_oniguruma(part: re.Match[str]) -> str:
    text = part[0]
    if part["more"] == "+":
        return part["quantifier"]
    if text == "$":
        return r"\z"
    if text in _WORDS:
        return ("[^" if text == r"\W" else "[") + r"\w\x{200c}\x{200d}]"
    if text.startswith("["):
        return _IN_SET.sub(lambda escape: _WORDS_BACK.get(escape[0], escape[0]), text)
    return text


def quoted(text: str) -> str:
    """A pattern that matches exactly `text`."""
    return "".join(rf"\x{{{ord(c):x}}}" if not c.isalnum() else c for c in text)
