"""Find where extended grapheme clusters begin (UAX #29, Unicode 17.0), character by character.

A *state* is a number that holds all that the rules need to know about the text so far: the kind of
the last character and, where it matters, whether the text ends with a pictograph that a joiner may
join to another, a consonant that is linked to the next one, or half a flag.
"""

from __future__ import annotations

from functools import lru_cache

from .char_sets import ranges_of

__all__ = ["ON_BORDER", "advance", "joiners", "openers"]

OTHER, CONTROL, CR, LF, EXTEND, ZWJ, SPACING, PREPEND, L, V, T, LV, LVT, FLAG, PICTURE = range(15)
_KINDS = {
    "control": CONTROL, "extend": EXTEND, "spacing": SPACING, "prepend": PREPEND,
    "l": L, "v": V, "t": T, "flag": FLAG, "picture": PICTURE,
}  # fmt: skip
_SYLLABLES = {L: (L, V, LV, LVT), LV: (V, T), V: (V, T), LVT: (T,), T: (T,)}

# Bits of a character's number: its kind in the lowest bits, and how it links consonants (GB9c).
_KIND = 0xF
_CONSONANT, _LINKER, _BETWEEN = 0x10, 0x20, 0x30
_LINKS = 0x30
# Bits of a state: the last character's kind in the lowest bits, and flags of the text so far.
_PICTURED, _HALF_FLAG, _BEGUN, _LINKED = 0x10, 0x20, 0x40, 0x80

ON_BORDER = CONTROL  # also the state at the start of a text


def advance(state: int, char: str) -> tuple[int, bool]:
    """The state after `char`, and whether a cluster begins with it."""
    number = _numbers().get(char)
    if number is None:
        number = _number_of_others(char)
    kind, links, last = number & _KIND, number & _LINKS, state & _KIND
    if last == PREPEND:
        is_border = kind in (CONTROL, CR, LF)
    elif last in (CONTROL, CR, LF):
        is_border = last != CR or kind != LF
    elif kind in (EXTEND, ZWJ, SPACING):
        is_border = False
    elif kind == PICTURE:
        is_border = last != ZWJ or not state & _PICTURED
    elif kind == FLAG:
        is_border = last != FLAG or not state & _HALF_FLAG
    elif links == _CONSONANT:
        is_border = not state & _LINKED
    else:
        is_border = kind not in _SYLLABLES.get(last, ())
    following = kind
    if kind == PICTURE or (state & _PICTURED and last != ZWJ and kind in (EXTEND, ZWJ)):
        following |= _PICTURED
    if kind == FLAG and (is_border or last != FLAG):
        following |= _HALF_FLAG
    if links == _CONSONANT:
        following |= _BEGUN
    elif links and state & _BEGUN:
        following |= _BEGUN | (_LINKED if links == _LINKER else state & _LINKED)
    return following, is_border


def openers() -> list[tuple[int, int]]:
    """Characters that may be joined to the next one, even if that is not one of `joiners`."""
    names = ("prepend", "l", "flag", "linker", "conjunct")
    return sorted([(0x0D, 0x0D), (0x200D, 0x200D), *ranges_of(*(f"cluster_{n}" for n in names))])


def joiners() -> list[tuple[int, int]]:
    """Characters that are joined to most characters before them."""
    names = ("extend", "spacing", "v", "t")
    return sorted([*openers(), *ranges_of(*(f"cluster_{name}" for name in names))])


@lru_cache(maxsize=1)
def _numbers() -> dict[str, int]:
    """The number of each character that is not plain OTHER, except Hangul syllables."""
    found = {"\r": CR, "\n": LF, "\u200d": ZWJ}
    for name, kind in _KINDS.items():
        for low, high in ranges_of(f"cluster_{name}"):
            for point in range(low, high + 1):
                found.setdefault(chr(point), kind)
    for name, links in (("consonant", _CONSONANT), ("linker", _LINKER), ("conjunct", _BETWEEN)):
        for low, high in ranges_of(f"cluster_{name}"):
            for point in range(low, high + 1):
                found[chr(point)] = found.get(chr(point), OTHER) | links
    return found


def _number_of_others(char: str) -> int:
    if "\uac00" <= char <= "\ud7a3":
        return LVT if (ord(char) - 0xAC00) % 28 else LV
    # A surrogate for a byte that is not UTF-8 is joined to nothing.
    return CONTROL if "\udc80" <= char <= "\udcff" else OTHER
