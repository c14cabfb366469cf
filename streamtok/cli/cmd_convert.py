"""`streamtok convert IN OUT`: converts a vocabulary file to another format.

The name of the output or `--to` selects the format. A message says what a file in this format
lacks: a .tiktoken file, for example, has no pattern.
"""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import VocabularyError
from ..formats import WRITTEN
from ..formats.opening import open_encoding
from . import options, vocabulary_output
from .messages import say, shown
from .options import add_option


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "convert",
        run,
        "convert a vocabulary to another format",
        ["@ tokenizer.json my.tiktoken", "@ gpt2 tokenizer.json"],
    )
    parser.add_argument(
        "input", metavar="IN", help="a vocabulary file, FILE@PATTERN, or the name of an encoding"
    )
    parser.add_argument("output", metavar="OUT", help="a file; a folder for gpt2")
    vocabulary_output.add_format(parser)
    options.add_force(parser)
    add_option(parser, "-q --quiet", "print nothing on success")


def run(args: argparse.Namespace) -> int:
    from ..formats.conversion import save

    format = vocabulary_output.choose_format(args.output, args.to)
    outputs = vocabulary_output.files_of(args.output, format)
    read = vocabulary_output.vocabulary_files(args.input)
    vocabulary_output.check_vocabulary(outputs, read, args.force)
    try:
        source = open_encoding(args.input)
    except ValueError as error:
        raise VocabularyError(" ".join(str(error).split())) from None
    save(source, args.output, format)
    if not args.quiet:
        lost = WRITTEN[format].lost
        note = f"; not in the file: {lost}" if lost else ""
        say(
            f"{shown(args.output)}: {format}, {len(source.token_byte_values())} tokens, "
            f"{len(source.special_tokens_set)} special{note}"
        )
    return 0
