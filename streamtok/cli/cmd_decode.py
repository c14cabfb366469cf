"""`streamtok decode`: decodes ids to bytes.

The sidecar of the ids names their encoding and format; options that contradict it are an error.
Several files, or the parts of a job, are decoded as one stream, because a part may end inside a
character.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import registry
from ..chunker import StreamDecoder
from ..encoding import Encoding
from ..jobs.parts.part import read_part
from ..jobs.parts.plan import PLAN_FILE, Plan, find_plan
from ..jobs.sinks.by_name import FILE_FORMATS, READ_FORMATS, choose_format
from ..jobs.sinks.finished import first_file, raw_format, read_table
from ..jobs.sinks.format_table import read_ids
from ..jobs.sinks.outputs import open_output
from ..jobs.sinks.sidecar import Sidecar, check_sidecar, read_sidecar, sidecar_path
from ..jobs.sources.blocks import check_file, open_blocks
from ..jobs.stores import places
from ..jobs.stores.urls import is_url
from . import encoding_options, options, overwriting
from .encoding_options import DEFAULT_ENCODING
from .messages import Misused, Refused, input_name, is_terminal, shown
from .options import add_option
from .progress import counted, read_bar
from .vocabulary_output import vocabulary_files


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "decode",
        run,
        "decode ids to bytes",
        [
            "@ book.npy > book.txt",
            "@ -e gpt2 --format u16 < ids",
            "echo 15339 1917 | @",
            "@ corpus > corpus.txt",
        ],
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="files of ids, decoded one after another; Megatron's prefix; the folder of a job in "
        "parts; URLs; - or none: standard input",
    )
    encoding_options.add_encoding(
        parser, None, f"the one in the file's sidecar, else {DEFAULT_ENCODING}"
    )
    options.add_output(parser)
    add_option(
        parser,
        "--format",
        "default: the one in the sidecar, else by the suffix of the input, as for encode",
        choices=READ_FORMATS,
    )
    options.add_force(parser)


class _Source(NamedTuple):
    """An input: a finished output with its sidecar; or "-", a pipe or a file without a sidecar.

    job: the plan file of the job that the output is a part of; "" if none.
    """

    file: str
    about: Sidecar | None
    job: str = ""

    @property
    def says(self) -> str:
        """The file that names the encoding, for messages."""
        return shown(self.job or sidecar_path(self.file))


def run(args: argparse.Namespace) -> int:
    given = args.files or ["-"]
    if "-" in given and len(given) > 1:
        raise Misused("give files, or - alone")
    plans = [
        find_plan(one)
        if one != "-" and (is_url(one) or os.path.isdir(one) or os.path.basename(one) == PLAN_FILE)
        else None
        for one in given
    ]
    given = [
        one if one == "-" or plan is not None else first_file(one)
        for one, plan in zip(given, plans, strict=True)
    ]
    read = [*given, *vocabulary_files(args.encoding or "-")]
    read += [sidecar_path(one) for one in given if one != "-"]
    read += [places.join(one, PLAN_FILE) for one in plans if one is not None]
    overwriting.refuse_inputs([args.output], dict.fromkeys(read))
    overwriting.refuse_existing([args.output], args.force)
    with contextlib.ExitStack() as stack:
        is_quiet = args.output == "-" and is_terminal(sys.stdout)
        add = stack.enter_context(read_bar(is_quiet, "decoding", args.files))
        load = functools.cache(encoding_options.load_encoding)  # once for all parts of a job
        decoder: StreamDecoder | None = None
        for source in _sources(given, plans):
            encoding = _encoding(args.encoding, source, load)
            chosen = _format(args, source, encoding)
            if decoder is None:
                first, decoder = encoding, encoding.stream_decoder()
                output = open_output(args.output)
                stack.enter_context(output)
            elif encoding.digest != first.digest:
                raise Refused(
                    f"{input_name(source.file)} holds ids of {encoding.name}, but "
                    f"{input_name(given[0])} ids of {first.name}: decode them one by one"
                )
            for data in _decoded(args, source, encoding, chosen, decoder, add):
                output.write(data)
    return 0


def _sources(given: list[str], plans: list[str | None]) -> Iterator[_Source]:
    """Yield the inputs. In place of a job's folder, yield the outputs of its parts."""
    for file, folder in zip(given, plans, strict=True):
        if folder is not None:
            plan = Plan.load(folder)
            for number in range(len(plan)):
                about = read_part(plan, number)
                if about is None:
                    raise Refused(
                        f"{folder}: part {number} is not done, or its files were changed: the same "
                        "encode command makes it"
                    )
                yield _Source(plan.path(number), about, places.join(folder, PLAN_FILE))
            continue
        is_regular = file != "-" and check_file(file) is not None
        found = read_sidecar(file) if is_regular else None
        if found is not None:
            check_sidecar(found, file)
        yield _Source(file, found)


