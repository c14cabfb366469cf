"""The short way for the many texts that have no added token, and nothing that a normalizer changes.

What decides is a set of code points for each step of a normalizer: where none of them is, a step
changes nothing but, perhaps, at the two ends of a text. So the first character and the last one are
given to the normalizers, and what is between them goes to the core as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .._core.encode import Untouched
from ..normalizers.char_sets import ranges_of

if TYPE_CHECKING:
    from ..normalizers import Normalizer
    from .added_tokens import Finder

__all__ = ["Shortcut", "shortcut_of"]

_SAMPLES = "\n0x\u65e5"


class Shortcut(NamedTuple):
    """For which texts there is a short way, and where it comes out."""

    untouched: Untouched
    begins_plain: bool  # nothing is done to the beginning of a stretch either
    first: tuple[Any, ...]  # the states of the two normalizers behind untouched text that does not
    second: tuple[Any, ...]  # wait, as a `Place` has them


def shortcut_of(
    raw: Finder, first: Normalizer | None, normalized: Finder | None, second: Normalizer | None
) -> Shortcut | None:
    """The short way past these stages; None: there is none."""
    if normalized is not None or not raw.is_plain:
        return None
    touched: list[tuple[int, int]] = []
    states = []
    begins_plain = True
    for normalizer in (first, second):
        if normalizer is None:
            states.append(())
            continue
        for step in normalizer.spec:
            ranges = _touched_by(*step)
            if ranges is None:
                return None
            touched += ranges
        found = _state_behind(normalizer, touched)
        if found is None:
            return None
        states.append((found[0],))
        begins_plain &= found[1]
    return Shortcut(Untouched(touched, raw.matcher), begins_plain, *states)


def _touched_by(name: str, *settings: Any) -> list[tuple[int, int]] | None:
    """The code points that a step may change, drop, or join to others; None: too many."""
    if name in ("NFC", "NFD", "NFKC", "NFKD"):
        return ranges_of(f"{name}_joins", f"{name}_changes")
    if name == "Replace":
        return [(ord(char), ord(char)) for char in settings[0]]
    if name == "MetaspaceText":
        return [] if settings[0] == " " else [(32, 32)]
    return [] if name in ("Prepend", "PrefixSpace") else None


def _state_behind(normalizer: Normalizer, touched: list[tuple[int, int]]) -> tuple[Any, bool] | None:
    """The state inside a stretch where nothing waits, and whether beginnings stay as they are."""
    for char in _SAMPLES:
        if any(low <= ord(char) <= high for low, high in touched):
            continue
        begun = [
            normalizer.feed(normalizer.begin(is_first), char, False) for is_first in (False, True)
        ]
        state = begun[0][0]
        if normalizer.held(state) or normalizer.feed(state, char, False) != (state, [(char, char)]):
            continue
        return state, all(found == (state, [(char, char)]) for found in begun)
    return None
