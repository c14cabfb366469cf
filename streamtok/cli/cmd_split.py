"""`streamtok split`: cuts texts into chunks of at most N tokens, holding one chunk in memory."""

from __future__ import annotations

import argparse
import json
import re
from typing import Any

from ..jobs.argument_types import parse_count, parse_count_or_0
from . import encoding_options, one_text, options
from .messages import Misused, input_name
from .open_inputs import given_names
from .options import add_option

_EXAMPLES = [
    "@ --max-tokens 512 --overlap 64 book.txt --format jsonl",
    r"@ -n 8000 --boundary paragraph --format nul notes.md | xargs -0 -n 1 ./ask",
]


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "split",
        run,
        "cut texts into chunks of at most N tokens; positions are bytes",
        _EXAMPLES,
    )
    options.add_files(parser)
    add_option(
        parser,
        "--overlap N",
        "how many tokens of the previous chunk to repeat, at most (default: 0)",
        parse_count_or_0,
        0,
    )
    where = parser.add_mutually_exclusive_group()
    add_option(
        where,
        "--boundary UNIT",
        "where chunks end, or at a finer unit if none fits: character (the default), pretoken, "
        "line or paragraph",
        default="character",
        choices=("character", "pretoken", "line", "paragraph"),
    )
    add_option(where, "--regex EXPRESSION", "chunks end after matches of this expression")
    add_option(
        parser,
        "--format",
        "a line of JSON for each chunk, or its text and a NUL byte (default: jsonl)",
        default="jsonl",
        choices=("jsonl", "nul"),
    )
    one_text.add_budget_options(parser, parse_count)


def run(args: argparse.Namespace) -> int:
    if args.overlap >= args.max_tokens:
        raise Misused(f"--overlap must be less than --max-tokens, which is {args.max_tokens}")
    encoding = encoding_options.load_encoding(args.encoding)
    settings = one_text.budget_settings(args)
    boundary: Any = args.boundary
    if args.regex is not None:
        try:
            boundary = re.compile(args.regex.encode())
        except re.error as error:
            raise Misused(f"--regex does not compile: {error}") from None
    names = given_names(args.files)
    for name in names:
        with one_text.open_text(args, name) as blocks:
            for chunk in encoding.split(
                blocks, args.max_tokens, args.overlap, boundary, **settings
            ):
                if args.format == "nul":
                    one_text.write_text(chunk.text, b"\0")
                    continue
                row: dict[str, Any] = {"file": input_name(name)} if len(names) > 1 else {}
                text = one_text.written(chunk.text, args.errors)
                row |= {"text": text, "start": chunk.start, "stop": chunk.stop}
                print(json.dumps(row | {"n_tokens": chunk.n_tokens}))
    return 0
