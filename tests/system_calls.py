"""System calls that change files: what happens at the n-th of them, and a disk that becomes full.

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

_BY_PATH = ("open", "mkdir", "replace", "remove")
_BY_FD = ("write", "fsync", "close", "ftruncate", "lseek")
Act = Callable[[str, tuple[Any, ...]], None]  # of the call's name, and the paths that it is given


class Calls(list[str]):
    """The calls that were made, each with the name of its file.

    is_reached: the call at which something happens was made. opened: files, and locks, that were
    made and are open.
    """

    def __init__(self) -> None:
        self.is_reached = False
        self.opened: dict[int, str] = {}


@contextlib.contextmanager
def at_call(number: int, act: Act, *, again: bool = False) -> Iterator[Calls]:
    """Do something at call `number`, counted from 0, and with `again` at all later ones, too.

    At a write half of the bytes are written before, and at a close the file is closed: if `act`
    returns, that was all. Other calls are made after it. Calls of locks and of files that are only
    read, and those within `act`, do not count.
    """
    calls = Calls()
    lock = threading.Lock()
    is_acting = False
    originals = {name: getattr(os, name) for name in (*_BY_PATH, *_BY_FD)}

    def made(name: str, *args: Any, **settings: Any) -> Any:
        result = originals[name](*args, **settings)
        if name == "open" and args[1] & os.O_CREAT:
            is_lock = str(args[0]).endswith(".lock")
            calls.opened[result] = "" if is_lock else os.path.basename(args[0])
        return result

    def about(name: str, args: tuple[Any, ...]) -> str:
        """The name of the call's file; "" if it does not count."""
        if name in _BY_FD:
            return calls.opened.get(args[0], "")
        path = str(args[1] if name == "replace" else args[0])
        if name == "open" and (not args[1] & os.O_CREAT or path.endswith(".lock")):
            return ""
        return "" if name == "mkdir" and os.path.exists(path) else os.path.basename(path)

    def counted(name: str) -> Callable[..., Any]:
        def call(*args: Any, **settings: Any) -> Any:
            nonlocal is_acting
            file = about(name, args)
            if name == "close":
                calls.opened.pop(args[0], None)
            with lock:
                is_mine = False
                if file and not is_acting:
                    is_mine = len(calls) >= number if again else len(calls) == number
                    calls.append(f"{name} {file}")
                    calls.is_reached |= is_mine
                    is_acting = is_mine
            if not is_mine:
                return made(name, *args, **settings)
            result = None
            try:
                if name == "close":
                    made(name, *args)
                elif name == "write":
                    result = made(name, args[0], args[1][: len(args[1]) // 2])
                act(name, () if name in _BY_FD else args[: 1 + (name == "replace")])
            finally:
                is_acting = False
            return result if name in ("close", "write") else made(name, *args, **settings)

        return call

    try:
        for name in originals:
            setattr(os, name, counted(name))
        yield calls
    finally:
        for name, original in originals.items():
            setattr(os, name, original)


def no_space(name: str, paths: tuple[Any, ...]) -> None:
    """The disk is full: files can only be removed, and opened for reading."""
    if name in ("remove", "lseek"):
        return
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *paths[:1])
    if len(paths) > 1:
        error.filename2 = paths[1]
    raise error


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
    """Run the job with a disk that is full at each of its calls; return how many there are.

    still: from the call on. stride: at every such call only, beginning with another one each time.

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
        with at_call(number, no_space, again=still) as calls:
            try:
                job()
            except OSError as error:
                raised = error
        if not calls.is_reached:
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
