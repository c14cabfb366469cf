"""The engine of nearly all encodings: a vocabulary, and a pattern with tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.encode import ChangeRules, Encoder, Tail, TokenSet

if TYPE_CHECKING:
    from .._core.encode import Output, SpecialMatcher
    from .._types import Text
    from .protocol import Result
    from .template import Template

__all__ = ["CoreEngine", "PlainEngine"]

_SETTINGS_KEPT = 128  # cached rules, one for each set of allowed and refused special tokens


class CoreEngine:
    """The core's `Encoder`, with rules for each set of special tokens."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._rules: dict[SpecialMatcher, ChangeRules] = {}

    def encode(
        self, text: Text, matcher: SpecialMatcher, errors: str, output: Output[Result]
    ) -> Result:
        """See `Engine`, which describes the other methods, too."""
        return self.encoder.encode(text, self.rules(matcher), errors, output)

    def rules(self, matcher: SpecialMatcher) -> ChangeRules:
        rules = self._rules.get(matcher)
        if rules is None:
            rules = self._make_rules(matcher)
            if len(self._rules) >= _SETTINGS_KEPT:
                self._rules.clear()
            self._rules[matcher] = rules
        return rules

    def _make_rules(self, matcher: SpecialMatcher) -> ChangeRules:
        return ChangeRules(TokenSet(matcher, bytes(len(matcher.specials)), None))


class PlainEngine(CoreEngine):
    """The engine for texts that are encoded unchanged."""

    def tail(
        self,
        matcher: SpecialMatcher,
        errors: str,
        template: Template,
        finder: object = None,
    ) -> Tail:
        return Tail(self.encoder, matcher, errors, *template, finder=finder)
