"""How inputs are read, and which splitter each gets, by what the user says that a document is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from .json_lines import MAX_LINE, JsonLines
from .records import OnBad
from .splitters import Delimited, Splitter, Start, Whole


@dataclass(frozen=True)
class Reading:
    """How the texts of files are read and divided into documents, as `streamtok encode` says it.

    Of lines, delimiter, jsonl (a field) and parquet (a column) at most one is given; without any,
    each input is one document. max_line: bytes of a JSON line. errors: for bytes that are not
    UTF-8. unpack: decompress.
    """

    lines: bool = False
    delimiter: bytes | None = None
    jsonl: str | None = None
    parquet: str | None = None
    skip_bad_lines: bool = False
    strip_bom: bool = False
    unpack: bool = True
    errors: str = "strict"
    max_line: int = MAX_LINE

    @classmethod
    def of(cls, options: Any) -> Reading:
        """What options say that have the names of `streamtok encode`: of a command or a plan."""
        names = {one.name for one in fields(cls)} - {"skip_bad_lines", "max_line"}
        return cls(
            **{name: getattr(options, name) for name in names},
            skip_bad_lines=options.skip_bad_lines or options.max_bad_lines is not None,
            max_line=options.max_pending,
        )

    @property
    def end(self) -> bytes | None:
        """The bytes that end a document, or None if none do."""
        if self.jsonl is not None or self.lines:
            return b"\n"
        return self.delimiter

    @property
    def is_split(self) -> bool:
        """Whether an input may hold several documents."""
        return self.end is not None or self.parquet is not None

    @property
    def can_cut(self) -> bool:
        """Whether an input can be read in parts that end where documents do.

        Not if a delimiter can overlap with itself: then where one is found depends on where the
        search begins.
        """
        end = self.end or b""
        return self.is_split and not any(end[:i] == end[-i:] for i in range(1, len(end)))

    def splitter(
        self,
        name: str,
        start: Start,
        *,
        on_bad: OnBad | None = None,
        ends: bool = True,
        before: Callable[[], int] | None = None,
    ) -> Splitter:
        """The splitter of an input of bytes. on_bad: takes the bad lines that are skipped.

        name: the input, for errors. ends: that one document ends where the input does. before: as
        for `Splitter`.
        """
        made: Splitter
        if self.jsonl is not None:
            made = JsonLines(
                self.jsonl,
                name,
                on_bad=on_bad if self.skip_bad_lines else None,
                max_line=self.max_line,
                errors=self.errors,
                start=start,
            )
        elif self.end is not None:
            made = Delimited(self.end, start)
        else:
            made = Whole(start, ends=ends)
        made.name, made.before = name, before
        made.strips_mark = self.strip_bom and self.jsonl is None
        return made

    def as_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        row = asdict(self)
        return row | {"delimiter": self.delimiter and self.delimiter.decode("latin-1")}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Reading:
        """The value of `as_json`. Raises TypeError."""
        end = row["delimiter"]
        return cls(**{**row, "delimiter": None if end is None else end.encode("latin-1")})
