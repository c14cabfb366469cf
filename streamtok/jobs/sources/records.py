"""Names the records of an input (lines or rows) in messages and in the log of skipped records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias


class BadRecord(NamedTuple):
    """A record without a text.

    file: the name of the input. position: the byte offset of the line in the text, or the row group
    and the row in the group (both from 0). kind: the reason, worded the same for all such records.
    detail: more about this record, or "".
    """

    file: str
    position: Mapping[str, int]
    kind: str
    detail: str = ""

    @property
    def reason(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else self.kind


class BadLine(ValueError):
    """Why a line has no text: see BadRecord. hint: a remedy other than skipping the line."""

    def __init__(self, kind: str, detail: str = "", hint: str = ""):
        super().__init__(kind)
        self.kind = kind
        self.detail = detail
        self.hint = hint


OnBad: TypeAlias = Callable[[BadRecord], None]
"""Called with each bad record, in order, when it is skipped."""


class Positions(NamedTuple):
    """The records that the documents of a group came from: consecutive ones, except for holes.

    where: returns a record's name by number. first: number of the first document's record. holes:
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
