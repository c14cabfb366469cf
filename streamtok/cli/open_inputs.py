"""Opens the inputs of `encode`, `count` and `train`, and explains errors in their text."""

from __future__ import annotations

import codecs
import contextlib
import glob
import json
import os
from collections.abc import Sequence

from ..jobs import documents
from ..jobs.sinks.sidecar import matching_sidecar, sidecar_path
from ..jobs.sources.blocks import Waiting
from ..jobs.sources.compression import unpacked_name
from ..jobs.sources.follow import Follower, check_regular
from ..jobs.sources.inputs import FollowInput, Input
from ..jobs.sources.reading import LiveReading, Reading
from ..jobs.sources.records import OnBad
from ..jobs.span_encoder import Span
from ..jobs.spans import open_span
from ..jobs.stores import places
from ..jobs.stores.objects import expand
from ..jobs.stores.urls import is_url
from .messages import Misused, Refused, input_name, say, shown

_RECORDS = [  # file suffixes, the kind of file, the option that reads it
    ((".jsonl", ".ndjson"), "JSON lines", "--jsonl FIELD takes the text in a field of each line"),
    ((".parquet",), "Parquet", "--parquet COLUMN takes the texts of a column"),
]


_START = 1 << 12  # bytes of a file to inspect


class Notes:
    """Prints notes about probable mistakes and about the run."""

    def __init__(self, is_quiet: bool = False, is_json: bool = False):
        """is_json: standard error is JSON."""
        self._is_quiet = is_quiet
        self._is_json = is_json

    def say(self, what: str) -> None:
        """Print a note, unless --quiet is given."""
        if self._is_quiet:
            return
        if self._is_json:
            say(json.dumps({"note": what}), prefix="")
        else:
            say(what)


def input_paths(
    files: Sequence[str], patterns: Sequence[str], reading: Reading, notes: Notes
) -> list[str]:
    """The files of a command; "-" is standard input. Raises Refused.

    patterns: the values of --glob. Warns of probable mistakes: files of records read as plain text,
    and a first file that begins with a byte order mark, UTF-16 or a CR LF line.
    """
    if isinstance(reading, LiveReading) and reading.follow:
        if len(files) != 1 or files[0] == "-" or patterns or reading.parquet is not None:
            raise Misused("--follow needs exactly one text file")
        if is_url(files[0]):
            raise Misused("--follow needs a file of this machine: objects in stores do not grow")
    names = given_names(files) if files else []
    seen = {os.path.abspath(name) for name in names}
    for pattern in patterns:
        if is_url(pattern):
            found = expand(pattern)
        else:
            found = [one for one in glob.glob(pattern, recursive=True) if not os.path.isdir(one)]
        if not found:
            raise Refused(f"no file matches {pattern!r}")
        for name in sorted(found):
            if os.path.abspath(name) not in seen:
                seen.add(os.path.abspath(name))
                names.append(name)
    _warn_of_records(names, reading, notes)
    if names and os.path.isfile(names[0]):
        with contextlib.suppress(OSError):  # opening it later reports the error better
            _warn_of_start(names[0], reading, notes)
    return names or ["-"]


def _warn_of_records(names: Sequence[str], reading: Reading, notes: Notes) -> None:
    """Warn of files whose text is probably in a field or a column, unless the options name one."""
    if reading.jsonl is not None or reading.parquet is not None:
        return
    for suffixes, kind, option in _RECORDS:
        found = [one for one in names if unpacked_name(one).endswith(suffixes)]
        if found and matching_sidecar(found[0]) is None:  # a file of ids is refused later
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            name = f"{input_name(found[0])}{more}"
            notes.say(f"{name}: {kind} taken as plain text; {option}")


def _warn_of_start(path: str, reading: Reading, notes: Notes) -> None:
    name, start = input_name(path), places.read_head(path, _START)
    if reading.jsonl is None and start.startswith(codecs.BOM_UTF8):
        notes.say(f"{name} begins with a byte order mark, which becomes a token")
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        notes.say(f"{name} begins as UTF-16 does; iconv -f UTF-16 -t UTF-8 converts it")
    if reading.lines and start[: start.find(b"\n") + 1].endswith(b"\r\n"):
        what = r"lines end with \r\n and keep their \r; --delimiter '\r\n' removes it"
        notes.say(f"{name}: {what}")


def given_names(files: Sequence[str]) -> list[str]:
    """The FILE arguments, or "-" if there are none. Raises Misused if "-" is given twice."""
    if files.count("-") > 1:  # it would be empty the second time
        raise Misused("- is given twice, but standard input can be read only once")
    return list(files) or ["-"]


def open_input(
    path: str, reading: Reading, waiting: Waiting, block_size: int, on_bad: OnBad
) -> Input:
    """Open an input that `input_paths` returned. Raises Refused, OSError, StreamtokError.

    waiting: see `Waiting`. block_size: bytes to read at a time. on_bad: called for bad records.
    """
    name = input_name(path)
    if isinstance(reading, LiveReading) and reading.follow:
        with contextlib.suppress(FileNotFoundError):
            check_regular(path)
        follower = Follower(
            path,
            size=block_size,
            waiting=waiting,
            missing=lambda path: say(f"waiting for {shown(path)}"),
        )
        return FollowInput(name, reading, on_bad, follower)
    if reading.parquet is not None and path == "-":
        raise Misused("--parquet needs a file: standard input cannot be read from its end")
    refuse_ids(path)
    return open_span(reading, path, Span(0, 1), on_bad, block_size, name=name, waiting=waiting)


def refuse_ids(path: str) -> None:
    """Raise Refused if the file holds ids, according to its sidecar."""
    found = matching_sidecar(path) if path != "-" else None
    if found is not None:
        raise Refused(
            f"{input_name(path)} holds ids, not text: decode it first ({shown(sidecar_path(path))} "
            f"says {found.tokens:,} ids of {found.encoding})"
        )


def explain(error: Exception, where: str) -> Exception:
    """The exception to raise for an error in the text of an input or of a document.

    where: the name of the input or document, to which the offsets in the message refer.
    """
    said = documents.explain(error, where)
    return error if said == str(error) else Refused(said)
