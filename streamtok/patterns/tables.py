"""The arrays that a pre-tokenization pattern becomes, and nothing that works on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Uint8 = npt.NDArray[np.uint8]
    Uint16 = npt.NDArray[np.uint16]

__all__ = ["CODE_POINTS_PER_BLOCK", "MAX_WINDOW_CLASSES", "Tables", "Windows"]

CODE_POINTS_PER_BLOCK = 128
MAX_WINDOW_CLASSES = 16  # of characters, of left halves and of right halves: one nibble each


class Tables(NamedTuple):
    """A deterministic automaton over classes of characters; `automaton.py` says how to walk it."""

    transitions: Uint16  # (n_states, n_classes): the next state, 0 when nothing can follow
    accepts: Uint8  # (n_states, n_classes + 1): 1 if a match may end before a class, or at the end
    class_pages: Uint16  # (0x110000 / 128,): the block of code point >> 7
    class_blocks: Uint8  # (n_blocks, 128): the class of a code point


class Windows(NamedTuple):
    """Decisions about windows of four ASCII characters.

    `decisions[lefts[a, b], rights[c, d]]` says whether a pre-token begins before the third of four
    characters of the classes a, b, c, d. No decision holds where one of the four, or of the `reach`
    characters before them, is a follower right after the trigger. Characters of the class `counted`
    that follow each other are pre-tokens of `run` each. Flags: `patterns/windows.py` has that of a
    follower, `patterns/window_flags.py` the others.
    """

    classes: Uint8  # (128,): class of an ASCII character in the lower four bits, flags above
    lefts: Uint8  # (16, 16): what the first two amount to
    rights: Uint8  # (16, 16): what the last two amount to
    decisions: Uint8  # (16, 16): 0: none does, 1: one does, 2: undecided
    trigger: int  # an ASCII character, or 255: there is none
    reach: int
    counted: int  # a class, or 255: there is none
    run: int

    def to_bytes(self) -> bytes:
        """bytes [900]: all fields in a row."""
        return b"".join(array.tobytes() for array in self[:4]) + bytes(self[4:])

    @classmethod
    def from_bytes(cls, data: bytes) -> Windows:
        """What `to_bytes` gave."""
        size = MAX_WINDOW_CLASSES
        halves = np.frombuffer(data, np.uint8, 3 * size * size, 128).reshape(3, size, size)
        lefts, rights, decisions = halves
        classes = np.frombuffer(data, np.uint8, 128)
        return cls(classes, lefts, rights, decisions, *data[-4:])
