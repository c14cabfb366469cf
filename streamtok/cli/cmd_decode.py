"""`streamtok decode`: ids back to bytes.

Which encoding and format the ids are of is in their sidecar. What the command line says otherwise
is an error, unless it insists with --force.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

import numpy as np

from .. import registry
from ..encoding import Encoding
from ..errors import SidecarError
from ..pipeline import sinks
from ..pipeline.sinks.sidecar import sidecar_path
from ..pipeline.sources.blocks import STDIN, check_file, read_descriptor
from . import options, overwriting
from .report import Refused, input_name, shown

# Of these the first file is raw ids, and the sidecar says of which type.
_RAW = ("megatron", "datatrove")
_HEAD = 1024  # bytes: the header of llm.c


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "decode",
        run,
        "turn ids back into the bytes they stand for",
        ["@ book.npy > book.txt", "@ -e gpt2 --format u16 < ids", "echo 15339 1917 | @"],
    )
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="- : standard input")
    options.add_encoding(
        parser, None, f"what the file's sidecar says, else {options.DEFAULT_ENCODING}"
    )
    options.add_output(parser)
    parser.add_argument(
        "--format",
        choices=sinks.READ_FORMATS,
        help="default: what the sidecar says, else the suffix of the input, as for encode",
    )
    options.add_force(parser, ", and believe -e and --format against the file's sidecar")


def run(args: argparse.Namespace) -> int:
    regular = False
    if args.file != "-":
        regular = check_file(args.file) is not None
    sidecar = _sidecar(args) if regular else None
    is_known = sidecar is not None or args.encoding is not None
    encoding = _encoding(args, sidecar)
    chosen = _format(args, sidecar, encoding, regular)
    if chosen == "llmc" and not is_known:
        raise Refused(
            f"{input_name(args.file)}: the header of llm.c does not say which encoding the ids are "
            "of: give it with -e"
        )
    read = [args.file, *overwriting.vocabulary_files(args.encoding or "-")]
    if regular:
        read.append(sidecar_path(args.file))
    overwriting.refuse_inputs([args.output], read)
    decoder = encoding.stream_decoder()
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(args.output, "rb")) if _has_earlier(args) else None
        earlier = _Earlier(args.output, file)
        output = stack.enter_context(sinks.open_output(args.output))
        rows = sinks.read_ids(_blocks(args), chosen)
        while True:
            try:
                ids = next(rows, None)
            except ValueError as error:
                raise Refused(f"{input_name(args.file)}: {error}") from None
            if ids is None:
                earlier.finish()
                return 0
            if not is_known and ids.dtype == np.uint16 and encoding.max_token_value > 0xFFFF:
                raise Refused(
                    f"{input_name(args.file)}: its header says uint16, and the ids of "
                    f"{encoding.name}, the default, need uint32: give the encoding with -e"
                )
            try:
                data = decoder.decode_bytes(ids)
            except (KeyError, OverflowError) as error:
                at = getattr(error, "position", None)
                if at is None:  # no uint32
                    at = int(np.flatnonzero((ids < 0) | (ids > 0xFFFFFFFF))[0])
                raise Refused(
                    f"{input_name(args.file)}: id {ids[at]} is not in {encoding.name} "
                    f"(after {decoder.tokens_in + at} others){_why(args, sidecar, chosen)}"
                ) from None
            earlier.compare(data)
            output.write(data)


def _has_earlier(args: argparse.Namespace) -> bool:
    """Whether there is a file with something in it that must not be lost."""
    path = args.output
    return (
        not args.force
        and sinks.check_output(path)
        and os.path.exists(path)
        and os.path.getsize(path) > 0
    )


class _Earlier:
    """The file that stands where the output shall be: only the same bytes may replace it.

    It is compared as the output is made, so that the same command can be run again, and the first
    difference ends it.
    """

    def __init__(self, path: str, file: BinaryIO | None):
        """file: the open file, None if there is none or it may go."""
        self._path = path
        self._file = file

    def compare(self, data: bytes) -> None:
        """Raises Refused if the next bytes are others."""
        if self._file is not None and self._file.read(len(data)) != data:
            self._refuse()

    def finish(self) -> None:
        """Raises Refused if there are more."""
        if self._file is not None and self._file.read(1):
            self._refuse()

    def _refuse(self) -> NoReturn:
        raise Refused(
            f"{shown(self._path)} exists, and is not an earlier output of this command; --force "
            "replaces it"
        )


def _sidecar(args: argparse.Namespace) -> sinks.Sidecar | None:
    """Sidecar | None: that of the input. Raises SidecarError if it is damaged or does not fit."""
    try:
        found = sinks.read_sidecar(args.file)
        if found is not None:
            sinks.check_sidecar(found, args.file)
    except SidecarError:
        if args.force:
            return None
        raise
    return found


def _encoding(args: argparse.Namespace, sidecar: sinks.Sidecar | None) -> Encoding:
    if sidecar is None or (args.encoding is not None and args.force):
        args.encoding = args.encoding or options.DEFAULT_ENCODING
        return options.load_encoding(args)
    says = f"{shown(sidecar_path(args.file))} says that the ids are of {sidecar.encoding}"
    if args.encoding is not None:
        encoding = options.load_encoding(args)
        if encoding.digest != sidecar.digest:
            raise Refused(
                f"{says} ({sidecar.digest[:16]}), and -e {args.encoding} is {encoding.name} "
                f"({encoding.digest[:16]}); leave -e away, or insist with --force"
            )
        return encoding
    if sidecar.encoding in registry.list_encoding_names():
        args.encoding = sidecar.encoding
        encoding = options.load_encoding(args)
        if encoding.digest == sidecar.digest:
            return encoding
    raise Refused(
        f"{says} ({sidecar.digest[:16]}), which is not an encoding of this name here: give its "
        "vocabulary file with -e"
    )


def _format(
    args: argparse.Namespace, sidecar: sinks.Sidecar | None, encoding: Encoding, regular: bool
) -> str:
    if sidecar is not None and not (args.format is not None and args.force):
        found = sidecar.format
        if found in _RAW:
            found = "u16" if sidecar.dtype == "uint16" else "u32"
        name = shown(sidecar_path(args.file))
        if args.format not in (None, found):
            raise Refused(
                f"{name} says that the format is {sidecar.format}, and --format is {args.format}; "
                "leave it away, or insist with --force"
            )
        if found not in sinks.READ_FORMATS:
            raise Refused(
                f"{name} says that the format is {sidecar.format}: decode reads "
                f"{', '.join(sinks.READ_FORMATS)}, and the first file of megatron and datatrove"
            )
        return found
    if args.format is None and regular:
        with open(args.file, "rb") as file:
            if sinks.has_llmc_header(file.read(_HEAD)):
                return "llmc"
    try:
        if args.format == "llmc":
            return "llmc"
        return sinks.choose_format(args.format, args.file, encoding.max_token_value)
    except ValueError as error:
        raise Refused(str(error)) from None


def _why(args: argparse.Namespace, sidecar: sinks.Sidecar | None, chosen: str) -> str:
    """str: what led to this encoding, for an id that it does not have."""
    if sidecar is not None:
        return f", though {shown(sidecar_path(args.file))} says {sidecar.encoding}"
    if chosen == "llmc":
        return "; the header of llm.c does not say which encoding it is: give the right one with -e"
    return ""


def _blocks(args: argparse.Namespace) -> Iterator[bytes]:
    name, heard = input_name(args.file), args.signals.heard
    if args.file == "-":
        yield from read_descriptor(STDIN, name, options.CHUNK_SIZE, heard)
        return
    with contextlib.ExitStack() as stack:
        with heard():  # a FIFO opens when its writer comes
            file = stack.enter_context(open(args.file, "rb", buffering=0))
        yield from read_descriptor(file.fileno(), name, options.CHUNK_SIZE, heard)
