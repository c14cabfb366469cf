"""Rotations between two looks at a followed file: no file is skipped, and none is read twice."""

from __future__ import annotations

import contextlib
import gzip
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import streamtok
from streamtok.pipeline.sources import Follower


class Over(BaseException):
    """The follower waits, and nobody will write any more."""


class Looks:
    """A follower of `path`; whenever it has read all, the next of `steps` happens."""

    def __init__(self, path: Path, steps: list[Any], patience: int = 4):
        self.steps = steps
        self.follower = Follower(str(path), interval=0.0)
        self.follower._sleep = self._look  # type: ignore[method-assign]
        self._patience = patience
        self.data = b""

    def _look(self) -> None:
        if self.steps:
            self.steps.pop(0)()
            return
        self._patience -= 1
        if not self._patience:
            raise Over

    def read(self, position: dict[str, Any] | None = None) -> bytes:
        with contextlib.suppress(Over):
            for block in self.follower.blocks(position):
                self.data += block
        return self.data


class Log:
    """app.log in a folder, and what rotates it; each file is later than those before it."""

    def __init__(self, folder: Path):
        self.path = folder / "app.log"
        self._time = 1_700_000_000_000_000_000

    def write(self, text: str, mode: str = "a") -> None:
        with self.path.open(mode) as file:
            file.write(text)
        self.stamp(self.path)

    def stamp(self, path: Path) -> None:
        self._time += 1_000_000
        os.utime(path, ns=(self._time, self._time))

    def rotate(self, keep: int = 9, suffix: str = ".{}") -> None:
        def name(number: int) -> Path:
            return self.path.with_name(self.path.name + suffix.format(number))

        name(keep).unlink(missing_ok=True)
        for number in range(keep - 1, 0, -1):
            if name(number).exists():
                name(number).rename(name(number + 1))
        self.path.rename(name(1))

    def pack(self, number: int) -> None:
        plain = self.path.with_name(f"{self.path.name}.{number}")
        packed = plain.with_name(f"{plain.name}.gz")
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        times = plain.stat().st_mtime_ns
        os.utime(packed, ns=(times, times))
        plain.unlink()

    def write_and_rotate(self, *texts: str, **how: Any) -> None:
        for text in texts:
            self.rotate(**how)
            self.write(text)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def test_what_was_read_is_truncated(log: Log, tmp_path: Path) -> None:
    """Also where more than was there is written meanwhile; and a late writer's text is read."""
    longer = "three, and this is longer than what was there\n"

    def rename_under_its_writer() -> None:
        with log.path.open("a") as old:
            log.rotate()
            old.write("late\n")
        log.stamp(tmp_path / "app.log.1")
        log.write("four\n")

    steps = [
        lambda: os.truncate(log.path, 0),
        lambda: log.write("two\n"),
        lambda: log.write(longer, "w"),
        rename_under_its_writer,
        lambda: None,
        log.path.unlink,
        lambda: log.write("five\n"),
    ]
    log.write("one\n")
    expected = f"one\ntwo\n{longer}late\nfour\nfive\n"
    assert Looks(log.path, steps, 9).read().decode() == expected


@pytest.mark.parametrize("how", ["gone", "cut", "other"])
def test_what_cannot_be_gone_on_from(log: Log, tmp_path: Path, how: str) -> None:
    log.write("one\ntwo\n")
    first = Looks(log.path, [])
    first.read()
    position = first.follower.position(8)
    if how == "gone":
        log.path.rename(tmp_path / "elsewhere")
        log.write("three\n")
    elif how == "cut":
        os.truncate(log.path, 3)
    else:
        log.path.write_text("ONE\ntwo\n")
    with pytest.raises(streamtok.CheckpointError, match="lost"):
        Looks(log.path, []).read(position)


def test_rotations_while_what_is_between_is_read(log: Log) -> None:
    """The names move on under the reader's hands."""
    log.write("one\n")
    texts = iter([["two\n", "three\n"], ["four\n"], ["five\n", "six\n"], [], ["seven\n"]])
    steps = [lambda: log.write_and_rotate(*next(texts)) for _ in range(5)]
    assert Looks(log.path, steps, 9).read() == b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_the_file_that_was_read_is_deleted(log: Log, keep: int) -> None:
    """What is still there of the files in between is read: `keep` of them."""
    log.write("zero\n")
    log.write_and_rotate("one\n")
    steps = [lambda: log.write_and_rotate("two\n", "three\n", "four\n", keep=keep)]
    expected = ["one\n", *["two\n", "three\n"][-keep:], "four\n"]
    assert Looks(log.path, steps).read().decode() == "".join(expected)


def test_the_name_is_missing_for_a_while(log: Log) -> None:
    log.write("one\n")
    steps = [
        lambda: log.write_and_rotate("two\n"),
        log.rotate,
        lambda: None,
        lambda: log.write("three\n"),
    ]
    assert Looks(log.path, steps, 9).read() == b"one\ntwo\nthree\n"


def test_other_files_beside_it_are_not_its_text(log: Log, tmp_path: Path) -> None:
    def rotate() -> None:
        log.write_and_rotate("two\n")
        for name in ("app.log.offset", "app.log.lock", "app.log-notes", "app.log.1.tmp~"):
            (tmp_path / name).write_text("no text of the log\n")

    log.write("one\n")
    (tmp_path / "app.log.swp").write_text("an editor\n")
    assert Looks(log.path, [rotate]).read() == b"one\ntwo\n"


