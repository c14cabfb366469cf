"""The writer thread: jobs run in order, in bounded memory, and fail as if they ran at once."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streamtok import threads as thread_module
from streamtok.jobs.sinks.by_name import Family
from streamtok.jobs.sinks.flat import About
from streamtok.jobs.sinks.shards import Files
from streamtok.threads import WriterThread

from ..cli.test_cli import POSIX
from ..live_threads import Threads, refused, stillborn

ABOUT = About("none", "", 100_000)
BLOCK = np.arange(5_000, dtype=np.uint32)


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> Threads:
    return Threads(monkeypatch)


def test_jobs_are_done_in_order(threads):
    writer, done = WriterThread(limit=50), []
    for i in range(500):
        writer.submit(lambda i=i: done.append(i), 10)
    writer.wait()
    assert done == list(range(500))
    assert threads.left(1) == 1
    writer.close()
    assert threads.left() == 0
    writer.submit(lambda: done.append(500), 10)  # another thread begins
    writer.wait()
    writer.close()
    assert done[-1] == 500
    assert threads.left() == 0


def test_no_more_waits_than_the_limit():
    writer, gate, begun = WriterThread(limit=100), threading.Event(), []

    def feed():
        for i in range(20):
            writer.submit(lambda: bool(gate.wait()), 10)
            begun.append(i)

    feeder = threading.Thread(target=feed)
    feeder.start()
    end = time.monotonic() + 20
    while len(begun) < 11 and time.monotonic() < end:
        time.sleep(0.001)
    time.sleep(0.05)
    assert len(begun) == 11  # one over the limit, which the last may have crossed
    gate.set()
    feeder.join(20)
    writer.wait()
    assert len(begun) == 20
    writer.close()


@pytest.mark.parametrize("later", ["do", "wait"])
def test_an_error_is_raised_by_what_comes_next(later, threads):
    writer, done = WriterThread(), []

    def fail():
        raise OSError(errno.ENOSPC, "full", "name")

    writer.submit(lambda: done.append(1), 1)
    writer.submit(fail, 1)
    for _ in range(2):
        with pytest.raises(OSError, match="full") as caught:  # noqa: PT012
            if later == "wait":
                writer.wait()
            end = time.monotonic() + 20
            while time.monotonic() < end:
                writer.submit(lambda: done.append(2) if writer._error else None, 1)
        assert caught.value.filename == "name"
    assert done == [1]
    writer.close()
    assert threads.left() == 0


def test_who_waits_for_room_hears_of_an_error():
    writer, gate = WriterThread(limit=0), threading.Event()

    def fail():
        gate.wait()
        raise OSError("full")

    writer.submit(fail, 1)
    threading.Timer(0.05, gate.set).start()
    with pytest.raises(OSError, match="full"):
        writer.submit(lambda: None, 1)
    writer.close()


def test_close_drops_what_has_not_begun(threads):
    writer, gate, begun, done = WriterThread(), threading.Event(), threading.Event(), []

    def first():
        begun.set()
        gate.wait()
        done.append(1)

    writer.submit(first, 1)
    writer.submit(lambda: done.append(2), 1)
    begun.wait()
    threading.Timer(0.05, gate.set).start()
    writer.close()
    assert done == [1]
    assert threads.left() == 0


@POSIX
def test_a_signal_while_waiting(monkeypatch, threads):
    class Stop(BaseException):
        pass

    def stop(*_):
        gate.set()
        raise Stop

    writer, gate = WriterThread(limit=0), threading.Event()
    previous = signal.signal(signal.SIGALRM, stop)
    try:
        writer.submit(lambda: bool(gate.wait()), 1)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Stop):
            writer.wait()
    finally:
        signal.signal(signal.SIGALRM, previous)
    writer.close()
    assert threads.left() == 0


def test_small_jobs_do_not_wake_a_sleeping_thread(monkeypatch):
    """They are done with the next large one, or when somebody waits."""
    writer, done = WriterThread(), []
    writer.submit(lambda: done.append(0), 1)
    writer.wait()  # now the thread sleeps, or is about to
    woken = []
    real = writer._changed.notify_all
    monkeypatch.setattr(
        writer._changed,
        "notify_all",
        lambda: (woken.append(threading.current_thread() is threading.main_thread()), real()),
    )
    for i in range(1, 5):
        writer.submit(lambda i=i: done.append(i), 1000)
    assert True not in woken
    writer.submit(lambda: done.append(5), 1 << 20)
    assert woken.count(True) == 1
    end = time.monotonic() + 20
    while len(done) < 6 and time.monotonic() < end:
        time.sleep(0.001)
    assert done == [0, 1, 2, 3, 4, 5]
    writer.submit(lambda: done.append(6), 1000)
    writer.wait()
    assert done[-1] == 6
    writer.close()


@pytest.mark.parametrize("start", [refused, stillborn])
def test_without_a_thread_jobs_are_done_at_once(monkeypatch, start):
    monkeypatch.setattr(thread_module, "start_new_thread", start)
    monkeypatch.setattr(thread_module, "_PATIENCE", 0.01)
    writer, done = WriterThread(), []
    for i in range(3):
        writer.submit(lambda i=i: done.append(i), 10)
        assert done == list(range(i + 1))
    writer.wait()
    writer.close()


# Files


def failing(after: int, error: BaseException) -> Callable[..., int]:
    """os.write that takes `after` bytes, the last of them in a part of a block."""
    real, left = os.write, [after]

    def write(fd: int, data: Any) -> int:
        if threading.current_thread() is threading.main_thread():
            return real(fd, data)
        if not left[0]:
            raise error
        written = real(fd, memoryview(data)[: left[0]])
        left[0] -= written
        return written

    return write


@pytest.mark.parametrize("chosen", ["u32", "npy", "megatron", "datatrove", "jsonl", "parquet"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EIO])
def test_a_failing_write_names_the_file_and_leaves_nothing(
    tmp_path, monkeypatch, chosen, number, threads
):
    path = tmp_path / "a.x"
    monkeypatch.setattr(os, "write", failing(50_000, OSError(number, os.strerror(number))))
    family = Family(chosen, ABOUT)
    files = Files(str(path), family)
    files.begin()

    def feed():
        for _ in range(50):
            files.append(family.form(BLOCK, np.array([len(BLOCK)])))
        files.finish()

    with pytest.raises(OSError, match=r".") as caught:
        feed()
    assert caught.value.errno == number
    assert str(caught.value.filename).startswith(str(tmp_path / "a"))
    with pytest.raises(OSError, match=r"."):
        files.sync()
    files.discard()
    assert list(tmp_path.iterdir()) == []
    assert threads.left() == 0


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="no other system is asked")
def test_the_disk_is_asked_for_every_byte_once_while_the_file_grows(tmp_path, monkeypatch, threads):
    asked = {}
    synced = []
    real = os.fsync

    def advise(fd, at, size, kind):
        assert threading.current_thread() is not threading.main_thread()
        assert kind == os.POSIX_FADV_DONTNEED
        asked.setdefault(os.readlink(f"/proc/self/fd/{fd}"), []).append((at, size))
        raise OSError(errno.EINVAL, "no such advice here")  # which is no matter

    def fsync(fd):
        synced.append(fd)
        real(fd)

    monkeypatch.setattr(os, "posix_fadvise", advise)
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr("streamtok.files._TOGETHER", 3 * BLOCK.nbytes)
    family = Family("megatron", ABOUT)
    files = Files(str(tmp_path / "a.bin"), family)
    files.begin()
    ids = files._files[0]._part
    for _ in range(10):
        files.append(family.form(BLOCK, np.array([len(BLOCK)])))
    files.finish()
    size = 3 * BLOCK.nbytes
    assert asked == {ids: [(0, size), (size, size), (2 * size, size)]}
    assert len(synced) == 3  # the ids, the index and the sidecar
    files.publish()
    assert len(synced) == 4  # their folder, once
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.bin", "a.bin.json", "a.idx"]
    assert threads.left() == 0
