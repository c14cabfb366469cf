"""The inputs of `encode` and `count`: options, what these open, and what can go wrong there."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import glob
import json
import os
import re
from collections.abc import Iterator
from typing import Any

from ..chunker import StreamEncoder
from ..encoding import Encoding
from ..errors import PendingLimitExceeded, StreamtokError
from ..pipeline import sinks
from ..pipeline.documents import DocumentEncoder
from ..pipeline.sinks.sidecar import sidecar_path
from ..pipeline.sources import (
    Address,
    Delimited,
    FileInput,
    Follower,
    FollowInput,
    Input,
    JsonLines,
    Listener,
    Opening,
    ParquetInput,
    SocketInput,
    Splitter,
    Whole,
    unescape,
)
from . import options
from .report import Misused, Refused, input_name, say, shown


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Add FILE, and what the files are and how they fall into documents."""
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="- or none: standard input; gzip, zstd, xz and bzip2 are unpacked",
    )
    group = parser.add_argument_group("inputs and documents (default: each input is one)")
    group.add_argument(
        "--glob",
        action="append",
        default=[],
        metavar="PATTERN",
        help="further files, in the order of their names; ** is any folder",
    )
    kind = group.add_mutually_exclusive_group()
    kind.add_argument(
        "--lines", action="store_true", help=r"each line is a document; its \n is no part of it"
    )
    kind.add_argument(
        "--delimiter",
        type=_delimiter,
        metavar="TEXT",
        help=r"documents are between these; \n \r \t \0 \\ \xHH",
    )
    kind.add_argument(
        "--jsonl", metavar="FIELD", help="each line is JSON; FIELD has the text, as in a.b or a.0.b"
    )
    kind.add_argument("--parquet", metavar="COLUMN", help="each row of this column is a document")
    group.add_argument(
        "--skip-bad-lines",
        action="store_true",
        help="count lines and rows without a text instead of refusing them",
    )
    group.add_argument(
        "--skip-empty", action="store_true", help="documents without text are left out"
    )
    group.add_argument(
        "--strip-bom", action="store_true", help="a byte order mark at the begin is left out"
    )
    group.add_argument(
        "--no-unpack", action="store_true", help="compressed files are taken as they are"
    )


def add_live_options(parser: argparse.ArgumentParser) -> None:
    """Add the inputs that may never end."""
    group = parser.add_argument_group("live inputs").add_mutually_exclusive_group()
    group.add_argument(
        "--follow",
        action="store_true",
        help="read on as FILE grows, is rotated or cut, until a signal",
    )
    group.add_argument(
        "--listen", type=_address, metavar="ADDRESS", help="HOST:PORT, or a path: a Unix socket"
    )
    group.add_argument("--connect", type=_address, metavar="ADDRESS", help="likewise")
    parser.add_argument(
        "--connections",
        type=options.natural_of,
        metavar="N",
        help="of --listen, one after the other; 0: until a signal (default: 1)",
    )


def open_inputs(args: argparse.Namespace) -> list[Input]:
    """list[Input]: the files of the command. Raises Refused, OSError and StreamtokError."""
    _check_connections(args)
    return [open_input(args, path) for path in input_paths(args)]


def input_paths(args: argparse.Namespace) -> list[str]:
    """list[str]: the files of the command, "-" for standard input. Raises Refused."""
    names = list(args.files)
    seen = {os.path.abspath(name) for name in names}
    for pattern in args.glob:
        found = [one for one in glob.glob(pattern, recursive=True) if not os.path.isdir(one)]
        if not found:
            raise Refused(f"no file is named like {pattern!r}")
        for name in sorted(found):
            if os.path.abspath(name) not in seen:  # named before, or like another pattern, too
                seen.add(os.path.abspath(name))
                names.append(name)
    return names or ["-"]


def open_input(args: argparse.Namespace, path: str) -> Input:
    """Input: of one file. Raises as `open_inputs`."""
    name = input_name(path)
    refuse_ids(path)
    if args.parquet is not None:
        if path == "-":
            raise Misused("Parquet has its directory at its end: it must be a file")
        return ParquetInput(
            path,
            name,
            args.parquet,
            skip_bad=args.skip_bad_lines,
            waiting=args.signals.heard,
        )
    return FileInput(
        path,
        name,
        _splitter_maker(args),
        is_packed=not args.no_unpack,
        block_size=args.chunk_size,
        opening=_opening(args),
        waiting=args.signals.heard,
    )


def refuse_ids(path: str) -> None:
    """Raise Refused for a file of ids, which its sidecar tells from a text."""
    found = sinks.matching_sidecar(path) if path != "-" else None
    if found is not None:
        raise Refused(
            f"{input_name(path)} holds {found.tokens:,} ids of {found.encoding}, as "
            f"{shown(sidecar_path(path))} says, and no text: decode it first"
        )


def open_followed(args: argparse.Namespace) -> Input:
    """Input: the one file of --follow."""
    _check_connections(args)
    if len(args.files) != 1 or args.files[0] == "-" or args.glob or args.parquet is not None:
        raise Misused("--follow is for one file of text")
    path = args.files[0]
    follower = Follower(path, size=args.chunk_size, waiting=args.signals.heard)
    return FollowInput(
        path, input_name(path), _splitter_maker(args), follower, opening=_opening(args)
    )


