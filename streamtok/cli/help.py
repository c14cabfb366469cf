"""Short help, and suggestions for mistyped words."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable
from typing import Any

# The options that `streamtok COMMAND -h` shows, for commands with more than five.
MOST_USED = {
    "encode": ("--output", "--encoding", "--jsonl", "--append", "--resume"),
    "count": ("--encoding", "--lines", "--jsonl", "--follow", "--json"),
    "split": ("--max-tokens", "--encoding", "--overlap", "--boundary", "--format"),
    "truncate": ("--max-tokens", "--encoding", "--side", "--json", "--special"),
    "show": ("--encoding", "--table", "--json", "--special", "--color"),
    "vocab": ("--encoding", "--search", "--id", "--unreachable", "--json"),
    "train": ("--output", "--vocab-size", "--special-token", "--jsonl", "--pattern"),
    "serve": ("--tcp", "--unix", "--http", "--encoding", "--format"),
}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: a suggestion of a similar known word.

    Empty if no known word begins with the unknown one or resembles it.
    """
    # From Python 3.14 on, argparse can do this for commands, but not for options.
    words, lower = list(known), word.lower()
    begun = [one for one in words if word and one.startswith(lower)]
    similar = begun or difflib.get_close_matches(lower, words, 1)
    return f"; did you mean {similar[0]}?" if similar else ""


class ShortHelp(argparse.Action):
    """Prints the usage, the options used most and one example, and exits."""

    def __init__(self, option_strings: list[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        command = parser.prog.split()[-1]
        known = parser._option_string_actions
        chosen = [known[name] for name in MOST_USED.get(command, ())]
        title = "options used most"
        if not chosen:
            title = "options"
            of_help = known["-h"], known["--help"]
            chosen = [one for one in parser._get_optional_actions() if one not in of_help]
        formatter = parser._get_formatter()
        formatter.add_usage(None, [*chosen, *parser._get_positional_actions()], [])
        formatter.add_text(parser.description)
        formatter.start_section(title)
        formatter.add_arguments(chosen)
        formatter.end_section()
        example = str(parser.epilog).splitlines()[1]
        formatter.add_text(f"example: {example.strip()}")
        formatter.add_text(f"{parser.prog} --help has all options and examples.")
        print(formatter.format_help(), end="")
        parser.exit()
