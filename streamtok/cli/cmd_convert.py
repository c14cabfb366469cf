"""`streamtok convert IN OUT`: a vocabulary from one format into another.

The format of the output is told by its name, or by `--to`. What the target leaves out (a .tiktoken
file has no pattern) is said.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from ..errors import VocabularyError
from . import options, overwriting

# Those of `formats.conversion.FORMATS`, which takes long to import.
NAMES = ["tiktoken", "gpt2", "huggingface", "tekken", "minbpe", "nanochat", "sentencepiece"]


def run(args: argparse.Namespace) -> int:
    """The command: exit code 0. Raises what `streamtok.cli` turns into one line."""
    from ..formats.conversion import FORMATS, convert, format_of, open_encoding

    try:
        format = args.to or format_of(args.output)
    except ValueError as error:
        raise VocabularyError(f"{error}: use --to {'|'.join(FORMATS)}") from None
    folder, names = args.output, FORMATS[format].files
    outputs = [os.path.join(folder, name) for name in names] if len(names) > 1 else [folder]
    read = overwriting.vocabulary_files(args.input)
    overwriting.check_vocabulary(outputs, read, format, args.force)
    try:
        source = open_encoding(args.input)
    except ValueError as error:
        raise VocabularyError(" ".join(str(error).split())) from None
    convert(source, args.output, format)
    lost = FORMATS[format].lost
    if not args.quiet:
        note = f"; not in the file: {lost}" if lost else ""
        print(
            f"streamtok: {args.output}: {format}, {len(source.token_byte_values())} tokens, "
            f"{len(source._special_tokens)} special; a sample encodes alike{note}",
            file=sys.stderr,
        )
    return 0


def add_parser(commands: Any) -> None:
    """Add `convert` to the subparsers of the command line."""
    text = "turn a vocabulary into another format"
    parser = commands.add_parser(
        "convert", help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
    )
    parser.add_argument(
        "input", metavar="IN", help="a vocabulary file, FILE@PATTERN, or the name of an encoding"
    )
    parser.add_argument("output", metavar="OUT", help="a file; a folder for gpt2")
    parser.add_argument("--to", choices=NAMES, help="default: what the name of OUT says")
    options.add_force(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing when it worked")
    parser.set_defaults(command=run)
