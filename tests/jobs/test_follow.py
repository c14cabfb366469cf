"""Rotations between two looks at a followed file: no file is skipped, and none is read twice.

What is lost is a gap, which is an error.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

import streamtok
from streamtok.jobs.sources.follow import Follower

from ..long import followers


class Over(BaseException):
    """The follower waits, and nobody will write any more."""


class Looks:
    """A follower of `path`; whenever it has read all, the next of `steps` happens."""

    def __init__(self, path: Path, steps: list[Any], patience: int = 8):
        self.steps = steps
        self.follower = Follower(str(path), interval=0.0)
        self.follower._sleep = self._look
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
        self.begin, self.is_reading = position["at"] if position else 0, True
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

    def rotate(self, keep: int = 9) -> None:
        def name(number: int) -> Path:
            return self.path.with_name(f"{self.path.name}.{number}")

        name(keep).unlink(missing_ok=True)
        for number in range(keep - 1, 0, -1):
            if name(number).exists():
                name(number).rename(name(number + 1))
        self.path.rename(name(1))

    def pack(self, number: int) -> None:
        followers.pack(self.path.with_name(f"{self.path.name}.{number}"))

    def write_and_rotate(self, *texts: str, **how: Any) -> None:
        for text in texts:
            self.rotate(**how)
            self.write(text)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def test_what_was_read_is_truncated(log, tmp_path):
    """Without a copy: a gap. A late writer's text is read."""

    def rename_under_its_writer():
        with log.path.open("a") as old:
            log.rotate()
            old.write("late\n")
        log.stamp(tmp_path / "app.log.1")
        log.write("four\n")

    changes = [
        lambda: os.truncate(log.path, 0),
        lambda: log.write("three, and this is longer than what was there\n", "w"),
        lambda: (log.path.unlink(), log.write("five\n")),
    ]
    for change in changes:
        log.write("one\n", "w")
        looks = Looks(log.path, [change], 9)
        with pytest.raises(streamtok.CheckpointError, match=r"app\.log: text after byte 4.*lost"):
            looks.read()
        assert looks.data == b"one\n"
    log.write("one\n", "w")
    assert Looks(log.path, [rename_under_its_writer], 9).read() == b"one\nlate\nfour\n"


@pytest.mark.parametrize("has_next", [False, True])
def test_a_copy_of_what_was_opened_only_is_read(log, has_next):
    """It is copied and truncated between the start and the first read of the log."""
    log.write("one\ntwo\n")
    looks = Looks(log.path, [])
    blocks = looks.follower.blocks()
    assert next(blocks) == b""
    log.path.with_name("app.log.1").write_bytes(log.path.read_bytes())
    log.stamp(log.path.with_name("app.log.1"))
    os.truncate(log.path, 0)
    if has_next:
        log.write("three\n")
    data = b""
    with contextlib.suppress(Over):
        for block in blocks:
            data += block
    assert data == b"one\ntwo\n" + (b"three\n" if has_next else b"")


@pytest.mark.parametrize("is_rotated", [False, True])
def test_a_symbolic_link_to_a_log(log, tmp_path, is_rotated):
    """Files are rotated beside its target; a link to one of them is no other file."""
    link = tmp_path / "links" / "current.log"
    link.parent.mkdir()
    link.symlink_to(log.path)
    (link.parent / "current.log.1").symlink_to(tmp_path / "app.log.1")
    rotations = [lambda: log.write_and_rotate("two\n", "three\n")] if not is_rotated else []
    log.write("one\n")
    looks = Looks(link, rotations)
    assert looks.read() == b"one\n" + (b"" if is_rotated else b"two\nthree\n")
    if is_rotated:
        position = looks.follower.position(4)
        log.write("more\n")
        log.write_and_rotate("two\n", "three\n")
        assert Looks(link, []).read(position) == b"more\ntwo\nthree\n"


def test_the_rest_of_a_copy_is_read(log):
    """Also where the log has become longer than it was, and begins as it did."""
    copy = log.path.with_name("app.log-20300101")

    def rotate():
        log.write("lines\n")
        copy.write_bytes(log.path.read_bytes())
        log.stamp(copy)
        log.write("# begin\nmany more lines than there were\n", "w")

    log.write("# begin\nsome ")
    expected = b"# begin\nsome lines\n# begin\nmany more lines than there were\n"
    live = Looks(log.path, [rotate])
    assert live.read() == expected
    for at in range(9, len(expected) + 1):
        position = live.follower.position(at)
        assert Looks(log.path, []).read(position) == expected[at:]


