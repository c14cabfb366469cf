"""Errors of the system that name the file they are about."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Give `name` to an OSError that names no file."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, name) from error


def shown(name: str) -> str:
    """The file name as one printable line, whatever bytes it has."""
    return name if name.isprintable() else ascii(name)
