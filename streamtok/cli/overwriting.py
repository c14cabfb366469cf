"""Decides what a command may overwrite: never an input, and nothing without --force.

Every command that writes files checks here before it opens one for writing. Two names are the same
file if they have the same real path, or if the system reports the same device and inode.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable

from ..jobs.sinks.outputs import check_output, descriptor_of
from ..jobs.stores import places
from ..jobs.stores.urls import is_url
from .messages import Refused, input_name, shown

_STDIN, _STDOUT = 0, 1


def refuse_inputs(outputs: Iterable[str], inputs: Iterable[str]) -> None:
    """Raise Refused if an output is one of the inputs, or the same file as another output.

    outputs: every file that will be written; "-" is standard output. inputs: "-" is standard
    input. Only URLs and regular files are compared, because writing destroys nothing else.
    """
    read: dict[object, str] = {}
    for path in inputs:
        for key in _identities(path, _STDIN):
            read[key] = input_name(path)
    written: set[str] = set()
    for path in outputs:
        for key in _identities(path, _STDOUT):
            if key in read:
                name = "standard output" if path == "-" else shown(path)
                raise Refused(
                    f"{name} is also an input ({read[key]}), which writing would "
                    "destroy: give another output"
                )
        if descriptor_of(path) is None:
            real = path if is_url(path) else os.path.realpath(path)
            if real in written:
                raise Refused(f"{shown(path)} is the same file as another output of this command")
            written.add(real)


def refuse_existing(outputs: Iterable[str], is_forced: bool) -> None:
    """Raise Refused if an output already holds data, unless forced. Empty files may be replaced."""
    for path in outputs:
        if is_forced or not check_output(path):
            continue
        with contextlib.suppress(FileNotFoundError):
            if places.size_of(path) > 0:
                raise Refused(f"{shown(path)} exists; --force replaces it")


def _identities(path: str, standard: int) -> list[object]:
    """Keys of a URL or a regular file: names with a common key are the same file. Else empty."""
    if is_url(path):
        return [path]
    fd = standard if path == "-" else descriptor_of(path)
    try:
        status = os.stat(path) if fd is None else os.fstat(fd)
    except OSError:  # the file does not exist, or the descriptor is closed
        return []
    if not stat.S_ISREG(status.st_mode):
        return []
    found: list[object] = [os.path.realpath(path)] if fd is None else []
    if status.st_ino:  # some file systems have no inodes
        found.append((status.st_dev, status.st_ino))
    return found
