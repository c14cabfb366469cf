"""`streamtok decode`: decodes ids to bytes.

The sidecar of the ids names their encoding and format. Options that contradict it are an error,
unless --force is given.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from .. import registry
from ..encoding import Encoding
from ..errors import SidecarError
from ..pipeline import sinks
from ..pipeline.sinks.sidecar import sidecar_path
from ..pipeline.sources.blocks import STDIN, check_file, read_descriptor
from ..stores import places
from ..stores.object_reader import read_blocks
from ..stores.objects import describe
from ..stores.urls import is_url
from . import encoding_options, options, overwriting
from .encoding_options import DEFAULT_ENCODING
from .messages import Refused, input_name, shown
from .vocabulary_output import vocabulary_files

# The first file of these formats holds raw ids. The sidecar tells their type.
_RAW = ("megatron", "datatrove")
_HEAD = 1024  # bytes of llm.c's header


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "decode",
        run,
        "decode ids to bytes",
        ["@ book.npy > book.txt", "@ -e gpt2 --format u16 < ids", "echo 15339 1917 | @"],
    )
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="- : standard input")
    encoding_options.add_encoding(
        parser, None, f"the one in the file's sidecar, else {DEFAULT_ENCODING}"
    )
    options.add_output(parser)
    parser.add_argument(
        "--format",
        choices=sinks.READ_FORMATS,
        help="default: the one in the sidecar, else by the suffix of the input, as for encode",
    )
    options.add_force(parser, ", and let -e and --format override the sidecar")


def run(args: argparse.Namespace) -> int:
    is_regular = False
    if args.file != "-":
        is_regular = check_file(args.file) is not None
    sidecar = _sidecar(args) if is_regular else None
    is_known = sidecar is not None or args.encoding is not None
    encoding = _encoding(args, sidecar)
    chosen = _format(args, sidecar, encoding, is_regular)
    if chosen == "llmc" and not is_known:
        raise Refused(
            f"{input_name(args.file)}: the header of llm.c does not name the encoding: give it "
            "with -e"
        )
    read = [args.file, *vocabulary_files(args.encoding or "-")]
    if is_regular:
        read.append(sidecar_path(args.file))
    overwriting.refuse_inputs([args.output], read)
    decoder = encoding.stream_decoder()
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(places.open_binary(args.output)) if _has_earlier(args) else None
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
                    f"{input_name(args.file)}: the ids are uint16, but those of {encoding.name}, "
                    "the default, need uint32: give the encoding with -e"
                )
            try:
                data = decoder.decode_bytes(ids)
            except (KeyError, OverflowError) as error:
                at = getattr(error, "position", None)
                if at is None:  # the id does not fit in uint32
                    at = int(np.flatnonzero((ids < 0) | (ids > 0xFFFFFFFF))[0])
                raise Refused(
                    f"{input_name(args.file)}: id {ids[at]} is not in {encoding.name} "
                    f"(after {decoder.tokens_in + at} others){_why(args, sidecar, chosen)}"
                ) from None
            earlier.compare(data)
            output.write(data)


def _has_earlier(args: argparse.Namespace) -> bool:
    """Whether the output is a file or an object with data that must not be lost."""
    if args.force or not sinks.check_output(args.output):
        return False
    try:
        return places.size_of(args.output) > 0
    except FileNotFoundError:
        return False


class _Earlier:
    """An existing file at the output path, which only the same bytes may replace.

    It is compared while the output is written, so that the same command can be run again. The first
    difference raises Refused.
    """

    def __init__(self, path: str, file: BinaryIO | None):
        """file: the open file; None if there is none or it may be replaced."""
        self._path = path
        self._file = file

    def compare(self, data: bytes) -> None:
        """Raise Refused if the next bytes of the file differ."""
        if self._file is not None and self._file.read(len(data)) != data:
            raise overwriting.already_exists(self._path)

    def finish(self) -> None:
        """Raise Refused if the file has more bytes."""
        if self._file is not None and self._file.read(1):
            raise overwriting.already_exists(self._path)


def _sidecar(args: argparse.Namespace) -> sinks.Sidecar | None:
    """The sidecar of the input, or None. Raises SidecarError if it is damaged or does not fit."""
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
        args.encoding = args.encoding or DEFAULT_ENCODING
        return encoding_options.load_encoding(args)
    says = f"{shown(sidecar_path(args.file))} says that the ids are of {sidecar.encoding}"
    if args.encoding is not None:
        encoding = encoding_options.load_encoding(args)
        if encoding.digest != sidecar.digest:
            raise Refused(
                f"{says} ({sidecar.digest[:16]}), but -e {args.encoding} is {encoding.name} "
                f"({encoding.digest[:16]}); omit -e, or override with --force"
            )
        return encoding
    if sidecar.encoding in registry.list_encoding_names():
        args.encoding = sidecar.encoding
        encoding = encoding_options.load_encoding(args)
        if encoding.digest == sidecar.digest:
            return encoding
    raise Refused(
        f"{says} ({sidecar.digest[:16]}), which is not a known encoding here: give its vocabulary "
        "file with -e"
    )


def _format(
    args: argparse.Namespace, sidecar: sinks.Sidecar | None, encoding: Encoding, is_regular: bool
) -> str:
    if sidecar is not None and not (args.format is not None and args.force):
        found = sidecar.format
        if found in _RAW:
            found = "u16" if sidecar.dtype == "uint16" else "u32"
        name = shown(sidecar_path(args.file))
        if args.format not in (None, found):
            raise Refused(
                f"{name} says that the format is {sidecar.format}, but --format is {args.format}; "
                "omit it, or override with --force"
            )
        if found not in sinks.READ_FORMATS:
            raise Refused(
                f"{name} says that the format is {sidecar.format}, which cannot be decoded; "
                f"supported are {', '.join(sinks.READ_FORMATS)}, and the first file of megatron "
                "and datatrove"
            )
        return found
    if (
        args.format is None
        and is_regular
        and sinks.has_llmc_header(places.read_head(args.file, _HEAD))
    ):
        return "llmc"
    try:
        if args.format == "llmc":
            return "llmc"
        return sinks.choose_format(args.format, args.file, encoding.max_token_value)
    except ValueError as error:
        raise Refused(str(error)) from None


def _why(args: argparse.Namespace, sidecar: sinks.Sidecar | None, chosen: str) -> str:
    """The end of a message about an id that is not in the encoding: how it was chosen."""
    if sidecar is not None:
        return f", though {shown(sidecar_path(args.file))} says {sidecar.encoding}"
    if chosen == "llmc":
        return "; the header of llm.c does not name the encoding: give the right one with -e"
    return ""


def _blocks(args: argparse.Namespace) -> Iterator[bytes]:
    name, heard = input_name(args.file), args.signals.heard
    if args.file == "-":
        yield from read_descriptor(STDIN, name, options.CHUNK_SIZE, heard)
        return
    if is_url(args.file):
        yield from read_blocks(args.file, describe(args.file), 0, None, heard)
        return
    with contextlib.ExitStack() as stack:
        with heard():  # opening a FIFO waits for its writer
            file = stack.enter_context(open(args.file, "rb", buffering=0))
        yield from read_descriptor(file.fileno(), name, options.CHUNK_SIZE, heard)