@pytest.mark.parametrize("suffix", [".{}", "-2024010{}"])
def test_names_of_rotated_files(log: Log, suffix: str, tmp_path: Path) -> None:
    def rotate() -> None:
        if suffix == ".{}":
            log.write_and_rotate("two\n", "three\n")
            return
        for day, text in enumerate(["two\n", "three\n"]):
            log.path.rename(tmp_path / f"app.log-2024010{day}")
            log.write(text)

    log.write("one\n")
    assert Looks(log.path, [rotate]).read() == b"one\ntwo\nthree\n"


def test_files_of_one_moment_are_in_the_order_of_their_numbers(log: Log, tmp_path: Path) -> None:
    def rotate() -> None:
        log.write_and_rotate(*[f"{i}\n" for i in range(2, 14)], keep=20)
        for path in tmp_path.iterdir():
            os.utime(path, ns=(10**18, 10**18))

    log.write("1\n")
    expected = "".join(f"{i}\n" for i in range(1, 14))
    assert Looks(log.path, [rotate], 20).read().decode() == expected


def test_what_was_packed_after_it_was_read_is_left_alone(log: Log) -> None:
    log.write("zero\n")
    log.write_and_rotate("one\n")

    def rotate() -> None:
        log.write_and_rotate("two\n")
        log.pack(2)  # that of "zero"
        log.pack(1)  # that of "one", which is being read

    assert Looks(log.path, [rotate]).read() == b"one\ntwo\n"


def test_what_was_packed_before_it_was_read_is_an_error(log: Log) -> None:
    log.write("one\n")

    def rotate() -> None:
        log.write_and_rotate("two\n", "three\n")
        log.pack(2)
        log.pack(1)

    looks = Looks(log.path, [rotate])
    with pytest.raises(streamtok.CheckpointError, match=r"app\.log\.1\.gz .*compressed before"):
        looks.read()
    assert looks.data == b"one\n"


def test_going_on_behind_rotations_of_every_number(log: Log) -> None:
    log.write("one\n")
    first = Looks(log.path, [])
    first.read()
    position = first.follower.position(2)
    expected = "e\n"
    for i in range(4):
        found = Looks(log.path, [], 9)
        assert found.read(position).decode() == expected
        log.write_and_rotate(f"more {i}\n")
        expected += f"more {i}\n"


def test_a_state_from_between(log: Log) -> None:
    """A position in a file that was rotated before anybody looked goes on there."""

    def texts() -> Iterator[str]:
        yield from ("two\n", "three\n", "four\n")

    log.write("one\n")
    looks = Looks(log.path, [lambda: log.write_and_rotate(*texts())])
    whole = looks.read()
    for at in range(len(whole) + 1):
        one = Looks(log.path, [])
        one.follower._segments = [dict(row) for row in looks.follower._segments]
        position = one.follower.position(at)
        assert Looks(log.path, [], 9).read(position) == whole[at:]


@pytest.mark.parametrize("call", ["open", "stat", "scandir"])
def test_rotations_in_the_middle_of_a_look(
    log: Log, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Each of the next calls of the system comes just after a rotation."""
    texts = [f"{i}\n" for i in range(2, 9)]
    left = list(texts)
    real = getattr(os, call)
    is_rotating = True

    def rotate_first(*args: Any, **more: Any) -> Any:
        nonlocal is_rotating
        if left and not is_rotating:
            is_rotating = True
            log.write_and_rotate(left.pop(0), keep=20)
            is_rotating = False
        return real(*args, **more)

    def begin() -> None:
        nonlocal is_rotating
        log.write_and_rotate("1\n", keep=20)
        is_rotating = False

    log.write("0\n")
    monkeypatch.setattr(os, call, rotate_first)
    found = Looks(log.path, [begin], 40).read().decode()
    assert not left
    assert found == "0\n1\n" + "".join(texts)


def test_a_folder_that_cannot_be_listed(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Any) -> None:
        raise PermissionError(13, "Permission denied", path)

    log.write("one\n")
    monkeypatch.setattr("os.scandir", refuse)
    assert Looks(log.path, [lambda: log.write_and_rotate("two\n")]).read() == b"one\ntwo\n"


def test_random_rotations(tmp_path: Path) -> None:
    """Whatever is written and rotated between two looks, and wherever a new process goes on."""
    rng = random.Random(24)
    for number in range(60):
        folder = tmp_path / str(number)
        folder.mkdir()
        log = Log(folder)
        written = ""

        def act(log: Log = log) -> None:
            nonlocal written
            for _ in range(rng.choice([0, 1, 1, 2, 5])):
                if rng.random() < 0.4 and log.path.exists():
                    log.rotate(keep=99)
                else:
                    text = f"{len(written)} " * rng.choice([1, 1, 3, 200])
                    log.write(text)
                    written += text

        log.write("begin ")
        written = "begin "
        position, before = None, b""
        for _ in range(3):
            looks = Looks(log.path, [act] * rng.randrange(6), 150)
            read = looks.read(position)
            assert (before + read).decode() == written
            at = rng.randrange(len(before), len(before + read) + 1)
            position = looks.follower.position(at)
            before = (before + read)[:at]
            act()
