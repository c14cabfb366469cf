"""Bytes of files and of standard input, and their ids."""

from __future__ import annotations

import argparse
import errno
import os
import select
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..chunker import StreamEncoder
from ..errors import PendingLimitExceeded, StreamtokError
from .report import Refused, input_name
from .signals import Signals

if TYPE_CHECKING:
    from ..sinks import IdArray

STDIN = 0


def input_size(name: str) -> int | None:
    """Bytes in a regular file, None for what has no size. Raises OSError if it cannot be read."""
    if name == "-":
        return None
    if os.path.isdir(name):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not os.path.isfile(name):
        os.stat(name)
        return None
    with open(name, "rb") as file:
        return os.fstat(file.fileno()).st_size


def blocks(name: str, size: int, signals: Signals) -> Iterator[memoryview]:
    """What has arrived, as it arrives; each block is overwritten by the next one.

    Ctrl-C is heard while waiting for input only, so that a block is encoded and written whole.
    """
    buffer = memoryview(bytearray(size))
    with open(STDIN if name == "-" else name, "rb", buffering=0, closefd=name != "-") as file:
        while True:
            with signals.heard():
                try:
                    n = file.readinto(buffer)
                    if n is None:  # somebody made the pipe non-blocking
                        select.select([file], [], [])
                        continue
                except OSError as error:
                    raise OSError(error.errno, error.strerror, input_name(name)) from error
            if not n:
                return
            yield buffer[:n]


def ids_of(
    name: str, stream: StreamEncoder, args: argparse.Namespace
) -> Iterator[tuple[int, IdArray]]:
    """(bytes read, ids) for each chunk of one input and for its end."""
    try:
        for block in blocks(name, args.chunk_size, args.signals):
            yield len(block), stream.encode_to_numpy(block)
        yield 0, stream.encode_to_numpy(b"", final=True)
    except UnicodeDecodeError as error:
        raise Refused(
            f"{input_name(name)}: byte {error.start} is not UTF-8 ({error.reason}); "
            "--errors replace or --errors surrogateescape goes on"
        ) from None
    except PendingLimitExceeded as error:
        raise Refused(f"{input_name(name)}: {error} (--max-pending)") from None
    except StreamtokError:
        raise
    except ValueError as error:  # a disallowed special token; the first line says which and where
        what = str(error).partition("\n")[0].rstrip(".")
        raise Refused(
            f"{input_name(name)}: {what}; --allowed-special gives it its id, "
            "--disallowed-special none takes it as plain text"
        ) from None
