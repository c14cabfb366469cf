"""Stand-ins: ASCII characters that windows may see in the place of others (`_core/substitutes.h`).

Windows (`pattern_windows.py`) know 128 characters and single bytes. A character of n bytes may be
replaced by n times the same ASCII character, and pieces begin at the same bytes as before, if

- both are of the same class, so that the first of the n does what the character does, and
- each further one changes nothing: it leads from the state where it is back to that state, and the
  place between the two is never where a piece ends: either the pattern does not accept there, or it
  accepts again behind it, whatever comes next.

That holds for the letters of most patterns, where a run of letters is a run however long. All of it
is read off the automaton, and a pattern for which it does not hold has no stand-ins.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .pattern import Pattern

Uint8 = npt.NDArray[np.uint8]


def derive_stand_ins(pattern: Pattern) -> Uint8 | None:
    """uint8 [0x10000]: an ASCII character for each code point that has a stand-in, else 0.

    None where there are no windows, or no stand-ins.
    """
    if pattern.windows is None:
        return None
    of_class = np.zeros(pattern.n_classes, np.uint8)
    for point in range(127, 0, -1):
        is_special = pattern.windows.classes[point] >= 128 or point == pattern.windows.trigger
        if not is_special and chr(point).isprintable():
            of_class[pattern.class_of(point)] = point
    for number in np.flatnonzero(of_class).tolist():
        if not _is_repeatable(pattern, number):
            of_class[number] = 0
    of_point = of_class[pattern.class_blocks[pattern.class_pages[: 0x10000 >> 7]]].reshape(-1)
    of_point[:128] = of_point[0xD800:0xE000] = 0
    return of_point if of_point.any() else None


def _is_repeatable(pattern: Pattern, number: int) -> bool:
    """Whether one more character of the class never changes anything."""
    following = pattern.transitions[:, number]
    for state in {*following.tolist()} - {0}:  # numpy.unique loads numpy.ma: 10 ms
        accepts = pattern.accepts[state]
        if following[state] != state or (accepts[number] and not accepts.all()):
            return False
    return True
