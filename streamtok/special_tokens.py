"""Special tokens: what the settings of a call mean.

Which one wins where several begin at the same place is in `special_order.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from ._types import AllowedSpecial, DisallowedSpecial

__all__ = ["check_special_tokens", "resolve_allowed", "resolve_disallowed"]


def check_special_tokens(special_tokens: Mapping[str, int]) -> dict[str, int]:
    """A copy. Raises ValueError for a text or an id that no special token can have."""
    for text, token in special_tokens.items():
        if not isinstance(text, str) or not text:
            raise ValueError(
                f"a special token must be a str with at least one character, not {text!r}"
            )
        if not isinstance(token, int) or not 0 <= token <= 0xFFFFFFFE:
            raise ValueError(
                f"the id of special token {text!r} must be in 0 … {0xFFFFFFFE}, not {token!r}"
            )
    return dict(special_tokens)


def resolve_allowed(allowed: AllowedSpecial, every: AbstractSet[str]) -> AbstractSet[str]:
    """The texts that `allowed_special` means. Raises TypeError for another str than "all"."""
    if isinstance(allowed, str) and allowed == "all":
        return every
    if isinstance(allowed, str):  # one token's text, or a word like "none": nobody can tell
        raise TypeError(
            f'allowed_special must be "all" or a collection of str, not the str {allowed!r}'
        )
    return _strings("allowed_special", allowed)


def resolve_disallowed(
    disallowed: DisallowedSpecial, allowed: AbstractSet[str], every: AbstractSet[str]
) -> frozenset[str]:
    """What raises ValueError in a text. As in tiktoken, None is nothing, and a str other than
    "all" is its characters.
    """
    if isinstance(disallowed, str) and disallowed == "all":
        return frozenset(every - allowed)
    refused = _strings("disallowed_special", () if disallowed is None else disallowed)
    if "" in refused:
        raise ValueError(
            "disallowed_special has the empty str, which is in every text: leave it out.\n"
            "(Encountered text corresponding to disallowed special token ''.)"
        )
    return refused


def _strings(setting: str, texts: Iterable[str]) -> frozenset[str]:
    found = frozenset(texts)
    for text in found:
        if not isinstance(text, str):
            raise TypeError(
                f'{setting} must be "all" or a collection of str, but it has {text!r} in it'
            )
    return found
