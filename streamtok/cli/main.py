"""The command line: `streamtok encode | decode | count | list | bench | serve | train | convert`.

Standard input to standard output unless files are named. What is expected to go wrong is one line
on standard error and exit code 1; 2 if it is the command line that is wrong, also where it is two
options that do not go together; 130 after Ctrl-C, 141 when the reader of the output has gone, as
for any Unix filter. Here: parsing and exit codes; each command is a module of `commands`.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from ..errors import StreamtokError
from . import cmd_bench as bench
from . import cmd_convert as convert
from . import cmd_count as count
from . import cmd_decode as decode
from . import cmd_encode as encode
from . import cmd_list as list_encodings
from . import cmd_serve as serve
from . import cmd_train as train
from .report import Misused, Refused, complain, describe, forget_stdout, say, shown
from .stop_signals import Signals

# In the order of --help.
_COMMANDS = (encode, decode, count, list_encodings, bench, serve, train, convert)


def main(argv: Sequence[str] | None = None) -> int:
    """int: the exit code of the command in `argv` (the process's arguments if None).

    Raises SystemExit for wrong usage and --help, as argparse does. Nothing else is raised for
    what a user can cause.
    """
    args, rest = _parser().parse_known_args(argv)
    if rest:  # said by the parser of the command, whose help is the one to look at
        args.parser.error(f"unrecognized arguments: {' '.join(rest)}{_meant(rest, args.parser)}")
    # If pyarrow is needed: the allocator that gives memory back, not the one that keeps it.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with Signals() as signals:
        args.signals = signals
        try:
            code: int = args.command(args)
            if sys.stdout is not None:
                sys.stdout.flush()
            return code
        except BrokenPipeError:
            forget_stdout()
            return 128 + getattr(signal, "SIGPIPE", 13)
        except Signals.Stopped as stop:
            output = getattr(args, "output", "-")
            if hasattr(args, "when_stopped"):
                say(args.when_stopped)
            elif output != "-":
                complain(f"interrupted, {shown(output)} was not written")
            return 128 + stop.number
        except KeyboardInterrupt:
            return 130
        except Misused as error:
            complain(f"{error} (try: {args.parser.prog} --help)")
            return 2
        except (Refused, StreamtokError) as error:
            complain(str(error))
        except OSError as error:
            complain(describe(error))
        except MemoryError:
            complain("not enough memory")
        return 1


class _Parser(argparse.ArgumentParser):
    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        # Up to Python 3.12 argparse drops a "--" that is the value of an option, as in -o=--
        if action.option_strings and arg_strings == ["--"]:
            value = self._get_value(action, arg_strings[0])
            self._check_value(action, value)
            return value
        return super()._get_values(action, arg_strings)

    def error(self, message: str) -> NoReturn:
        complain(f"{message} (try: {self.prog} --help)")
        raise SystemExit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="streamtok",
        description="Exact BPE tokens of files, pipes and sockets, as they come.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"streamtok {_version()}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(subparsers)
    for one in subparsers.choices.values():
        one.set_defaults(parser=one)
    return parser


def _meant(rest: Sequence[str], parser: argparse.ArgumentParser) -> str:
    """str: the option that was meant, if one is named much like the first of `rest`."""
    import difflib

    known = re.findall(r"--[a-z][a-z-]*", parser.format_usage())
    name = rest[0].partition("=")[0]
    found = difflib.get_close_matches(name, known, 1, 0.7) if name.startswith("--") else []
    return f"; is {found[0]} meant?" if found else ""


def _version() -> str:
    from .. import __version__

    return __version__
