"""Messages on standard error, and the exceptions whose texts are such messages."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import TextIO

from ..files import naming, printable, shown

__all__ = ["shown"]  # exported again for this package


class Refused(Exception):
    """An expected failure. Its text is the only line that the user sees."""


class Misused(Refused):
    """Wrong usage: options or arguments that cannot be combined. The exit code is 2."""


def is_terminal(file: TextIO | None) -> bool:
    """Whether `file` is a terminal. None is a closed descriptor."""
    return file is not None and file.isatty()


def input_name(name: str) -> str:
    """The name of an input, for messages; "-" is standard input."""
    return "standard input" if name == "-" else shown(name)


def describe(error: OSError) -> str:
    """A message about an error: its file, if any, the problem and, if possible, what to do."""
    what = error.strerror or str(error)
    if error.filename is None:
        return what
    path = os.fsdecode(error.filename)
    if what == os.strerror(errno.EISDIR):
        what = f"is a folder; give a file in it, or all of them: {shown(os.path.join(path, '*'))}"
    elif isinstance(error, FileNotFoundError):
        folder = os.path.dirname(path)
        if folder and "://" not in path and not os.path.isdir(folder):
            what += f"; there is no folder {shown(folder)}"
    return f"{shown(path)}: {what}"


def say(text: str, prefix: str = "streamtok: ") -> None:
    """Write a line to standard error. Raises nothing."""
    with contextlib.suppress(OSError, AttributeError):  # it may be closed
        sys.stderr.write(f"{prefix}{printable(text)}\n")
        sys.stderr.flush()


def complain(text: str) -> None:
    """Write an error message as one line. Raises nothing."""
    say(text.replace("\n", " "), prefix="streamtok: error: ")


def print_now(text: object) -> None:
    """Print a line to standard output and flush. An OSError names standard output as its file."""
    with naming("standard output"):
        print(text, flush=True)


def write_bytes(data: bytes, at_once: bool = False) -> None:
    """Write to standard output, after any printed text. Raises Refused if it is closed.

    at_once: flush afterwards, because a user may be watching.
    """
    if sys.stdout is None:
        raise Refused("standard output is closed")
    with naming("standard output"):
        sys.stdout.flush()
        # With PYTHONUNBUFFERED the buffer is the raw file, which may write only part of the data.
        rest = memoryview(data)
        while rest:
            written = sys.stdout.buffer.write(rest)
            if written is None:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            rest = rest[written:]
        if at_once:
            sys.stdout.buffer.flush()


def flush_stdout() -> None:
    """Flush standard output. An OSError names standard output as its file."""
    if sys.stdout is None:
        return
    try:
        with naming("standard output"):
            sys.stdout.flush()
    except OSError:
        forget_stdout()
        raise


def forget_stdout() -> None:
    """Redirect standard output to the null device, so that the flush at exit cannot fail."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
