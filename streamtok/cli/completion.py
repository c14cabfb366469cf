"""`streamtok --print-completion SHELL`: a script that completes commands, options and file names.

The script is made by shtab (github.com/iterative/shtab, Apache-2.0) from the same parsers that read
the command line.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import MissingLibraryError

SHELLS = ("bash", "zsh", "tcsh")
_FILES = ("FILE", "IN", "OUT", "PATH", "NAME")  # metavars whose values may be files


class PrintCompletion(argparse.Action):
    """Print the script for a shell, and exit. Raises MissingLibraryError without shtab."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        try:
            import shtab
        except ImportError as error:
            raise MissingLibraryError("completion scripts", "shtab", "completion", error) from None
        for action in _actions(parser):
            if action.metavar in _FILES and action.choices is None:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        print(shtab.complete(parser, str(values)))
        parser.exit()


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add --print-completion."""
    parser.add_argument(
        "--print-completion",
        action=PrintCompletion,
        choices=SHELLS,
        metavar="SHELL",
        help=f"print a script that completes commands and options in {', '.join(SHELLS)}",
    )


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Those of the parser and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