@pytest.mark.parametrize("how", ["gone", "cut", "other"])
def test_what_cannot_be_gone_on_from(log, tmp_path, how):
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
    with pytest.raises(streamtok.CheckpointError, match=r"byte 8 .* lost.*with another output"):
        Looks(log.path, []).read(position)
    if how == "cut":
        with pytest.raises(streamtok.CheckpointError, match="at least 4 bytes"):
            Looks(log.path, []).read(first.follower.position(4))


def test_a_gap_names_the_files_that_cannot_be_read(log, monkeypatch):
    log.write("one\n")
    first = Looks(log.path, [])
    first.read()
    log.write_and_rotate("two\n")
    denied = str(log.path.with_name("app.log.1"))
    opening = os.open

    def open_all_but_one(path, flags):
        if path == denied:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opening(path, flags)

    monkeypatch.setattr(os, "open", open_all_but_one)
    with pytest.raises(streamtok.CheckpointError) as error:
        Looks(log.path, []).read(first.follower.position(4))
    assert f"; {denied}: Permission denied; with" in str(error.value)


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_the_file_that_was_read_is_deleted(log, keep):
    """Nobody can tell whether others came and went, so that is a gap."""
    log.write("zero\n")
    log.write_and_rotate("one\n")
    steps = [lambda: log.write_and_rotate("two\n", "three\n", "four\n", keep=keep)]
    looks = Looks(log.path, steps)
    if keep == 3:
        assert looks.read() == b"one\ntwo\nthree\nfour\n"
    else:
        with pytest.raises(streamtok.CheckpointError, match="is lost"):
            looks.read()


def test_the_name_is_missing_and_what_was_read_is_packed(log):
    def rotate():
        log.write_and_rotate("two\n")
        log.rotate()
        log.pack(2)  # that of "one", which is open

    log.write("one\n")
    assert Looks(log.path, [rotate], 20).read() == b"one\ntwo\n"


def test_other_files_beside_it_are_not_its_text(log, tmp_path):
    def rotate():
        log.write_and_rotate("two\n")
        for name in ("app.log.offset", "app.log.lock", "app.log-notes", "app.log.1.tmp~"):
            (tmp_path / name).write_text("no text of the log\n")

    log.write("one\n")
    (tmp_path / "app.log.swp").write_text("an editor\n")
    assert Looks(log.path, [rotate]).read() == b"one\ntwo\n"


def test_files_of_one_moment_are_in_the_order_of_their_numbers(log, tmp_path):
    def rotate():
        log.write_and_rotate(*[f"{i}\n" for i in range(2, 14)], keep=20)
        for path in tmp_path.iterdir():
            os.utime(path, ns=(10**18, 10**18))

    log.write("1\n")
    expected = "".join(f"{i}\n" for i in range(1, 14))
    assert Looks(log.path, [rotate], 20).read().decode() == expected


def test_what_was_packed_before_it_was_read_is_named(log):
    """Whether another file or the rest of this one: unpacked, it is read."""
    log.write("one\n")
    first = Looks(log.path, [])
    first.read()
    log.write("more\n")
    log.write_and_rotate("two\n", "three\n")
    for number in 2, 1:
        log.pack(number)
    for at in 0, 2, 4:
        position = first.follower.position(at)
        with pytest.raises(streamtok.CheckpointError, match=r"app\.log\.2\.gz.*decompress it"):
            Looks(log.path, []).read(position) if at else Looks(log.path, []).read(
                {"at": 0, "file": None, "time": -1}
            )


def test_a_copy_that_is_still_being_packed(log):
    """Both files are there until the compressed one is complete."""
    log.write("one\n")
    first = Looks(log.path, [])
    first.read()
    log.write("two\n")
    log.write_and_rotate("three\n")
    packed = gzip.compress(log.path.with_name("app.log.1").read_bytes())
    log.path.with_name("app.log.1.gz").write_bytes(packed[:12])
    assert Looks(log.path, []).read(first.follower.position(4)) == b"two\nthree\n"


