"""Opens the inputs of `encode` and `count`, and explains what can go wrong in their text."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import functools
import glob
import json
import os
from collections.abc import Sequence

from ..errors import PendingLimitExceeded, StreamtokError
from ..pipeline import sinks
from ..pipeline.documents import with_advice
from ..pipeline.sinks.sidecar import sidecar_path
from ..pipeline.skip_log import SkipLog, skip_log_path
from ..pipeline.sources import (
    FileInput,
    Follower,
    FollowInput,
    Input,
    MakeSplitter,
    ParquetInput,
    Reading,
    Waiting,
    check_regular,
    unpacked_name,
)
from ..stores.objects import expand
from ..stores.urls import is_url
from .messages import Misused, Refused, input_name, say, shown

_RECORDS = [  # suffixes of files, what they are, how to read them
    ((".jsonl", ".ndjson"), "JSON lines", "--jsonl FIELD takes the text in a field of each line"),
    ((".parquet",), "Parquet", "--parquet COLUMN takes the texts of a column"),
]


def open_inputs(args: argparse.Namespace, names: Sequence[str]) -> list[Input]:
    """Open what `input_paths` has found. Raises Refused, OSError, StreamtokError."""
    if args.follow:
        return [_open_followed(args, names[0])]
    return [open_input(args, path) for path in names]


def input_paths(args: argparse.Namespace) -> list[str]:
    """The files of the command; "-" is standard input. Raises Refused.

    Warns of files of records that are to be taken as plain text.
    """
    if getattr(args, "accept_gap", False) and not args.follow:
        raise Misused("--accept-gap needs --follow")
    if getattr(args, "follow", False):
        if len(args.files) != 1 or args.files[0] == "-" or args.glob or args.parquet is not None:
            raise Misused("--follow needs exactly one text file")
        if is_url(args.files[0]):
            raise Misused("--follow needs a file of this machine: objects in stores do not grow")
    names = given_names(args.files) if args.files else []
    seen = {os.path.abspath(name) for name in names}
    for pattern in args.glob:
        if is_url(pattern):
            found = expand(pattern)
        else:
            found = [one for one in glob.glob(pattern, recursive=True) if not os.path.isdir(one)]
        if not found:
            raise Refused(f"no file matches {pattern!r}")
        for name in sorted(found):
            if os.path.abspath(name) not in seen:  # not given before
                seen.add(os.path.abspath(name))
                names.append(name)
    _warn_of_records(args, names)
    return names or ["-"]


def _warn_of_records(args: argparse.Namespace, names: Sequence[str]) -> None:
    """Say which of the files look as if the text were in a field or a column, if none is named."""
    if args.jsonl is not None or args.parquet is not None:
        return
    for suffixes, kind, option in _RECORDS:
        plain = unpacked_name if args.unpack else str.lower
        found = [one for one in names if plain(one).endswith(suffixes)]
        if found and sinks.matching_sidecar(found[0]) is None:  # else it is refused: it holds ids
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            name = f"{input_name(found[0])}{more}"
            _note_once(args, f"{name}:", f"{kind} taken as plain text; {option}")


def given_names(files: Sequence[str]) -> list[str]:
    """The names of FILE..., or standard input's. Raises Misused if that is named twice."""
    if files.count("-") > 1:  # the second time it would be empty
        raise Misused("- is given twice, but standard input can be read only once")
    return list(files) or ["-"]


def open_input(args: argparse.Namespace, path: str) -> Input:
    """Open one file. Raises as `open_inputs`."""
    name = input_name(path)
    refuse_ids(path)
    reading = Reading.of(args)
    if reading.parquet is not None:
        if path == "-":
            raise Misused("--parquet needs a file: standard input cannot be read from its end")
        return ParquetInput(path, name, reading, on_bad=args.skip_log, waiting=_waiting(args))
    return FileInput(
        path,
        name,
        _make_splitter(args),
        may_be_compressed=args.unpack,
        block_size=args.chunk_size,
        look=functools.partial(_look, args),
        waiting=_waiting(args),
    )


def refuse_ids(path: str) -> None:
    """Raise Refused if the file holds ids, according to its sidecar."""
    found = sinks.matching_sidecar(path) if path != "-" else None
    if found is not None:
        raise Refused(
            f"{input_name(path)} holds ids, not text: decode it first ({shown(sidecar_path(path))} "
            f"says {found.tokens:,} ids of {found.encoding})"
        )


def _open_followed(args: argparse.Namespace, path: str) -> Input:
    with contextlib.suppress(FileNotFoundError):
        check_regular(path)
    follower = Follower(
        path,
        size=args.chunk_size,
        waiting=_waiting(args),
        missing=lambda path: say(f"waiting for {shown(path)}"),
        accept_gap=functools.partial(_say_gap, args) if args.accept_gap else None,
    )
    look = functools.partial(_look, args)
    return FollowInput(input_name(path), _make_splitter(args), follower, look)


def _say_gap(args: argparse.Namespace, what: str) -> None:
    """Say which text is lost, also where notes are not wanted."""
    if hasattr(args, "quiet") and getattr(args, "json", False):  # then standard error is JSON
        say(json.dumps({"gap": what}), prefix="")
    else:
        say(what)


def _make_splitter(args: argparse.Namespace) -> MakeSplitter:
    return functools.partial(Reading.of(args).splitter, on_bad=args.skip_log)


def _look(args: argparse.Namespace, name: str, start: bytes) -> None:
    """Warn about what the user probably does not want."""
    if args.jsonl is None and not args.strip_bom and start.startswith(codecs.BOM_UTF8):
        what = "begins with a byte order mark, which becomes a token; --strip-bom removes it"
        _note_once(args, name, what)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        _note_once(args, name, "begins as UTF-16 does; iconv -f UTF-16 -t UTF-8 converts it")
    if args.lines and start[: start.find(b"\n") + 1].endswith(b"\r\n"):
        what = r"lines end with \r\n and keep their \r; --delimiter '\r\n' removes it"
        _note_once(args, f"{name}:", what)


def _note_once(args: argparse.Namespace, name: str, what: str) -> None:
    notes = vars(args).setdefault("notes", set())
    if what in notes or getattr(args, "quiet", False):
        return
    notes.add(what)
    if hasattr(args, "quiet") and getattr(args, "json", False):  # then standard error is JSON
        say(json.dumps({"note": f"{name} {what}"}), prefix="")
    else:
        say(f"{name} {what}")


def make_skip_log(args: argparse.Namespace, output: str | None) -> SkipLog:
    """What takes the skipped records of the inputs opened next. output: its log lies beside it."""
    path = skip_log_path(output) if output is not None and Reading.of(args).skip_bad_lines else None
    is_resumable = getattr(args, "resume", False)
    made = SkipLog(path, limit=args.max_bad_lines, is_resumable=is_resumable)
    args.skip_log = made
    return made


def _waiting(args: argparse.Namespace) -> Waiting:
    """In which the process waits for input; by default, signals end it there and nowhere else."""
    waiting: Waiting = getattr(args, "waiting", args.signals.heard)
    return waiting


def explain(error: Exception, where: str) -> Exception:
    """The exception to raise for an error in the text of an input or of a document.

    where: names it; offsets are those in it.
    """
    if isinstance(error, StreamtokError) and not isinstance(error, PendingLimitExceeded):
        return error
    return Refused(f"{where}: {with_advice(error)}")
