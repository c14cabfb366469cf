"""Which splitter an input gets, by what the user says that a document is."""

from __future__ import annotations

from collections.abc import Callable

from .json_lines import JsonLines
from .splitters import Delimited, Splitter, Whole

MakeSplitter = Callable[[str, int, int, int, bool], Splitter]
"""Makes a splitter from (name, consumed, records, crc, is_open); name: the input, for errors."""


def splitter_maker(
    jsonl: str | None,
    delimiter: bytes | None,
    *,
    skip_bad: bool,
    max_line: int,
    errors: str,
    ends: bool = True,
) -> MakeSplitter:
    """Makes splitters: JSON lines, else documents with a delimiter, else the whole input is one.

    ends: that one document ends where the input does. The others: as for `JsonLines`.
    """

    def make(name: str, consumed: int, records: int, crc: int, is_open: bool) -> Splitter:
        if jsonl is not None:
            return JsonLines(
                jsonl,
                name,
                skip_bad=skip_bad,
                max_line=max_line,
                errors=errors,
                consumed=consumed,
                records=records,
                crc=crc,
            )
        if delimiter is not None:
            return Delimited(delimiter, consumed, records, crc, is_open)
        return Whole(consumed, records, crc, ends=ends)

    return make
