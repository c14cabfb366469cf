"""The engine for texts that are changed before the pattern cuts them.

Hugging Face's way from characters to what the pattern cuts:

1. Added and special tokens are found in the text; what is between them is a *stretch*.
2. Each stretch is normalized, for itself.
3. Those tokens that are `normalized` are found in the result, and cut it into smaller stretches.
4. Pre-tokenizers that change text change each of these by itself.

The core does all of it (`_core/stream/changing.pxi`). Here its rules are made: the tokens with
their flags, and tables of the normalizers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .._core.encode import (
    Changer,
    ChangeRules,
    ElementTable,
    SpecialMatcher,
    Tail,
    TokenSet,
    feed_changing,
)
from ..normalizers import Normalizer
from ..normalizers.elements import Elements
from .added_tokens import Finder
from .chunk_text import policy_of
from .protocol import NO_LIMIT
from .rewriting import _NO_FLAGS, _SETTINGS_KEPT, _normalizer_of
from .rules import TokenFlags
from .template import NO_TEMPLATE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .._core.encode import Encoder
    from .._types import Text
    from .rules import TextRules
    from .template import Template

__all__ = ["ChangingChain", "ChangingEngine", "rules_of", "table_of", "token_set"]

_NO_SPECIAL = SpecialMatcher([], frozenset(), ())
_LSTRIP, _RSTRIP, _SINGLE_WORD = 1, 2, 4  # as in the core


@lru_cache(maxsize=32)
def table_of(first: Normalizer | None, second: Normalizer | None = None) -> ElementTable | None:
    """The table of one normalizer, or of two in a row; None: nothing is changed."""
    if first is None and second is None:
        return None
    return ElementTable(Elements(first or Normalizer(), second))


def token_set(matcher: SpecialMatcher, flags: Sequence[TokenFlags]) -> TokenSet:
    """flags: of each of `matcher.specials`."""
    bits = [
        _LSTRIP * one.lstrip | _RSTRIP * one.rstrip | _SINGLE_WORD * one.single_word
        for one in flags
    ]
    return TokenSet(matcher, bits, _words() if any(one.single_word for one in flags) else None)


@lru_cache(maxsize=1)
def _words() -> bytes:
    """A bit for each code point: whether Rust's regular expressions match it with `\\w`."""
    import numpy as np

    from ..patterns.unicode_classes import UnicodeTable

    points = np.arange(0x110000)
    found = UnicodeTable.load().sets["word"].contains(points)
    return np.packbits(found, bitorder="little").tobytes()


def rules_of(
    first_tokens: TokenSet,
    first: Normalizer | None,
    second_tokens: TokenSet | None,
    second: Normalizer | None,
) -> ChangeRules:
    """What is done to text. Raises ValueError for normalizers that no table does."""
    if second_tokens is None:
        return ChangeRules(first_tokens, table_of(first, second))
    return ChangeRules(first_tokens, table_of(first), second_tokens, table_of(None, second))


class ChangingChain:
    """A stream's text goes through the rules to its tail."""

    def __init__(self, encoder: Encoder, rules: ChangeRules, errors: str) -> None:
        self.encoder, self.rules, self.errors = encoder, rules, errors

    is_direct = False
    transform = None

    def tail(self, template: Template) -> Tail:
        changer = Changer(self.rules, self.errors)
        return Tail(self.encoder, _NO_SPECIAL, policy_of(self.errors), *template, changer=changer)

    def encode(
        self,
        tail: Tail,
        chunk: Text,
        final: bool,
        into: str,
        out: Any,
        limit: int,
    ) -> Any:
        """See `Chain`. Offsets are those of the text that came in."""
        return feed_changing(tail, chunk, final, into, out, limit)

    def getstate(self, tail: Tail) -> bytes:
        return tail.getstate()

    def setstate(self, tail: Tail, state: bytes) -> None:
        tail.setstate(state)


