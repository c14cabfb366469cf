"""The text of a stream as it was given, and positions in it: bytes, characters, UTF-16.

The encoded text is UTF-8. Surrogates in a str and bytes may be repaired in it. `SourceText` keeps
the end of a text, and how far its characters are from the beginning. Immutable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.encode import has_surrogate
from .chunk_text import NO_BYTES_YET, BytesTaken, Odd, characters_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._types import Text

    Offsets = npt.NDArray[np.int64]

__all__ = ["BEGIN", "UNITS", "SourceText", "check_unit"]

UNITS = ("byte", "character", "utf16")


class SourceText(NamedTuple):
    """The characters from byte `at` of the encoded text; `base`: of each unit, how many are before.

    Under "surrogateescape", U+DC80 to U+DCFF are one byte each.
    """

    taken: BytesTaken = NO_BYTES_YET
    text: str = ""
    odd: tuple[Odd, ...] = ()
    at: int = 0
    base: tuple[int, int, int] = (0, 0, 0)

    @property
    def end(self) -> int:
        """Where the characters that are complete end."""
        return self.taken.reached

    def fed(self, chunk: Text, final: bool, errors: str) -> SourceText:
        """With a chunk that an encoder has taken without an error."""
        odd = list(self.odd)
        taken, text = characters_of(self.taken, chunk, final, errors, odd)
        return self._replace(taken=taken, text=self.text + text, odd=tuple(odd))

    def in_unit(self, spans: Offsets, unit: str, errors: str) -> Offsets:
        """Stretches of the text for those of the encoded text, which must be here, in order.

        A character counts from where it begins to where it ends, for everything that touches it.
        """
        base = self.base[UNITS.index(unit)]
        if (unit == "byte" and not self.odd) or (str.isascii(self.text) and not self.odd):
            return spans + (base - self.at)
        data = np.frombuffer(_encoded(self.text, errors), np.uint8)
        begins = _beginnings(data, self.text, errors)
        starts, ends = (spans - self.at).T
        if unit == "byte":
            whole = np.zeros(len(data) + 1, bool)  # of bytes: they go with the one before
            for at, _, n_characters in self.odd:
                if n_characters == 1:  # the bytes of a pair are its own
                    whole[at - self.at + 1 : at - self.at + 3] = True
        else:
            whole = np.append(~begins, False)
        starts, ends = _outward(starts, ends, whole)
        before = np.zeros(len(data) + 1, np.int32 if len(data) < 1 << 28 else np.int64)
        before[0] = 0
        np.cumsum(self._weights(data, begins, unit), dtype=before.dtype, out=before[1:])
        return before[np.column_stack([starts, ends])].astype(np.int64) + base

    def _weights(
        self, data: npt.NDArray[np.uint8], begins: npt.NDArray[np.bool_], unit: str
    ) -> npt.NDArray[Any]:
        weights: npt.NDArray[Any]
        weights = np.ones(len(data), np.int32) if unit == "byte" else begins.view(np.int8)
        if unit == "utf16":
            # A byte that stands for itself has none that belongs to it after it.
            weights = weights + (begins & (data >= 0xF0) & ~np.append(begins[1:], True))
            return weights
        if self.odd:
            weights = weights.astype(np.int32)
        for at, n_bytes, n_characters in self.odd:
            at -= self.at
            if unit == "character":
                weights[at] = n_characters
            elif n_characters == 1:
                weights[at : at + 3] = n_bytes, 0, 0
        return weights

    def forget(self, before: int, errors: str) -> SourceText:
        """Without the characters that end before byte `before` of the encoded text."""
        size = before - self.at
        if size <= 0:
            return self
        n = size
        if self.odd or not str.isascii(self.text):
            data = np.frombuffer(_encoded(self.text, errors), np.uint8)
            begins = _beginnings(data, self.text, errors)
            while size < len(data) and not begins[size]:
                size -= 1
            n = int(begins[:size].sum())
        text, kept = self.text[:n], self.text[n:]
        at = self.at + size
        if self.odd:
            base = self.place(at, errors)
        else:
            utf16 = n if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
            base = self.base[0] + size, self.base[1] + n, self.base[2] + utf16
        odd = tuple(one for one in self.odd if one.at >= at)
        return self._replace(text=kept, odd=odd, at=at, base=base)

    def place(self, at: int, errors: str) -> tuple[int, int, int]:
        """Where byte `at` of the encoded text is, in each unit."""
        here = np.array([(at, at)])
        found = [int(self.in_unit(here, unit, errors)[0, 0]) for unit in UNITS]
        return found[0], found[1], found[2]


BEGIN = SourceText()


def check_unit(unit: Any) -> None:
    """Raise ValueError for an unknown unit."""
    if unit not in UNITS:
        raise ValueError(f'unit must be "byte", "character" or "utf16", not {unit!r}')


def _encoded(text: str, errors: str) -> bytes:
    return text.encode("utf-8", "surrogateescape" if errors == "surrogateescape" else "strict")


def _beginnings(data: npt.NDArray[np.uint8], text: str, errors: str) -> npt.NDArray[np.bool_]:
    """Where characters begin."""
    if not has_surrogate(text, 0, len(text)):
        return data.view(np.int8) > -65
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    sizes = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
    sizes[(points >= 0xDC80) & (points < 0xDD00)] = 1
    begins = np.zeros(len(data), bool)
    begins[np.cumsum(sizes) - sizes] = True
    return begins


def _outward(
    starts: Offsets, ends: Offsets, inside: npt.NDArray[np.bool_]
) -> tuple[Offsets, Offsets]:
    """Starts moved back, and ends on, out of characters."""
    starts, ends = starts.copy(), ends.copy()
    for _ in range(3):
        if not (wrong := inside[starts]).any():
            break
        starts -= wrong
    # An empty span stays empty.
    for _ in range(3):
        if not (wrong := inside[ends]).any():
            break
        ends += wrong
    return starts, ends