def test_text_that_comes_too_late_is_a_gap(log):
    """A process writes to the renamed file, while others have begun the new one."""

    def write_late():
        with log.path.with_name("app.log.1").open("a") as file:
            file.write("too late\n")

    log.write("one\n")
    steps = [lambda: log.write_and_rotate("two\n"), *[lambda: None] * 3, write_late]
    with pytest.raises(streamtok.CheckpointError, match=r"9 bytes were written .* its byte 4 "):
        Looks(log.path, [*steps, lambda: log.write("3\n")]).read()


@pytest.mark.parametrize("has_log", [False, True])
def test_what_is_older_than_the_start_is_not_read(log, has_log):
    """Neither at once nor by a process that continues before anything was there."""
    log.write("old\n")
    log.write_and_rotate("old, too\n")
    log.rotate()
    log.pack(2)
    if has_log:
        log.path.touch()
        log.stamp(log.path)
    first = Looks(log.path, [])
    assert first.read() == b""
    position = first.follower.position(0)
    log.write("one\n")
    log.write_and_rotate("two\n")
    assert Looks(log.path, []).read(position) == b"one\ntwo\n"
    assert Looks(log.path, []).read() == b"two\n"


@pytest.mark.parametrize("call", ["open", "stat", "scandir"])
def test_rotations_in_the_middle_of_a_look(log, monkeypatch, call):
    """Each of the next calls of the system comes just after a rotation."""
    texts = [f"{i}\n" for i in range(2, 9)]
    left = list(texts)
    real = getattr(os, call)
    is_rotating = True

    def rotate_first(*args, **more):
        nonlocal is_rotating
        if left and not is_rotating:
            is_rotating = True
            log.write_and_rotate(left.pop(0), keep=20)
            is_rotating = False
        return real(*args, **more)

    def begin():
        nonlocal is_rotating
        log.write_and_rotate("1\n", keep=20)
        is_rotating = False

    log.write("0\n")
    monkeypatch.setattr(os, call, rotate_first)
    found = Looks(log.path, [begin], 40).read().decode()
    assert not left
    assert found == "0\n1\n" + "".join(texts)


def test_a_folder_that_cannot_be_listed(log, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    log.write("one\n")
    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(streamtok.CheckpointError, match="is lost"):
        Looks(log.path, [lambda: log.write_and_rotate("two\n")]).read()


def test_random_logs(tmp_path):
    """As `tests/long/followers.py`, in this process: all lines come once, or a gap is named."""
    for seed in range(150):
        error = follow_at_random(seed, tmp_path / str(seed))
        assert error is None, f"seed {seed}: {error}"


def follow_at_random(seed: int, folder: Path) -> str | None:
    """What is wrong, or None."""
    folder.mkdir()
    rng = random.Random(seed)
    is_losing = rng.random() < 0.4
    banner = b"" if is_losing or rng.random() < 0.5 else b"# a new file\n"
    log = followers.Log(folder, rng, rng.random() < 0.3, banner, is_stamped=True)
    for _ in range(rng.choice([0, 0, 2, 5])):
        rng.choice(log.steps)()
    log.forget()

    def act() -> None:
        log.note_read(looks.follower._read if looks.is_reading else len(text))
        for _ in range(rng.choice([0, 1, 1, 2, 5])):
            steps = log.losing if is_losing and rng.random() < 0.1 else log.steps
            rng.choice(steps)()

    position: dict[str, Any] | None = None
    text = b""
    lives = 4
    while lives:
        lives -= 1
        steps = [act] * rng.randrange(5)
        if not lives:
            steps += [lambda: log.put(log.line()), lambda: log.put(b"the end\n")]
        looks = Looks(log.path, steps, 12)
        try:
            text += looks.read(position)
        except streamtok.CheckpointError as error:
            log.history.append(str(error))
            if followers.PACKED in str(error):
                log.unpack()
                text += looks.data
                position = looks.follower.position(len(text))
                lives += 1
                continue
            is_right = log.lost and log.written.startswith(text + looks.data)
            return None if is_right else f"{looks.data!r} {log.history}"
        at = rng.randrange(looks.begin, len(text) + 1) if lives else len(text)
        looks.follower.release(at)
        position = json.loads(json.dumps(looks.follower.position(at)))
        text, looks.is_reading = text[:at], False
        log.history.append(f"stopped at {at}")
        if lives:
            act()
    error = log.check(text)
    return error and f"{error} {log.history}"
