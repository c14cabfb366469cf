"""A disk that becomes full at the n-th system call that needs room on it.

`RLIMIT_FSIZE` in a process of its own is the other way to a disk that is full: `at_most`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

_CALLS = ("open", "write", "fsync", "close", "mkdir", "replace")


class Calls(list[str]):
    """The calls that were made, each with the name of its file. is_full: one has failed."""

    is_full = False


@contextlib.contextmanager
def full_from(number: int, still: bool) -> Iterator[Calls]:
    """Let call `number` fail with ENOSPC, and with `still` all later ones, too.

    A failing write has written half of its bytes. Files can always be removed and opened for
    reading. The locks need no room. Errors have the names of files where the system's have them.
    """
    calls = Calls()
    lock = threading.Lock()
    names: dict[int, str] = {}
    originals = {name: getattr(os, name) for name in _CALLS}

    def fails(name: str, about: str) -> bool:
        with lock:
            calls.append(f"{name} {os.path.basename(about)}")
            is_mine = len(calls) > number if still else len(calls) == number + 1
            calls.is_full |= is_mine
        return is_mine

    def no_space(*paths: Any) -> OSError:
        error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *paths[:1])
        if len(paths) > 1:
            error.filename2 = paths[1]
        return error

    def opened(path: Any, flags: int, *rest: Any, **settings: Any) -> int:
        is_new = flags & os.O_CREAT and not str(path).endswith(".lock")
        if is_new and fails("open", str(path)):
            raise no_space(path)
        fd: int = originals["open"](path, flags, *rest, **settings)
        if is_new:
            names[fd] = str(path)
        return fd

    def written(fd: int, data: Any) -> int:
        if fd not in names or not fails("write", names[fd]):
            return int(originals["write"](fd, data))
        originals["write"](fd, data[: len(data) // 2])
        raise no_space()

    def synced(fd: int) -> None:
        if fd in names and fails("fsync", names[fd]):
            raise no_space()
        originals["fsync"](fd)

    def closed(fd: int) -> None:
        originals["close"](fd)
        if fd in names and fails("close", names.pop(fd)):  # as on a network's file system
            raise no_space()

    def made(path: Any, *rest: Any, **settings: Any) -> None:
        if not os.path.exists(path) and fails("mkdir", str(path)):
            raise no_space(path)
        originals["mkdir"](path, *rest, **settings)

    def replaced(source: Any, target: Any) -> None:
        if fails("replace", str(target)):
            raise no_space(source, target)
        originals["replace"](source, target)

    ours = dict(zip(_CALLS, (opened, written, synced, closed, made, replaced), strict=True))
    try:
        for name, call in ours.items():
            setattr(os, name, call)
        yield calls
    finally:
        for name, original in originals.items():
            setattr(os, name, original)


def at_most(size: int) -> str:
    """Python that lets files, those of further processes, too, grow to `size` bytes only."""
    return f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))"


def contents(folder: Path) -> dict[str, bytes]:
    """The files under a folder, hidden ones, too, by their paths in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def check_each_call(
    job: Callable[[], None],
    reset: Callable[[], None],
    seen: Callable[[], dict[str, bytes]],
    still: bool,
    named: Callable[[OSError], bool],
    stride: int = 1,
) -> int:
    """Run the job with a disk that is full from each of its calls on; return how many there are.

    stride: from every such call only, beginning with another one each time.

    reset: takes everything away that the job has made. seen: what it has made. named: whether an
    error names a file of the user's. What fails must leave only complete files, and the same job
    must then make what an undisturbed one makes.
    """
    reset()
    job()
    whole = seen()
    for number in range(random.randrange(stride), 10_000, stride):
        reset()
        raised = None
        with full_from(number, still) as calls:
            try:
                job()
            except OSError as error:
                raised = error
        if not calls.is_full:
            assert raised is None, raised
            return number
        if raised is not None:
            assert raised.errno == errno.ENOSPC, (calls[number], raised)
            assert named(raised), (calls[number], raised)
        left = seen()
        assert left == {name: whole.get(name) for name in left}, calls[number]
        job()
        assert seen() == whole, calls[number]
    pytest.fail("the job does not end")
