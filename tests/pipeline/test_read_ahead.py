"""A thread that reads ahead: the same blocks, errors at their place, and nothing left behind."""

from __future__ import annotations

import contextlib
import gzip
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamtok.cli import cmd_encode
from streamtok.parallel import threads as thread_module
from streamtok.pipeline.sources import FileInput, Reading, inputs
from streamtok.pipeline.sources.read_ahead import read_ahead

from ..cli.test_cli import POSIX, run
from ..crash import Scenario, compare, die_at_step, make_text, results
from ..live_threads import Threads, refused, stillborn

BLOCKS = [bytes([i]) * (i + 1) for i in range(100)]
MAKE = Reading(errors="replace").splitter_maker()


@pytest.fixture(autouse=True)
def readers(monkeypatch: pytest.MonkeyPatch) -> Threads:
    return Threads(monkeypatch)


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> set[bool]:
    """Who has read from a descriptor: True stands for another thread than the caller's."""
    found: set[bool] = set()
    read, here = os.read, threading.get_ident()

    def note(fd: int, size: int) -> bytes:
        found.add(threading.get_ident() != here)
        return read(fd, size)

    monkeypatch.setattr(os, "read", note)
    return found


@pytest.mark.parametrize("count", [1, 2, 7, 200])
def test_the_same_blocks_come_in_order(count: int, readers: Threads) -> None:
    assert list(read_ahead(iter(BLOCKS), count)) == BLOCKS
    assert list(read_ahead(iter([]), count)) == []
    assert readers.left() == 0


def test_blocks_are_read_ahead_but_no_more_than_were_allowed(readers: Threads) -> None:
    taken = threading.Semaphore(0)
    n = 0

    def blocks() -> Iterator[bytes]:
        nonlocal n
        for block in BLOCKS:
            n += 1
            taken.release()
            yield block

    found = read_ahead(blocks(), 3)
    assert next(found) == BLOCKS[0]
    for _ in range(4):  # the one that was given out, and three that nobody has asked for
        assert taken.acquire(timeout=60)
    assert not taken.acquire(timeout=0.05)
    assert n == 4
    found.close()  # type: ignore[attr-defined]
    assert n == 4
    assert readers.left() == 0


def test_an_error_comes_after_the_blocks_before_it(readers: Threads) -> None:
    def blocks() -> Iterator[bytes]:
        yield from BLOCKS[:5]
        raise OSError(5, "Input/output error", "a")

    found = read_ahead(blocks(), 3)
    assert [next(found) for _ in range(5)] == BLOCKS[:5]
    with pytest.raises(OSError, match="Input/output error"):
        next(found)
    assert readers.left() == 0


@pytest.mark.parametrize("start", [refused, stillborn])
def test_without_a_thread(monkeypatch: pytest.MonkeyPatch, start: Any) -> None:
    monkeypatch.setattr(thread_module, "start_new_thread", start)
    monkeypatch.setattr(thread_module, "_PATIENCE", 0.01)
    assert list(read_ahead(iter(BLOCKS), 2)) == BLOCKS


def test_signals_are_heard_before_each_block(readers: Threads) -> None:
    heard: list[str] = []

    @contextlib.contextmanager
    def waiting() -> Iterator[None]:
        heard.append(threading.current_thread().name)
        if len(heard) == 3:
            raise KeyboardInterrupt
        yield

    found = read_ahead(iter(BLOCKS), 4, waiting)
    assert [next(found), next(found)] == BLOCKS[:2]
    with pytest.raises(KeyboardInterrupt):
        next(found)
    assert heard == [threading.current_thread().name] * 3
    assert readers.left() == 0


@pytest.mark.parametrize("size", [1000, 1 << 16, 1 << 21])
@pytest.mark.parametrize("begin", [0, 1, 250_000])
def test_a_file_is_read_from_any_position(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reading: set[bool],
    size: int,
    begin: int,
    readers: Threads,
) -> None:
    monkeypatch.setattr(inputs, "_WORTH_A_THREAD", 1000)
    path = tmp_path / "a.txt"
    data = os.urandom(300_000)
    path.write_bytes(data)
    one = FileInput(str(path), "a", MAKE, block_size=size, reads_ahead=True)
    position = {"at": begin, "records": 0, "crc": 0} if begin else None
    groups = one.groups(position, bool(begin))
    text = b""
    for parts in groups:
        text += b"".join(part for part, _ in parts)  # type: ignore[misc]
        assert one.read == begin + len(text)  # not what the thread has read
        assert one.position()["at"] == begin + len(text)
    assert text == data[begin:]
    assert reading == {True}
    assert readers.left() == 0


def test_a_file_that_is_left_is_read_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readers: Threads
) -> None:
    monkeypatch.setattr(inputs, "_WORTH_A_THREAD", 1000)
    monkeypatch.setattr(inputs, "_AHEAD", 3000)
    path = tmp_path / "a.txt"
    path.write_bytes(b"a" * 300_000)
    one = FileInput(str(path), "a", MAKE, block_size=1000, reads_ahead=True)
    groups = one.groups(None, False)
    next(groups)
    assert readers.left(1) == 1
    descriptor = one._fd
    groups.close()  # type: ignore[attr-defined]
    assert readers.left() == 0
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(descriptor)  # type: ignore[arg-type]


def test_small_and_compressed_files_need_no_thread(tmp_path: Path, readers: Threads) -> None:
    small, packed = tmp_path / "a.txt", tmp_path / "a.gz"
    small.write_bytes(b"a" * 300_000)
    packed.write_bytes(gzip.compress(os.urandom(inputs._WORTH_A_THREAD)))
    for path in (small, packed):
        groups = FileInput(str(path), "a", MAKE, reads_ahead=True).groups(None, False)
        next(groups)
        assert readers.left() == 0
        groups.close()  # type: ignore[attr-defined]


def test_the_command_reads_ahead_where_a_core_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reading: set[bool]
) -> None:
    text = tmp_path / "a.txt"
    text.write_bytes(b"some words, and more of them\n" * 200_000)
    for cores, threads, is_ahead in [(1, 1, False), (2, 1, True), (2, 2, False), (3, 2, True)]:
        monkeypatch.setattr(cmd_encode, "usable_cores", lambda cores=cores: cores)
        reading.clear()
        out = tmp_path / f"{cores}{threads}.u32"
        run("encode", "-q", str(text), "-o", str(out), "--threads", str(threads))
        assert (True in reading) == is_ahead
        assert out.read_bytes() == (tmp_path / "11.u32").read_bytes()


@POSIX
@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_dies_goes_on_from_what_was_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Not from what the thread had read."""
    monkeypatch.setattr(inputs, "_WORTH_A_THREAD", 1000)
    monkeypatch.setattr(cmd_encode, "usable_cores", lambda: 2)
    rng = random.Random(seed)
    files = {"0.txt": make_text(rng, 20_000).encode(), "1.txt": make_text(rng, 20_000).encode()}
    how = ["--resume", "--chunk-size", "1k", "--threads", "1"]
    scenario = Scenario("read ahead", [], "out.u32", files, resume=how)
    good, folder = tmp_path / "good", tmp_path / "crashed"
    for one in (good, folder):
        one.mkdir()
        scenario.prepare(one)
    assert die_at_step(scenario, good, None, resume=False) == 0
    deaths = 0
    while code := die_at_step(scenario, folder, rng.randrange(200)):
        assert code == 137
        deaths += 1
    assert deaths > 1
    compare(results(folder, scenario), results(good, scenario), scenario)
