"""ASCII substitutes: what windows may see in the place of other characters (`_core/substitutes.h`).

Windows (`windows.py`) know 128 characters and single bytes. A character of n bytes may be replaced
by n times the same ASCII character, and pre-tokens begin at the same bytes as before, if

- both are of the same class, so that the first of the n does what the character does, and
- each further one changes nothing: it leads from the state where it is back to that state, and no
  pre-token ever ends between the two: either the pattern does not accept there, or it accepts again
  after it, whatever comes next.

That holds for the letters of most patterns, where a run of letters is a run however long. All of it
is read off the automaton, and a pattern for which it does not hold has no substitutes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .automaton import Automaton
from .tables import Windows

Uint8 = npt.NDArray[np.uint8]


def derive_substitutes(automaton: Automaton, windows: Windows | None) -> Uint8 | None:
    """uint8 [0x10000]: the ASCII substitute of each code point, 0 where it has none.

    None where there are no windows, or no substitutes.
    """
    if windows is None:
        return None
    of_class = np.zeros(automaton.n_classes, np.uint8)
    for point in range(127, 0, -1):
        is_special = windows.classes[point] >= 128 or point == windows.trigger
        if not is_special and chr(point).isprintable():
            of_class[automaton.class_of(point)] = point
    for number in np.flatnonzero(of_class).tolist():
        if not _is_repeatable(automaton, number):
            of_class[number] = 0
    of_point = of_class[automaton.class_blocks[automaton.class_pages[: 0x10000 >> 7]]].reshape(-1)
    of_point[:128] = of_point[0xD800:0xE000] = 0
    return of_point if of_point.any() else None


def _is_repeatable(automaton: Automaton, number: int) -> bool:
    """Whether one more character of the class never changes anything."""
    following = automaton.transitions[:, number]
    for state in {*following.tolist()} - {0}:  # numpy.unique loads numpy.ma: 10 ms
        accepts = automaton.accepts[state]
        if following[state] != state or (accepts[number] and not accepts.all()):
            return False
    return True
