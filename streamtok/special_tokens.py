"""Special tokens: what the settings of a call mean, and which one wins where several begin.

tiktoken joins its special tokens into one regular expression in the order in which its hash table
gives them, and the first alternative that matches wins: not the longest, nor the one given first.
Programs that rely on tiktoken rely on that, so the order is computed here as Rust does it: the hash
of rustc-hash 2 (orlp's design), the table layout of hashbrown with groups of 16 (x86-64). It
matters only for special tokens that begin with one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ._core.encode import ALL, NO_SPECIAL, SpecialMatcher, check_special_size
from ._types import AllowedSpecial, DisallowedSpecial
from .parallel.cached import cached_property

__all__ = ["SPECIAL_POLICIES", "SpecialTokens", "in_order_of_preference", "special_settings"]

SPECIAL_POLICIES = ("plain", "allow", "refuse")

_MATCHERS_KEPT = 128  # for settings that calls have used

_MASK = (1 << 64) - 1
_GROUP = 16
_PROBES = 1 << 20  # slots looked at, beside a hundred for each text; usually there are ten


def special_settings(policy: str) -> dict[str, Any]:
    """The keyword arguments of `Encoding.encode` for one of SPECIAL_POLICIES: the text of a special
    token is plain text, becomes its id, or is an error.
    """
    return {
        "allowed_special": ALL if policy == "allow" else NO_SPECIAL,
        "disallowed_special": ALL if policy == "refuse" else (),
    }


class SpecialTokens:
    """The special tokens of an encoding and its added ones, which count wherever they are."""

    def __init__(
        self, special: Mapping[str, int], added: Mapping[str, int], longest_first: bool = False
    ) -> None:
        """longest_first: prefer the longest, not the one that tiktoken does. Raises ValueError for
        a token that cannot be, or that is of both kinds.
        """
        self.special = _checked(special)
        self.added = _checked(added)
        if both := self.special.keys() & self.added.keys():
            raise ValueError(f"{min(both)!r} is both a special token and an added token")
        self.every = self.special | self.added
        self.texts = frozenset(self.special)
        self.ids = frozenset(self.special.values())
        self._longest_first = longest_first
        self._matchers: dict[tuple[frozenset[str], frozenset[str]], SpecialMatcher] = {}

    # Made when they are asked for: with thousands of special tokens they take a third of the time
    # of loading.
    @cached_property
    def preferred(self) -> list[tuple[str, int]]:
        """All tokens; the first of those that begin at one place wins."""
        if self._longest_first:
            order = sorted(self.every, key=lambda text: -len(text.encode()))
        else:
            order = in_order_of_preference(self.every)
        return [(text, self.every[text]) for text in order]

    @cached_property
    def ordinary(self) -> SpecialMatcher:
        """Finds no special token."""
        return self._made(frozenset(), frozenset())

    @cached_property
    def default(self) -> SpecialMatcher:
        """Refuses every special token."""
        return self._made(frozenset(), self.texts)

    def matcher(self, allowed: AllowedSpecial, disallowed: DisallowedSpecial) -> SpecialMatcher:
        """What finds the tokens that these settings of a call mean. Raises TypeError, ValueError
        for settings that mean nothing.
        """
        if allowed is NO_SPECIAL and disallowed is ALL:
            return self.default
        chosen = self.allowed(allowed)
        return self._made(chosen, self._refused(disallowed, chosen))

    def allowed(self, setting: AllowedSpecial) -> frozenset[str]:
        """The special tokens that `allowed_special` means. Raises TypeError for another str than
        "all": it may be a token's text, or a word like "none".
        """
        if isinstance(setting, str):
            if setting == "all":
                return self.texts
            raise TypeError(
                f'allowed_special must be "all" or a collection of str, not the str {setting!r}'
            )
        return _strings("allowed_special", setting) & self.texts

    def _refused(self, setting: DisallowedSpecial, allowed: frozenset[str]) -> frozenset[str]:
        """What raises ValueError in a text. As in tiktoken, None is nothing, and a str other than
        "all" is its characters.
        """
        if isinstance(setting, str) and setting == "all":
            return self.texts - allowed
        refused = _strings("disallowed_special", () if setting is None else setting)
        if "" in refused:
            raise ValueError(
                "disallowed_special has the empty str, which is in every text: leave it out.\n"
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
            self._matchers[key] = matcher  # another thread may clear it: this call has its own
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


def in_order_of_preference(specials: Iterable[str]) -> list[str]:
    """The special tokens, the one that tiktoken prefers first.

    Raises ValueError where texts are made to have the same hash: finding their places would take
    the square of their number.
    """
    specials = list(dict.fromkeys(specials))
    slots: list[str | None] = [None] * _buckets(len(specials))
    probes = _PROBES + 100 * len(specials)
    for text in specials:
        at, looked_at = _free_slot(slots, _hash(text.encode()))
        probes -= looked_at
        if probes < 0:
            raise ValueError(f"too many of the {len(specials)} special tokens have the same hash")
        slots[at] = text
    return [text for text in slots if text is not None]


def _buckets(capacity: int) -> int:
    if capacity < 15:
        return 4 if capacity < 4 else 8 if capacity < 8 else 16
    buckets = 16
    while buckets < capacity * 8 // 7:
        buckets *= 2
    return buckets


def _free_slot(slots: list[str | None], hashed: int) -> tuple[int, int]:
    """Where there is room, and how many slots were looked at."""
    size = len(slots)
    position = hashed & (size - 1)
    if size < _GROUP:
        # A small table is followed by empty slots, which stand for "begin again at the front".
        at = slots.index(None, position) if None in slots[position:] else slots.index(None)
        return at, size
    stride = 0
    while True:
        for index in range(position, position + _GROUP):
            if slots[index & (size - 1)] is None:
                return index & (size - 1), stride + _GROUP
        stride += _GROUP
        position = (position + stride) & (size - 1)


def _hash(data: bytes) -> int:
    factor = 0xF1357AEA2E62A9C5
    state = _hash_bytes(data) * factor & _MASK
    state = (state + 0xFF) * factor & _MASK  # a str is closed by a byte that is not UTF-8
    return (state << 26 | state >> 38) & _MASK


def _hash_bytes(data: bytes) -> int:
    def word(start: int, size: int) -> int:
        return int.from_bytes(data[start : start + size], "little")

    def mix(x: int, y: int) -> int:
        product = x * y
        return (product ^ product >> 64) & _MASK

    size = len(data)
    a, b = 0x243F6A8885A308D3, 0x13198A2E03707344
    if size > 16:
        for start in range(0, size - 16, 16):
            a, b = b, mix(a ^ word(start, 8), 0xA4093822299F31D0 ^ word(start + 8, 8))
        a ^= word(size - 16, 8)
        b ^= word(size - 8, 8)
    elif size >= 8:
        a ^= word(0, 8)
        b ^= word(size - 8, 8)
    elif size >= 4:
        a ^= word(0, 4)
        b ^= word(size - 4, 4)
    elif size:
        a ^= data[0]
        b ^= data[size - 1] << 8 | data[size // 2]
    return mix(a, b) ^ size
