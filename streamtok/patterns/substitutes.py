"""ASCII substitutes: what windows see in the place of other characters.

Windows (`windows.py`) know 128 characters. Another character may be replaced by an ASCII character
of the same class (`_core/scan/substitutes.h`): the automaton does the same at both. So pre-tokens
begin at the same characters.
A character of a class that has no ASCII character, or only such as windows treat in a way of their
own (triggers and their followers), has no substitute.
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
        if windows.classes[point] < 128 and point != windows.trigger:
            of_class[automaton.class_of(point)] = point
    of_point = of_class[automaton.class_blocks[automaton.class_pages[: 0x10000 >> 7]]].reshape(-1)
    of_point[:128] = of_point[0xD800:0xE000] = 0
    return of_point if of_point.any() else None