def _decoded(
    args: argparse.Namespace,
    source: _Source,
    encoding: Encoding,
    chosen: str,
    decoder: StreamDecoder,
    add: Callable[[int], None],
) -> Iterator[bytes]:
    name, before = input_name(source.file), decoder.tokens_in
    is_known = source.about is not None or args.encoding is not None
    if chosen == "parquet":
        rows: Iterator[Any] = read_table(source.file, args.signals.heard)
    else:
        blocks = open_blocks(source.file, name, size=options.CHUNK_SIZE, waiting=args.signals.heard)
        rows = read_ids(counted(blocks, add), chosen)
    while True:
        try:
            ids = next(rows, None)
        except ValueError as error:
            raise Refused(f"{name}: {error}") from None
        if ids is None:
            return
        if not is_known and ids.dtype == np.uint16 and encoding.max_token_value > 0xFFFF:
            raise Refused(
                f"{name}: the ids are uint16, but those of {encoding.name}, the default, need "
                "uint32: give the encoding with -e"
            )
        try:
            yield decoder.decode_bytes(ids)
        except (KeyError, OverflowError) as error:
            at = getattr(error, "position", None)
            if at is None:  # the id does not fit in uint32
                at = int(np.flatnonzero((ids < 0) | (ids > 0xFFFFFFFF))[0])
            why = f", though {source.says} says {source.about.encoding}" if source.about else ""
            raise Refused(
                f"{name}: id {ids[at]} is not in {encoding.name} "
                f"(after {decoder.tokens_in - before + at} others){why}"
            ) from None


def _encoding(given: str | None, source: _Source, load: Callable[[str], Encoding]) -> Encoding:
    """The encoding of the ids. given: the value of -e."""
    about = source.about
    if about is None:
        return load(given or DEFAULT_ENCODING)
    says = f"{source.says} says that the ids are of {about.source} ({about.digest[:16]})"
    if given is not None:
        encoding = load(given)
        if encoding.digest != about.digest:
            raise Refused(
                f"{says}, but -e {given} is {encoding.name} ({encoding.digest[:16]}); omit -e"
            )
        return encoding
    # Load only published encodings and local vocabularies: sidecars must not cause downloads.
    paths = about.source, about.source.rpartition("@")[0]
    is_here = any(os.path.isfile(one) or os.path.isdir(one) for one in paths)
    found = None
    if is_here or about.source in registry.list_encoding_names():
        with contextlib.suppress(OSError, Refused):
            found = load(about.source)
    if found is not None and found.digest == about.digest:
        return found
    what = "which is not a known encoding here: give its vocabulary file with -e"
    if about.vocabulary is not None:
        what = (
            f"which is {'another one now' if found else 'not here'}: give that vocabulary with -e"
        )
    raise Refused(f"{says}, {what}")


def _format(args: argparse.Namespace, source: _Source, encoding: Encoding) -> str:
    about = source.about
    if about is not None:
        found = raw_format(about)
        if args.format not in (None, found):
            raise Refused(
                f"{source.says} says that the format is {about.format}, but --format is "
                f"{args.format}; omit it"
            )
        if found not in (*READ_FORMATS, "parquet"):
            raise Refused(
                f"{source.says} says that the format is {about.format}, which cannot be decoded; "
                f"supported are {', '.join(FILE_FORMATS)}"
            )
        return found
    try:
        return choose_format(
            args.format, source.file, encoding.max_token_value, (*READ_FORMATS, "parquet")
        )
    except ValueError as error:
        raise Refused(str(error)) from None
