"""The short way for the many texts that no normalizer changes.

What decides is a set of code points for each step of a normalizer: where none of them is, a step
changes nothing but, perhaps, at the two ends of a text. So what stands at the ends is given to the
normalizers, and what is between goes to the core as it is.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .._core.encode import Untouched
from ..normalizers import Precompiled
from ..normalizers.char_sets import ranges_of

if TYPE_CHECKING:
    from ..normalizers import Normalizer
    from .added_tokens import Finder

__all__ = ["COMPOSES", "Shortcut", "shortcut_of"]

Ranges: TypeAlias = "list[tuple[int, int]]"

_SAMPLES = "\n0\u65e5"  # of these, one is in no set but of strange normalizers
# Marks that some character before them composes with, up to Unicode 9.0, the one of `tokenizers`.
COMPOSES = (
    "300-304 306-30C 30F 311 313-314 31B 323-328 32D-32E 330-331 338 342 345 653-655 93C 9BE 9D7 "
    "B3E B56-B57 BBE BD7 C56 CC2 CD5-CD6 D3E D57 DCA DCF DDF 102E 1161-1175 11A8-11C2 1B35 "
    "3099-309A 110BA 11127 1133E 11357 114B0 114BA 114BD 115AF"
)


class Shortcut(NamedTuple):
    """For which texts there is a short way, and where it comes out."""

    untouched: Untouched
    begins_plain: bool  # nothing is done to the beginning of a stretch either
    first: tuple[Any, ...]  # the states of the two normalizers behind untouched text that does not
    second: tuple[Any, ...]  # wait, as a `Place` has them
    sample: str  # a character that is left, and never waits


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
    return Shortcut(untouched, begins_plain, states[0], states[1], sample)


@lru_cache(maxsize=8)
def _untouched(steps: tuple[Any, ...]) -> Untouched | None:
    """The check for the steps of these specs; None: texts without what they change are rare."""
    stops: Ranges = []
    marks: dict[int, int] = {}
    opens: Ranges = []
    for name, *settings in steps:
        if name in ("NFC", "NFD", "NFKC", "NFKD"):
            stops += ranges_of(f"{name}_changes")
            opens += ranges_of(f"{name}_opens")
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
    pairs = [part.partition("-") for part in COMPOSES.split()]
    composes = [(int(low, 16), int(high or low, 16)) for low, _, high in pairs]
    return Untouched(stops, marks.items(), composes, opens)


def _state_behind(normalizer: Normalizer, sample: str) -> tuple[Any, bool] | None:
    """The state inside a stretch where nothing waits, and whether beginnings stay as they are."""
    begun = [
        normalizer.feed(normalizer.begin(is_first), sample, False) for is_first in (False, True)
    ]
    state, unchanged = begun[0][0], [(sample, sample)]
    if normalizer.held(state) or normalizer.feed(state, sample, False) != (state, unchanged):
        return None
    return state, all(found == (state, unchanged) for found in begun)
