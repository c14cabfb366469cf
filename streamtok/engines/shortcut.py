"""The short way for the many texts that no normalizer changes.

What decides is a set of code points for each step of a normalizer: where none of them is, a step
changes nothing but, perhaps, at the two ends of a text. So what stands at the ends is given to the
normalizers, and what is between goes to the core as it is.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .._core.encode import Untouched, UntouchedPath
from ..normalizers import Precompiled
from ..normalizers.char_sets import ranges_of

if TYPE_CHECKING:
    from ..normalizers import Normalizer
    from .added_tokens import Finder

__all__ = ["Shortcut", "composing_pairs", "path_of", "shortcut_of"]

Ranges: TypeAlias = "list[tuple[int, int]]"

_WAITS_KEPT = 4096
_LONGEST_KEPT = 8  # characters
_SAMPLES = "\n0\u65e5"  # of these, one is in no set but of strange normalizers


class Shortcut(NamedTuple):
    """For which texts there is a short way, and where it comes out."""

    untouched: Untouched
    begins_plain: bool  # nothing is done to the beginning of a stretch either
    first: tuple[Any, ...]  # the states of the two normalizers behind untouched text that does not
    second: tuple[Any, ...]  # wait, as a `Place` has them
    sample: str  # a character that is left, and never waits
    known_waits: dict[str, str]  # what `waits_behind` has found

    def waits_behind(self, normalizer: Normalizer | None, last: str) -> str:
        """What the normalizer would hold of `last`, which ends untouched text."""
        if normalizer is None:
            return ""
        found = self.known_waits.get(last)
        if found is None:
            found = normalizer.held(normalizer.feed(self.first[0], last, False)[0])
            if len(self.known_waits) >= _WAITS_KEPT:
                self.known_waits.clear()
            if len(last) <= _LONGEST_KEPT:
                self.known_waits[last] = found
        return found


def shortcut_of(
    raw: Finder, first: Normalizer | None, normalized: Finder | None, second: Normalizer | None
) -> Shortcut | None:
    """The short way past these stages; None: there is none."""
    if normalized is not None or not raw.is_plain:
        return None
    steps: tuple[Any, ...] = ()
    for normalizer in (first, second):
        if normalizer is not None:
            steps += normalizer.spec
    untouched = _untouched(steps)
    if untouched is None:
        return None
    for sample in _SAMPLES:
        if untouched.is_all_of(sample):
            break
    else:
        return None
    states: list[tuple[Any, ...]] = []
    # What ended the text before may be joined to any character, which then goes the long way.
    begins_plain = "Precompiled" not in [name for name, *_ in steps]
    for normalizer in (first, second):
        found = None if normalizer is None else _state_behind(normalizer, sample)
        if found is None and normalizer is not None:
            return None
        states.append((found[0],) if found else ())
        begins_plain &= not found or found[1]
    return Shortcut(untouched, begins_plain, states[0], states[1], sample, {})


def path_of(shortcut: Shortcut, raw: Finder, normalizer: Normalizer | None) -> UntouchedPath:
    """The way of a stream's chunks in text that is left, past the search for these tokens."""

    def waits_behind(last: str) -> tuple[str, bool] | None:
        kept = shortcut.waits_behind(normalizer, last)
        if not raw.last_characters.isdisjoint(kept):
            return None
        return kept, raw.first_characters.isdisjoint(kept)

    return UntouchedPath(shortcut.untouched, waits_behind)


@lru_cache(maxsize=8)
def _untouched(steps: tuple[Any, ...]) -> Untouched | None:
    """The check for the steps of these specs; None: texts without what they change are rare."""
    stops: Ranges = []
    marks: dict[int, int] = {}
    pairs: frozenset[tuple[int, int]] = frozenset()
    for name, *settings in steps:
        if name in ("NFC", "NFD", "NFKC", "NFKD"):
            stops += ranges_of(f"{name}_changes")
            if name in ("NFC", "NFKC"):
                pairs = composing_pairs()
            for low, high in ranges_of(f"{name}_joins"):
                marks |= {x: unicodedata.combining(chr(x)) for x in range(low, high + 1)}
            # Those that join may change by themselves, too.
            stops += [(x, x) for x in marks if unicodedata.normalize(name, chr(x)) != chr(x)]
        elif name == "Precompiled":
            stops += Precompiled(*settings).stops()
        elif name == "Replace":
            stops += [(ord(char), ord(char)) for char in settings[0]]
        elif name == "MetaspaceText":
            stops += [] if settings[0] == " " else [(32, 32)]
        elif name not in ("Prepend", "PrefixSpace"):
            return None
    return Untouched(stops, marks.items(), pairs)


@lru_cache(maxsize=1)
def composing_pairs() -> frozenset[tuple[int, int]]:
    """A starter and a mark of which NFC makes something else, if nothing is between; no Hangul.

    Either they compose, or the mark goes before one that the starter is composed of, and composes
    with what is before that: e with acute, and a dot below.
    """
    with_mark: dict[str, set[str]] = {}
    composed: list[str] = []
    for low, high in ranges_of("NFD_changes"):
        for char in map(chr, range(low, high + 1)) if not low <= 0xAC00 <= high else ():
            parts = unicodedata.decomposition(char).split()
            if len(parts) == 2 and unicodedata.normalize("NFC", char) == char:
                first, second = (chr(int(part, 16)) for part in parts)
                with_mark.setdefault(first, set()).add(second)
                composed.append(char)
    combining = unicodedata.combining
    pairs = {(first, second) for first, seconds in with_mark.items() for second in seconds}
    for char in composed:
        letters = unicodedata.normalize("NFD", char)
        for size in range(1, len(letters)):
            beginning = unicodedata.normalize("NFC", letters[:size])
            low, high = combining(letters[size - 1]), combining(letters[size])
            for second in with_mark.get(beginning, ()):
                if low <= combining(second) < high and combining(second):
                    pairs.add((char, second))
    return frozenset((ord(first), ord(second)) for first, second in pairs)


def _state_behind(normalizer: Normalizer, sample: str) -> tuple[Any, bool] | None:
    """The state inside a stretch where nothing waits, and whether beginnings stay as they are."""
    begun = [
        normalizer.feed(normalizer.begin(is_first), sample, False) for is_first in (False, True)
    ]
    state, unchanged = begun[0][0], [(sample, sample)]
    if normalizer.held(state) or normalizer.feed(state, sample, False) != (state, unchanged):
        return None
    return state, all(found == (state, unchanged) for found in begun)