class ChangingEngine:
    """The core's `Encoder`, after added tokens with flags, and normalizers."""

    def __init__(
        self, encoder: Encoder, rules: TextRules, preferred: Sequence[tuple[str, int]]
    ) -> None:
        """preferred: as for `changes_text`. Raises ValueError for a token that normalizes to "".

        A token whose normalized text is another one's, too, is hidden by the one preferred.
        """
        self.encoder = encoder
        self.normalizer = _normalizer_of(rules.normalizer, rules.space_first)
        self.second = _normalizer_of(rules.second_normalizer)
        self.flags: Mapping[str, TokenFlags] = dict(rules.token_flags)
        if rules.normalizer == "spaces":  # SentencePiece finds its symbols in the changed text
            self.flags = {text: TokenFlags(normalized=True) for text, _ in rules.added_tokens}
        self.tokens = preferred
        normalized: dict[str, tuple[str, int]] = {}
        changed = [token for token in preferred if self._flags_of(token[0]).normalized]
        results = [text for text, _ in changed]
        if self.normalizer:
            results = self.normalizer.normalize_tokens(results, False)
        for found, (text, id) in zip(results, changed, strict=True):
            if not found:
                raise ValueError(
                    f"the added token {text!r} is empty once it is normalized, so it is "
                    "everywhere; it must not be `normalized`"
                )
            normalized.setdefault(found, (text, id))
        # By normalized text, the longest first.
        self.normalized = sorted(normalized.items(), key=lambda item: -len(item[0].encode()))
        self._rules: dict[SpecialMatcher, ChangeRules] = {}

    def encode(self, text: Text, matcher: SpecialMatcher, errors: str, into: str) -> Any:
        rules = self.rules(matcher)
        found = self.encoder.encode(text, rules.first_tokens.matcher, errors, into, rules=rules)
        if found is not None:
            return found
        chain = ChangingChain(self.encoder, rules, errors)  # a stream of one chunk
        return chain.encode(chain.tail(NO_TEMPLATE), text, True, into, None, NO_LIMIT)

    def chain(self, matcher: SpecialMatcher, errors: str) -> ChangingChain:
        return ChangingChain(self.encoder, self.rules(matcher), errors)

    def rules(self, matcher: SpecialMatcher) -> ChangeRules:
        """What is done to a text where `matcher` says which special tokens are in it."""
        rules = self._rules.get(matcher)
        if rules is None:
            raw, normalized = self._finders(matcher)
            rules = rules_of(
                token_set(raw.matcher, [flags for _, flags in raw.tokens]),
                self.normalizer,
                normalized
                and token_set(normalized.matcher, [flags for _, flags in normalized.tokens]),
                self.second,
            )
            if len(self._rules) >= _SETTINGS_KEPT:
                self._rules.clear()
            self._rules[matcher] = rules
        return rules

    def _flags_of(self, text: str) -> TokenFlags:
        return self.flags.get(text, _NO_FLAGS)

    def _finders(self, matcher: SpecialMatcher) -> tuple[Finder, Finder | None]:
        allowed, refused = matcher.allowed, matcher.disallowed
        if not self.normalized:
            raw = matcher
        else:
            tokens = [(text, id) for text, id in self.tokens if not self._flags_of(text).normalized]
            raw = SpecialMatcher(tokens, allowed, refused)
        ids = dict(self.tokens)
        finder = Finder(raw, [(ids[text], self._flags_of(text)) for text in raw.specials])
        if not self.normalized:
            return finder, None
        known = {found: token for found, token in self.normalized}
        inside = SpecialMatcher(
            [(found, id) for found, (_, id) in self.normalized],
            frozenset(found for found, (text, _) in self.normalized if text in allowed),
            frozenset(found for found, (text, _) in self.normalized if text in refused),
        )
        second = Finder(
            inside,
            [(known[found][1], self._flags_of(known[found][0])) for found in inside.specials],
        )
        return finder, None if second.is_empty else second
