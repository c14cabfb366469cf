"""A row in the record of a run (`record`): a position from which the run can continue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import DocumentError
from ..files import Piece

if TYPE_CHECKING:
    from .sources.records import BadRecord


@dataclass
class Totals:
    """Counts of a run: inputs and documents completed, bytes of text, ids, and records skipped.

    skipped_because: number of skipped records by reason.
    """

    inputs: int = 0
    documents: int = 0
    bytes: int = 0
    tokens: int = 0
    skipped: int = 0
    skipped_because: dict[str, int] = field(default_factory=dict)

    def skip(self, bad: BadRecord) -> None:
        self.skipped += 1
        self.skipped_because[bad.kind] = self.skipped_because.get(bad.kind, 0) + 1

    @property
    def reasons(self) -> str:
        """Counts by reason, the most frequent first, as in "no text: 12, invalid JSON: 1"."""
        ordered = sorted(self.skipped_because.items(), key=lambda one: -one[1])
        return ", ".join(f"{reason}: {count:,}" for reason, count in ordered)

    def check_skipped(self, log: str | None = None) -> None:
        """Raise DocumentError if all records were skipped. log: the file that lists them."""
        if self.skipped and not self.documents:
            names = f"; {log} lists them" if log else ""
            raise DocumentError(
                f"no document is left: {self.skipped:,} lines or rows were skipped "
                f"({self.reasons}){names}"
            )

    def add(self, other: Totals) -> None:
        self.inputs += other.inputs
        self.documents += other.documents
        self.bytes += other.bytes
        self.tokens += other.tokens
        self.skipped += other.skipped
        for reason, count in other.skipped_because.items():
            self.skipped_because[reason] = self.skipped_because.get(reason, 0) + count


@dataclass(frozen=True)
class Row:
    """A position from which a run can continue.

    input, position: the number of the next input, and the position in it (`Input.position`). shard:
    the number of the open shard. sizes: bytes of its files. pieces: digests of the bytes that each
    file has gained since the previous row. in_shard: how many tokens and documents the shard has,
    and how many ids its open document has. log: bytes of the log of skipped records. stream: the
    encoder's state, only in a mark.
    """

    input: int = 0
    position: dict[str, Any] | None = None
    shard: int = 0
    sizes: tuple[int, ...] | None = None  # None: no files yet
    pieces: tuple[tuple[Piece, ...], ...] = ()
    in_shard: tuple[int, int, int] = (0, 0, 0)
    log: int | None = None
    totals: Totals = field(default_factory=Totals)
    stream: dict[str, Any] | None = None

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Row:
        """Rebuild a row from its fields as JSON values."""
        pieces = tuple(tuple((size, sha) for size, sha in one) for one in row["pieces"])
        return cls(
            **row
            | {
                "pieces": pieces,
                "sizes": None if row["sizes"] is None else tuple(row["sizes"]),
                "in_shard": tuple(row["in_shard"]),
                "totals": Totals(**row["totals"]),
            }
        )
