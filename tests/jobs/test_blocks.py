"""Blocks of bytes from descriptors: files are asked for before they are needed, nothing is lost."""

from __future__ import annotations

import errno
import itertools
import os
import threading
from pathlib import Path

import pytest

from streamtok.jobs.sources.blocks import _AHEAD, read_descriptor

SIZE = 3 * _AHEAD + 12_345
NEEDS_HINTS = pytest.mark.skipif(
    not hasattr(os, "posix_fadvise"), reason="this system takes no hints about files"
)


def opened(path: Path) -> int:
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))


@NEEDS_HINTS
@pytest.mark.parametrize("begin", [0, 1, 100_000, SIZE, SIZE + 5])
@pytest.mark.parametrize("size", [1 << 16, 1 << 19, (1 << 23) + 7, 1 << 25])
def test_a_file_is_asked_for_once_and_before_it_is_read(tmp_path, monkeypatch, begin, size):
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.truncate(SIZE)
    asked = []
    read = begin

    def ask(fd, at, length, advice):
        assert advice == os.POSIX_FADV_WILLNEED
        # read_descriptor has read one block more than it has given out.
        assert at >= read
        asked.append((at, at + length))

    monkeypatch.setattr(os, "posix_fadvise", ask)
    fd = opened(path)
    try:
        os.lseek(fd, begin, os.SEEK_SET)
        for block in read_descriptor(fd, "a", size):
            read += len(block)
            assert asked[-1][1] >= read + _AHEAD // 2
    finally:
        os.close(fd)
    assert read == max(begin, SIZE)
    assert len(asked) <= (SIZE - begin) // min(_AHEAD, size) + 2
    for (_, end), (at, _) in itertools.pairwise(asked):
        assert at >= end  # nothing twice


@NEEDS_HINTS
@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.ESPIPE])
def test_a_system_that_takes_no_hint_is_read_all_the_same(tmp_path, monkeypatch, number):
    path = tmp_path / "a"
    data = os.urandom(300_000)
    path.write_bytes(data)

    def refuse(*args):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fadvise", refuse)
    fd = opened(path)
    try:
        assert b"".join(read_descriptor(fd, "a")) == data
    finally:
        os.close(fd)


def test_a_system_without_the_call(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"ab" * 100_000)
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    fd = opened(path)
    try:
        assert b"".join(read_descriptor(fd, "a", 1000)) == b"ab" * 100_000
    finally:
        os.close(fd)


@NEEDS_HINTS
def test_a_pipe_is_not_asked(monkeypatch):
    def ask(*args):
        raise AssertionError("a pipe")

    monkeypatch.setattr(os, "posix_fadvise", ask)
    out, into = os.pipe()
    data = os.urandom(200_000)

    def write():
        with os.fdopen(into, "wb") as file:
            file.write(data)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert b"".join(read_descriptor(out, "a")) == data
    finally:
        os.close(out)
        writer.join(20)
