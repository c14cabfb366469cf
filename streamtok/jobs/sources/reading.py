"""The options that determine how inputs are read, and the splitter for them."""

from __future__ import annotations

from dataclasses import dataclass

from ..argument_types import LONGEST_DELIMITER, parse_delimiter
from ..option_fields import IDS, UNREAD, said
from .json_lines import MAX_LINE, JsonLines
from .records import OnBad
from .splitters import Delimited, Splitter, Start, Whole

_DOCUMENTS = "inputs and documents (default: each input is one document)"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How inputs are read and divided into documents.

    At most one of lines, delimiter, jsonl (a field) and parquet (a column) is given; if none is,
    each input is one document. max_pending: limits the bytes of a JSON line, among other things.
    errors: the treatment of invalid UTF-8.
    """

    lines: bool = said(
        "--lines",
        r"each line is a document, without its \n",
        decides=IDS,
        default=False,
        group=_DOCUMENTS,
        one_of="documents",
    )
    delimiter: bytes | None = said(
        "--delimiter TEXT",
        r"documents are separated by TEXT; escapes: \n \r \t \0 \\ \xHH",
        parse_delimiter,
        decides=IDS,
        group=_DOCUMENTS,
        one_of="documents",
    )
    jsonl: str | None = said(
        "--jsonl FIELD",
        "each line is JSON with the text in FIELD, such as a.b or a.0.b; empty lines are ignored",
        decides=IDS,
        group=_DOCUMENTS,
        one_of="documents",
    )
    parquet: str | None = said(
        "--parquet COLUMN",
        "each row of this column is a document",
        decides=IDS,
        group=_DOCUMENTS,
        one_of="documents",
    )
    skip_bad_lines: bool = said(
        "--skip-bad-lines",
        "skip lines and rows without a text instead of failing; they are counted by reason, "
        "and encode lists them in OUTPUT.skipped.jsonl",
        decides=UNREAD,
        default=False,
        group=_DOCUMENTS,
    )
    skip_empty: bool = said(
        "--skip-empty", "skip empty documents", decides=IDS, default=False, group=_DOCUMENTS
    )
    errors: str = said("--errors HOW", decides=UNREAD, default="strict")
    max_pending: int = said("--max-pending SIZE", decides=UNREAD, default=MAX_LINE)

    def __post_init__(self) -> None:
        """Check the options that do not depend on files. Raises ValueError."""
        kinds = [self.lines or None, self.delimiter, self.jsonl, self.parquet]
        if sum(one is not None for one in kinds) > 1:
            raise ValueError("only one of lines, delimiter, jsonl and parquet can be given")
        if self.delimiter == b"":
            raise ValueError("the delimiter is empty; --lines splits at line ends")
        if self.delimiter is not None and len(self.delimiter) > LONGEST_DELIMITER:
            raise ValueError(
                f"a delimiter has at most {LONGEST_DELIMITER} bytes, this one has "
                f"{len(self.delimiter)}"
            )

    @property
    def end(self) -> bytes | None:
        """The bytes that end a document, or None."""
        if self.jsonl is not None or self.lines:
            return b"\n"
        return self.delimiter

    @property
    def is_split(self) -> bool:
        """Whether an input can hold several documents."""
        return self.end is not None or self.parquet is not None

    @property
    def can_cut(self) -> bool:
        """Whether an input can be read in parts that end where documents end.

        It cannot if the delimiter can overlap itself, because matches then depend on where the
        search begins.
        """
        end = self.end or b""
        return self.is_split and not any(end[:i] == end[-i:] for i in range(1, len(end)))

    def splitter(
        self,
        name: str,
        start: Start,
        *,
        on_bad: OnBad,
        ends: bool,
    ) -> Splitter:
        """Make the splitter for an input of bytes. name: the input, for errors.

        on_bad: called with the bad lines that are skipped. ends: whether the end of the input also
        ends an undivided document.
        """
        made: Splitter
        if self.jsonl is not None:
            made = JsonLines(
                self.jsonl,
                name,
                on_bad=on_bad if self.skip_bad_lines else None,
                max_line=self.max_pending,
                errors=self.errors,
                start=start,
            )
        elif self.end is not None:
            made = Delimited(self.end, start)
        else:
            made = Whole(start, ends=ends)
        made.name = name
        return made


@dataclass(frozen=True, kw_only=True)
class LiveReading(Reading):
    """Reading that may continue as an input grows."""

    follow: bool = said(
        "--follow",
        "keep reading as FILE grows, is rotated or is truncated, until a signal; rotated files "
        "beside it (FILE.1, FILE-20260101) are read for text that is no longer in FILE",
        default=False,
        group="live inputs",
    )
