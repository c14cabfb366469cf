"""`streamtok truncate`: keeps as much of a text as fits in N tokens.

Text dropped from the end is not read. To drop the beginning, the whole text is read.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..jobs.argument_types import parse_count_or_0
from . import encoding_options, one_text, options
from .messages import say
from .options import add_option

_EXAMPLES = [
    "@ -n 4096 < prompt.txt",
    "tail -n 5000 app.log | @ -n 8000 --side left",
]


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers, "truncate", run, "write the part of a text that has at most N tokens", _EXAMPLES
    )
    one_text.add_file(parser)
    add_option(
        parser,
        "--side",
        "the side to drop: the end (right) or the beginning (left; default: right)",
        default="right",
        choices=("right", "left"),
    )
    add_option(parser, "--json", "write JSON: the text, its token count and whether it was cut")
    add_option(parser, "-q --quiet", "do not say on standard error what was cut")
    one_text.add_budget_options(parser, parse_count_or_0)


def run(args: argparse.Namespace) -> int:
    encoding = encoding_options.load_encoding(args.encoding)
    settings = one_text.budget_settings(args)
    with one_text.open_text(args, args.file) as blocks:
        text: Any = b"".join(blocks) if args.side == "left" else blocks
        kept = encoding.truncate(text, args.max_tokens, args.side, **settings)
    if args.json:
        text = one_text.written(kept.text, args.errors)
        row = {"text": text, "n_tokens": kept.n_tokens, "was_truncated": kept.was_truncated}
        print(json.dumps(row))
        return 0
    one_text.write_text(kept.text)
    if kept.was_truncated and not args.quiet:
        what = "end" if args.side == "right" else "beginning"
        say(f"{kept.n_tokens:,} tokens were kept, the {what} of the text was dropped")
    return 0
