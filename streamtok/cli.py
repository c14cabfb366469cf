"""The command line: `streamtok encode | decode | count | list | bench | serve | train | convert`.

Standard input to standard output unless files are named. What is expected to go wrong is one line
on standard error and exit code 1 (2: wrong usage); 130 after Ctrl-C, 141 when the reader of the
output has gone, as for any Unix filter. Here: parsing and exit codes; each command is a module of
`commands`.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from .commands import bench, convert, count, decode, encode, list_encodings, serve, train
from .commands.report import Refused, complain, describe, forget_stdout, say, shown
from .commands.signals import Signals
from .errors import StreamtokError

# In the order of --help.
_COMMANDS = (encode, decode, count, list_encodings, bench, serve, train, convert)


def main(argv: Sequence[str] | None = None) -> int:
    """int: the exit code of the command in `argv` (the process's arguments if None).

    Raises SystemExit for wrong usage and --help, as argparse does. Nothing else is raised for
    what a user can cause.
    """
    args = _parser().parse_args(argv)
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
        except (Refused, StreamtokError) as error:
            complain(str(error))
        except OSError as error:
            complain(describe(error))
        except MemoryError:
            complain("not enough memory")
        return 1


class _Parser(argparse.ArgumentParser):
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
    return parser


def _version() -> str:
    from . import __version__

    return __version__