def open_sockets(args: argparse.Namespace) -> tuple[Iterator[Input], Listener | None]:
    """(inputs, listener to close): the connections of --listen or --connect."""
    if args.files or args.glob or args.parquet is not None:
        raise Misused("a socket is not for files: leave FILE, --glob and --parquet away")
    settings: dict[str, Any] = {
        "block_size": args.chunk_size,
        "opening": _opening(args),
        "waiting": args.signals.heard,
    }
    make = _splitter_maker(args)
    _check_connections(args)
    if args.connect is not None:
        return iter([SocketInput(args.connect, make, **settings)]), None
    ready = None if args.quiet else lambda where: say(f"listening on {where}")
    listener = Listener(args.listen, ready)

    def connections() -> Iterator[Input]:
        number = 0
        while number < args.connections or not args.connections:
            yield SocketInput(listener, make, **settings)
            number += 1

    return connections(), listener


def _check_connections(args: argparse.Namespace) -> None:
    if args.connections is None:
        args.connections = 1
    elif args.listen is None:
        raise Misused("--connections is for --listen")


def _opening(args: argparse.Namespace) -> Opening:
    def look(name: str, start: bytes) -> None:
        """Say what is probably not meant."""
        if args.jsonl is None and not args.strip_bom and start.startswith(codecs.BOM_UTF8):
            what = "begins with a byte order mark, which becomes a token; --strip-bom leaves it out"
            _note_once(args, name, what)
        if args.lines and start[: start.find(b"\n") + 1].endswith(b"\r\n"):
            what = (
                r"lines end with \r\n, and \r is a part of each; --delimiter '\r\n' leaves it out"
            )
            _note_once(args, f"{name}:", what)

    return Opening(args.strip_bom and args.jsonl is None, look)


def _note_once(args: argparse.Namespace, name: str, what: str) -> None:
    notes = vars(args).setdefault("notes", set())
    if what in notes or getattr(args, "quiet", False):
        return
    notes.add(what)
    if hasattr(args, "quiet") and args.json:  # standard error is JSON then
        say(json.dumps({"note": f"{name} {what}"}), prefix="")
    else:
        say(f"{name} {what}")


def _splitter_maker(args: argparse.Namespace) -> Any:
    def make(name: str, consumed: int, records: int, crc: int, is_open: bool) -> Splitter:
        if args.jsonl is not None:
            return JsonLines(
                args.jsonl,
                name,
                skip_bad=args.skip_bad_lines,
                max_line=args.max_pending,
                errors=args.errors,
                consumed=consumed,
                records=records,
                crc=crc,
            )
        if args.lines or args.delimiter is not None:
            return Delimited(args.delimiter or b"\n", consumed, records, crc, is_open)
        return Whole(consumed, records, crc)

    return make


def open_encoder(
    args: argparse.Namespace, encoding: Encoding, stream: StreamEncoder
) -> DocumentEncoder:
    """DocumentEncoder: with what each document begins and ends with."""
    return DocumentEncoder(
        stream,
        prepend=special_id(getattr(args, "prepend", None), encoding),
        append=special_id(getattr(args, "append", None), encoding),
        skip_empty=args.skip_empty,
        num_threads=getattr(args, "threads", 1),
    )


def special_id(name: str | None, encoding: Encoding) -> int | None:
    """int | None: the id of a special token, or an id in decimal. Raises Refused if it is none."""
    if name is None:
        return None
    if name in encoding.special_tokens_set:
        return encoding.encode_single_token(name)
    if re.fullmatch(r"[0-9]{1,18}", name):
        with contextlib.suppress(KeyError, OverflowError):
            encoding.decode_single_token_bytes(int(name))
            return int(name)
    raise Refused(
        f"{name!r} is no special token of {encoding.name} and no id there"
        f"{options.known_specials(encoding)}"
    )


def refusal(error: Exception, name: str, encoder: DocumentEncoder, is_split: bool) -> Exception:
    """Exception: what went wrong while a text was encoded, with its place, for the user.

    is_split: inputs hold several documents, and offsets are in one of them.
    """
    where = f"{name}: document {encoder.documents + 1}" if is_split else name
    if isinstance(error, UnicodeDecodeError):
        return Refused(
            f"{where}: byte {error.start} is not UTF-8 ({error.reason}); "
            "--errors replace or --errors surrogateescape goes on"
        )
    if isinstance(error, PendingLimitExceeded):
        return Refused(f"{where}: {error} (--max-pending)")
    if isinstance(error, StreamtokError):
        return error
    # A disallowed special token; the first line says which and where.
    what = str(error).partition("\n")[0].rstrip(".")
    return Refused(
        f"{where}: {what}; --allowed-special gives it its id, "
        "--disallowed-special none takes it as plain text"
    )


def is_split(args: argparse.Namespace) -> bool:
    """bool: whether an input holds several documents."""
    return bool(args.lines or args.delimiter or args.jsonl is not None or args.parquet is not None)


def _delimiter(text: str) -> bytes:
    if not text:
        raise argparse.ArgumentTypeError("the delimiter is empty; --lines splits at line ends")
    try:
        return unescape(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _address(text: str) -> Address:
    try:
        return Address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
