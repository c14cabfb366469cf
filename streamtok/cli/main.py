"""The command line: `streamtok encode | decode | count | split | truncate | …`.

Commands read standard input and write standard output unless files are named. An expected failure
prints one line on standard error. Exit codes: 1 for a failure; 2 for wrong usage, including options
that cannot be combined; 130 after Ctrl-C; 141 when the reader of the output has closed it, as for
any Unix filter. `vocab` uses those of grep: 1 if no token is found, 2 for any error. This module
parses arguments and sets exit codes; each command has its own module.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from ..errors import PlanError, StreamtokError
from .help import did_you_mean
from .messages import (
    Misused,
    Refused,
    complain,
    describe,
    flush_stdout,
    forget_stdout,
    say,
    shown,
)
from .stop_signals import Signals

# The groups of commands in --help. The module of `encode` is cmd_encode, and so on.
_GROUPS = {
    "text to ids and back": ("encode", "decode", "verify"),
    "counting and cutting": ("count", "split", "truncate"),
    "looking at tokens": ("show", "bench", "view"),
    "vocabularies": ("list", "vocab", "train", "convert"),
    "serving": ("serve",),
}
_COMMANDS = tuple(itertools.chain.from_iterable(_GROUPS.values()))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` (default: the process's arguments) and return its exit code.

    Raises SystemExit for wrong usage and --help, as argparse does. No other mistake of a user
    raises an exception.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["help"]:
        given = [*given[1:2], "--help"]
    # Commands import NumPy, whose OpenBLAS starts a thread for each core and keeps each core busy
    # for 0.05 s, although nothing here multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        args, rest = _parser(given).parse_known_args(given)
    except KeyboardInterrupt:  # while modules are imported
        return 130
    if rest:  # reported by the command's parser, so that the message points to its help
        options = (one.partition("=")[0] for one in rest if one.startswith("-"))
        hint = did_you_mean(next(options, ""), args.parser._option_string_actions)
        args.parser.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
    # If pyarrow is imported, let it use the allocator that returns memory to the system.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with Signals() as signals:
        args.signals = signals
        try:
            code: int = args.command(args)
            flush_stdout()
            return code
        except BrokenPipeError:
            forget_stdout()
            return 128 + getattr(signal, "SIGPIPE", 13)
        except Signals.Stopped as stop:
            output = getattr(args, "output", "-")
            if hasattr(args, "when_stopped"):
                say(args.when_stopped)
            elif output != "-":
                complain(f"interrupted: {shown(output)} was not written")
            return 128 + stop.number
        except KeyboardInterrupt:
            return 130
        except Misused as error:
            complain(f"{error} (try: {args.parser.prog} --help)")
            return 2
        except PlanError as error:
            complain("; ".join(str(error).splitlines()) + _then(args))  # a line for each part
        except (Refused, StreamtokError) as error:
            complain(str(error))
        except OSError as error:
            complain(describe(error) + _then(args))
        except MemoryError:
            complain("not enough memory" + _then(args))
        with contextlib.suppress(OSError):  # a failure at exit would print a second error
            flush_stdout()
        return int(args.failure_code)


def _then(args: argparse.Namespace) -> str:
    """The end of an error message: how to continue, if work done before the failure is kept."""
    if not getattr(args, "continues", False):
        return ""
    return f"; then the same command continues {shown(args.output)}"


class _StoreOnce(argparse.Action):
    """Stores a value and refuses a second one, which would silently replace the first."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        given: set[str] = vars(namespace).setdefault("given_options", set())
        if option_string is not None:
            if self.dest in given:
                raise argparse.ArgumentError(self, "is given twice")
            given.add(self.dest)
        setattr(namespace, self.dest, values)


class _Parser(argparse.ArgumentParser):
    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        for action in (None, "store"):
            self.register("action", action, _StoreOnce)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        # Before Python 3.13, argparse drops a "--" that is the value of an option, as in -o=--
        if action.option_strings and arg_strings == ["--"]:
            value = self._get_value(action, arg_strings[0])
            self._check_value(action, value)
            return value
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError:
            if hint := did_you_mean(str(value), map(str, action.choices or ())):
                raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}") from None
            raise

    def error(self, message: str) -> NoReturn:
        complain(f"{message} (try: {self.prog} --help)")
        raise SystemExit(2)


class _AllCommands(_Parser):
    """The parser of `streamtok` itself, whose help lists the commands in groups."""

    def format_help(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, [], [])
        formatter.add_text(self.description)
        (commands,) = (x for x in self._actions if isinstance(x, argparse._SubParsersAction))
        rows = {one.dest: one for one in commands._choices_actions}
        for title, names in _GROUPS.items():
            formatter.start_section(title)
            formatter.add_arguments([rows[name] for name in names])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([one for one in self._actions if one.option_strings])
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


def _parser(given: Sequence[str] = ()) -> argparse.ArgumentParser:
    """A parser for the command that `given` begins with, or else for all commands."""
    from .. import __version__

    parser = _AllCommands(
        prog="streamtok",
        usage="%(prog)s COMMAND [OPTIONS] ...",
        description="Exact BPE token ids of files, pipes and sockets, as the text arrives.",
        epilog="streamtok COMMAND -h shows the options used most and an example; --help, or\n"
        "streamtok help COMMAND, describes everything.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"streamtok {__version__}")
    subparsers = parser.add_subparsers(
        title="commands",
        metavar="COMMAND",
        required=True,
        prog=parser.prog,
        parser_class=_Parser,
    )
    # Importing all commands takes longer than many of them run.
    for name in given[:1] if given and given[0] in _COMMANDS else _COMMANDS:
        importlib.import_module(f".cmd_{name}", __package__).add_parser(subparsers)
    for one in subparsers.choices.values():
        one.set_defaults(parser=one, failure_code=one.get_default("failure_code") or 1)
    return parser
