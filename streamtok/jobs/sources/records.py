"""The records of an input, lines or rows: how messages and the log of skipped ones name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias


class BadRecord(NamedTuple):
    """A record without a text.

    file: the name of the input. place: the byte offset of its line in the text, or its row group
    and its row in that (both from 0). kind: why it is bad, the same for all such records; detail:
    more about this one, or "".
    """

    file: str
    place: Mapping[str, int]
    kind: str
    detail: str = ""

    @property
    def reason(self) -> str:
        """kind and detail."""
        return f"{self.kind}: {self.detail}" if self.detail else self.kind


class BadLine(ValueError):
    """Why a line has no text: see BadRecord. hint: what else helps than to skip it."""

    def __init__(self, kind: str, detail: str = "", hint: str = ""):
        super().__init__(kind)
        self.kind = kind
        self.detail = detail
        self.hint = hint


OnBad: TypeAlias = Callable[[BadRecord], None]
"""Called with each bad record, in order, when it is skipped."""


class Positions(NamedTuple):
    """Which records of an input the documents of a group are: consecutive ones, except for holes.

    where: the name of a record by its number. first: the number of the first document's. holes:
    numbers of records that are not documents, in ascending order.
    """

    where: Callable[[int], str]
    first: int = 1
    holes: Sequence[int] = ()

    def name(self, index: int) -> str:
        """The name of document number `index` of the group."""
        number = self.first + index
        for hole in self.holes:
            if hole <= number:
                number += 1
        return self.where(number)
