"""The text of a stream as it was given, and positions in it: bytes, characters, UTF-16.

The encoded text is UTF-8. Surrogates in a str and bytes may be repaired in it. `SourceText` keeps
the end of a text, and how far its characters are from the beginning. Immutable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.encode import spans_in
from .chunk_text import NO_BYTES_YET, BytesTaken, Odd, characters_of, policy_of

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
        """Stretches of the text for those of the encoded text, which must be here.

        A character counts from where it begins to where it ends, for everything that touches it.
        The result may take the memory of `spans`.
        """
        number = UNITS.index(unit)
        if self.at:
            spans = spans - self.at
        if self.odd or not (unit == "byte" or self.text.isascii()):
            data = self.text.encode("utf-8", policy_of(errors))
            odd = [(one.at - self.at, one.n_bytes, one.n_characters) for one in self.odd]
            spans = spans_in(number, spans, data, odd)
        return spans + self.base[number] if self.base[number] else spans

    def forget(self, before: int, errors: str) -> SourceText:
        """Without the characters that end before byte `before` of the encoded text."""
        policy = policy_of(errors)
        n = before - self.at
        if n <= 0:
            return self
        if not str.isascii(self.text):
            data = self.text.encode("utf-8", policy)
            n = int(spans_in(1, np.array([(n, n)]), data, [])[0, 0])
        at = self.at + len(self.text[:n].encode("utf-8", policy))
        place = [int(self.in_unit(np.array([(at, at)]), unit, errors)[0, 0]) for unit in UNITS]
        odd = tuple(one for one in self.odd if one.at >= at)
        base = place[0], place[1], place[2]
        return self._replace(text=self.text[n:], odd=odd, at=at, base=base)


BEGIN = SourceText()


def check_unit(unit: Any) -> None:
    """Raise ValueError for an unknown unit."""
    if unit not in UNITS:
        raise ValueError(f'unit must be "byte", "character" or "utf16", not {unit!r}')
