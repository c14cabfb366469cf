"""Special tokens, and what the settings of a call do with them.

If several begin at the same offset, the longest wins. In tiktoken, the order of a hash table
decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ._core.encode import ALL, NO_SPECIAL, SpecialMatcher, check_special_size
from ._types import AllowedSpecial, DisallowedSpecial
from .threads import cached_property

__all__ = ["SPECIAL_POLICIES", "SpecialTokens", "special_settings"]

SPECIAL_POLICIES = ("plain", "allow", "refuse")

_MATCHERS_KEPT = 128  # one for each combination of settings


def special_settings(policy: str) -> dict[str, Any]:
    """The keyword arguments of `Encoding.encode` for one of SPECIAL_POLICIES: special tokens in a
    text stay plain text, become ids, or raise an error.
    """
    return {
        "allowed_special": ALL if policy == "allow" else NO_SPECIAL,
        "disallowed_special": ALL if policy == "refuse" else (),
    }


class SpecialTokens:
    """The special tokens of an encoding, and its added tokens, which are always matched."""

    def __init__(self, special: Mapping[str, int], added: Mapping[str, int]) -> None:
        """Raises ValueError for an invalid token, or one that is of both kinds."""
        self.special = _checked(special)
        self.added = _checked(added)
        if both := self.special.keys() & self.added.keys():
            raise ValueError(f"{min(both)!r} is both a special token and an added token")
        self.every = self.special | self.added
        self.texts = frozenset(self.special)
        self.ids = frozenset(self.special.values())
        self._matchers: dict[tuple[frozenset[str], frozenset[str]], SpecialMatcher] = {}

    # Made on first use: with thousands of special tokens they take a third of the loading time.
    @cached_property
    def preferred(self) -> list[tuple[str, int]]:
        """All tokens. Of those that begin at the same offset, the first in this list wins."""
        order = sorted(self.every, key=lambda text: -len(text.encode("utf-8", "surrogatepass")))
        return [(text, self.every[text]) for text in order]

    @cached_property
    def ordinary(self) -> SpecialMatcher:
        """Matches no special token."""
        return self._made(frozenset(), frozenset())

    @cached_property
    def default(self) -> SpecialMatcher:
        """Refuses every special token."""
        return self._made(frozenset(), self.texts)

    @cached_property
    def allowing(self) -> SpecialMatcher:
        """Matches every special token."""
        return self._made(self.texts, frozenset())

    def matcher(self, allowed: AllowedSpecial, disallowed: DisallowedSpecial) -> SpecialMatcher:
        """The matcher for the settings of a call. Raises TypeError or ValueError."""
        # Most calls use these settings. With thousands of added tokens, building the sets takes
        # longer than encoding a page.
        if disallowed is ALL or (disallowed == () and isinstance(disallowed, tuple)):
            if allowed is ALL:
                return self.allowing
            if allowed is NO_SPECIAL:
                return self.default if disallowed is ALL else self.ordinary
        chosen = self.allowed(allowed)
        return self._made(chosen, self._refused(disallowed, chosen))

    def allowed(self, setting: AllowedSpecial) -> frozenset[str]:
        """The special tokens that `allowed_special` selects. Raises TypeError for a str other than
        "all", which may be a token's text or a word like "none".
        """
        if isinstance(setting, str):
            if setting == "all":
                return self.texts
            raise TypeError(
                f'allowed_special must be "all" or a collection of str, not the str {setting!r}'
            )
        return _strings("allowed_special", setting) & self.texts

    def _refused(self, setting: DisallowedSpecial, allowed: frozenset[str]) -> frozenset[str]:
        """The texts that raise ValueError where they occur. As in tiktoken, None means no text, and
        a str other than "all" means each of its characters.
        """
        if isinstance(setting, str) and setting == "all":
            return self.texts - allowed
        refused = _strings("disallowed_special", () if setting is None else setting)
        if "" in refused:
            raise ValueError(
                "disallowed_special contains the empty str, which is in every text: leave it out.\n"
                "(Encountered text corresponding to disallowed special token ''.)"
            )
        return refused

    def _made(self, chosen: frozenset[str], refused: frozenset[str]) -> SpecialMatcher:
        if self.added:
            chosen, refused = chosen.union(self.added), refused.difference(self.added)
        key = chosen, refused
        matcher = self._matchers.get(key)
        if matcher is None:
            matcher = SpecialMatcher(self.preferred, *key)
            if len(self._matchers) >= _MATCHERS_KEPT:
                self._matchers.clear()
            self._matchers[key] = matcher  # another thread may clear the cache: use our own
        return matcher


def _checked(special_tokens: Mapping[str, int]) -> dict[str, int]:
    """A copy. Raises ValueError for a text or an id that no special token can have."""
    for text, token in special_tokens.items():
        if not isinstance(text, str) or not text:
            raise ValueError(
                f"a special token must be a str with at least one character, not {text!r}"
            )
        check_special_size(text.encode("utf-8", "surrogatepass"))
        if not isinstance(token, int) or not 0 <= token <= 0xFFFFFFFE:
            raise ValueError(
                f"the id of special token {text!r} must be in 0 … {0xFFFFFFFE}, not {token!r}"
            )
    return dict(special_tokens)


def _strings(setting: str, texts: Iterable[str]) -> frozenset[str]:
    found = frozenset(texts)
    for text in found:
        if not isinstance(text, str):
            raise TypeError(
                f'{setting} must be "all" or a collection of str, but it has {text!r} in it'
            )
    return found
