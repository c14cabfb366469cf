"""What messages say of files: errors of the system that name them, names, reasons of bad JSON."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from json import JSONDecodeError


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Give `name` to an OSError that names no file."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, name) from error


def is_folder(name: str) -> IsADirectoryError:
    """The error for an output that is a folder."""
    return IsADirectoryError(errno.EISDIR, "is a folder; give a file name", name)


def json_reason(error: JSONDecodeError) -> str:
    """Why a text is not JSON, for a message that goes on with the position.

    Some of Python's reasons end for one, as "Unterminated string starting at" does.
    """
    if "BOM" in error.msg:
        return "unexpected byte order mark"
    return error.msg.removesuffix(" at").rstrip(": ")


def shown(name: str) -> str:
    """The file name as one printable line, whatever bytes it has."""
    return name if name.isprintable() else ascii(name)


def printable(text: str) -> str:
    """The text with escapes for what a terminal would obey; lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text
    )
