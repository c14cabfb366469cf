"""The engine for texts that are changed before the pattern cuts them.

Hugging Face's tokenizers change a text in these steps:

1. Added and special tokens are found in the text; a *segment* is the text between two of them.
2. Each segment is normalized separately.
3. Tokens with the flag `normalized` are found in the result and cut it into smaller segments.
4. Pre-tokenizers that change text are applied to each of these separately.

The core does all of this (`_core/stream/changing.pxi`). This module makes its rules: the tokens
with their flags, and the tables of the normalizers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from .._core.encode import ChangeRules, ElementTable, SpecialMatcher, Tail, TokenSet
from ..normalizers import Normalizer
from ..normalizers.elements import MOST_CARING, Elements
from .plain import CoreEngine
from .rules import TextRules, TokenFlags

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .._core.encode import Encoder
    from .template import Template

__all__ = ["ChangingEngine", "can_overlap", "changes_text", "flag_bits", "is_in_word"]

_NO_FLAGS = TokenFlags()
_MAX_COMPARED = 256  # characters of a token: see `can_overlap`
_MAX_COMPARISONS = 1 << 30  # of characters
_LSTRIP, _RSTRIP, _SINGLE_WORD = 1, 2, 4  # as in the core


@lru_cache(maxsize=32)
def _table_of(first: Normalizer | None, second: Normalizer | None = None) -> ElementTable | None:
    """The table of one normalizer, or of two in turn; None if there is nothing to change."""
    if not (first or second):
        return None
    return ElementTable(Elements(first or Normalizer(), second))


def flag_bits(flags: TokenFlags) -> int:
    """The flags as the bits that the core uses."""
    return _LSTRIP * flags.lstrip | _RSTRIP * flags.rstrip | _SINGLE_WORD * flags.single_word


def _token_set(
    matcher: SpecialMatcher, flags: Sequence[TokenFlags], given: Iterable[TokenFlags]
) -> TokenSet:
    """A set for the core. flags: those of each of `matcher.specials`. given: those of tokens that
    need not be found.
    """
    words = _words() if any(one.single_word for one in flags) else None
    return TokenSet(matcher, [*map(flag_bits, flags)], words, any(one.lstrip for one in given))


@lru_cache(maxsize=1)
def _words() -> bytes:
    """One bit per code point: whether `\\w` matches it in Rust's regular expressions."""
    import numpy as np

    from ..patterns.unicode_classes import UnicodeTable

    points = np.arange(0x110000)
    found = UnicodeTable.load().sets["word"].contains(points)
    return np.packbits(found, bitorder="little").tobytes()


def is_in_word(character: str) -> bool:
    """Whether the character belongs to a word; "" does not."""
    code = ord(character) if character else 0
    return bool(_words()[code >> 3] >> (code & 7) & 1)


def changes_text(rules: TextRules, preferred: Sequence[tuple[str, int]]) -> bool:
    """Whether the rules need a `ChangingEngine`: for flags of tokens, or to change text.

    preferred: the special and added tokens, in order of preference.
    """
    if rules.normalizer or rules.second_normalizer:
        return True
    if any(flags[1:] != _NO_FLAGS[1:] for _, flags in rules.token_flags):
        return True
    normalized = {text for text, flags in rules.token_flags if flags.normalized}
    groups: tuple[list[str], list[str]] = [], []
    for text, _ in preferred:
        groups[text in normalized].append(text)
    return can_overlap(*groups)  # if not, two searches find the same tokens as one


def can_overlap(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether a text of one group may overlap a text of the other.

    Returns True without a comparison if that would cost too much.
    """
    if not first or not second:
        return False
    for group, other in ((first, second), (second, first)):
        # The comparison takes more than linear time and memory, so it is bounded. Real files are
        # far below the bounds.
        joined = "\0".join(other)
        if max(map(len, group)) > _MAX_COMPARED or len(group) * len(joined) > _MAX_COMPARISONS:
            return True
        prefixes = {text[:i] for text in other for i in range(1, len(text) + 1)}
        for text in group:
            if text in joined or any(text[i:] in prefixes for i in range(len(text))):
                return True
    return False


class ChangingEngine(CoreEngine):
    """The core's `Encoder`, preceded by normalizers and a search for added tokens with flags."""

    def __init__(
        self,
        encoder: Encoder,
        rules: TextRules,
        preferred: Sequence[tuple[str, int]],
        given: Sequence[TokenFlags] = (),
    ) -> None:
        """preferred: as for `changes_text`. given: the flags of tokens that the core is given, so
        that it need not find them. Raises ValueError for a token that normalizes to "", and for
        steps that a table cannot express.

        If several tokens have the same normalized text, the preferred one hides the others.
        """
        super().__init__(encoder)
        self.normalizer, self.second = rules.normalizer, rules.second_normalizer
        self.flags: Mapping[str, TokenFlags] = dict(rules.token_flags)
        if sum(len(one.steps) for one in (self.normalizer, self.second) if one) > MOST_CARING:
            _table_of(self.normalizer, self.second)  # raises if too many steps see neighbours
        self.tokens, self._given = preferred, given
        normalized: dict[str, tuple[str, int]] = {}
        changed = [token for token in preferred if self._flags_of(token[0]).normalized]
        results = [text for text, _ in changed]
        if self.normalizer:
            results = self.normalizer.normalize_tokens(results, False)
        for found, (text, id) in zip(results, changed, strict=True):
            if not found:
                raise ValueError(
                    f"the added token {text!r} is empty once it is normalized, so it "
                    "would match everywhere; it must not be `normalized`"
                )
            normalized.setdefault(found, (text, id))
        # The longest normalized text first.
        self.normalized = sorted(normalized.items(), key=lambda item: -len(item[0].encode()))

    def tail(
        self,
        matcher: SpecialMatcher,
        errors: str,
        template: Template,
        finder: object = None,
    ) -> Tail:
        return Tail(self.encoder, matcher, errors, *template, self.rules(matcher), finder)

    def _make_rules(self, matcher: SpecialMatcher) -> ChangeRules:
        first, second = self._token_sets(matcher)
        if second is None:
            return ChangeRules(first, _table_of(self.normalizer, self.second))
        tables = _table_of(self.normalizer), _table_of(None, self.second)
        return ChangeRules(first, tables[0], second, tables[1])

    def _flags_of(self, text: str) -> TokenFlags:
        return self.flags.get(text, _NO_FLAGS)

    def _token_sets(self, matcher: SpecialMatcher) -> tuple[TokenSet, TokenSet | None]:
        """The tokens to find in raw and in normalized text; None if the latter has none to find."""
        allowed, refused = matcher.allowed, matcher.disallowed
        given = [[one for one in self._given if one.normalized == late] for late in (False, True)]
        if not self.normalized and not given[1]:
            flags = [self._flags_of(text) for text in matcher.specials]
            return _token_set(matcher, flags, given[0]), None
        tokens = [(text, id) for text, id in self.tokens if not self._flags_of(text).normalized]
        raw = SpecialMatcher(tokens, allowed, refused)
        source = {found: text for found, (text, _) in self.normalized}
        inside = SpecialMatcher(
            [(found, id) for found, (_, id) in self.normalized],
            frozenset(found for found, text in source.items() if text in allowed),
            frozenset(found for found, text in source.items() if text in refused),
        )
        first = _token_set(raw, [self._flags_of(text) for text in raw.specials], given[0])
        if inside.is_empty and not given[1]:
            return first, None
        flags = [self._flags_of(source[text]) for text in inside.specials]
        return first, _token_set(inside, flags, given[1])
