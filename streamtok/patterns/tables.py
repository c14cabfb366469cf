"""The arrays that a pre-tokenization pattern is compiled to; data only."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Uint8 = npt.NDArray[np.uint8]
    Uint16 = npt.NDArray[np.uint16]

__all__ = ["CODE_POINTS_PER_BLOCK", "MAX_WINDOW_CLASSES", "Tables", "Windows"]

CODE_POINTS_PER_BLOCK = 128
MAX_WINDOW_CLASSES = 16  # of characters, left halves and right halves: each fits a nibble


class Tables(NamedTuple):
    """A deterministic automaton over classes of characters; `automaton.py` says how to walk it.

    In state 0, all transitions lead to it, and nothing is accepted.
    """

    transitions: Uint16  # (n_states, n_classes): the next state, 0 when nothing can follow
    accepts: Uint8  # (n_states, n_classes + 1): 1 if a match may end before the class; last: at end
    class_pages: Uint16  # (0x110000 / 128,): the block of code point >> 7
    class_blocks: Uint8  # (n_blocks, 128): the class of a code point


class Windows(NamedTuple):
    """Decisions about windows of four ASCII characters.

    `decisions[lefts[a, b], rights[c, d]]` says whether a pre-token begins before the third of four
    characters of the classes a, b, c, d. This is not valid if one of the four, or of the `reach`
    characters before them, is a follower directly after the trigger. Consecutive characters of the
    class `counted` form pre-tokens of `run` characters each. `patterns/windows.py` defines the flag
    of a follower, and `patterns/window_flags.py` defines the other flags.
    """

    classes: Uint8  # (128,): class of an ASCII character in the lower four bits, flags above
    lefts: Uint8  # (16, 16): the class of the first two characters together
    rights: Uint8  # (16, 16): the class of the last two characters together
    decisions: Uint8  # (16, 16): 0: no pre-token begins, 1: one begins, 2: undecided
    trigger: int  # an ASCII character, or 255 for none
    reach: int
    counted: int  # a class, or 255 for none
    run: int

    def to_bytes(self) -> bytes:
        """bytes [900]: all fields, concatenated."""
        return b"".join(array.tobytes() for array in self[:4]) + bytes(self[4:])

    @classmethod
    def from_bytes(cls, data: bytes) -> Windows:
        """The inverse of `to_bytes`."""
        size = MAX_WINDOW_CLASSES
        halves = np.frombuffer(data, np.uint8, 3 * size * size, 128).reshape(3, size, size)
        lefts, rights, decisions = halves
        classes = np.frombuffer(data, np.uint8, 128)
        return cls(classes, lefts, rights, decisions, *data[-4:])
