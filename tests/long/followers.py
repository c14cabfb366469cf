"""Followers of logs that are rotated and die.

Each run makes a log and gives it to a real `streamtok encode --follow --resume`. In random order,
lines are written, the log is rotated (renamed or copied and truncated, then compressed, sometimes
with an inode given again), and the process is killed with `kill -9` or stopped, and started again;
what it asks to decompress is decompressed. `Log` keeps all bytes ever written. At the end every
line has come out exactly once. Some runs also lose text: then the process may stop with a message
that says so, and all that came before the gap is there.
"""

from __future__ import annotations

import collections
import contextlib
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import streamtok
from streamtok.files import hidden_path

from ..serve_clients import ENV

GPT2 = streamtok.get_encoding("gpt2")
GAP, PACKED = "with another output", "decompress it"  # in messages
PATIENCE = 60.0  # seconds for a start, and to read what is there
_KILLED = -signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGTERM  # exit codes


@dataclass
class File:
    """A file of the log; start, stop: what it has of all that was written."""

    path: Path
    start: int
    stop: int


@dataclass
class Log:
    """app.log in a folder, what rotates it, and a record of all that was ever written.

    cuts_characters: parts of lines may end inside a character; a gap there would be an error.
    is_stamped: files get times one after the other, because those of the system may be equal.
    is_known: the follower has read text of the file that is named app.log now; is_begun: of any;
    is_followed: it has been started.
    lost: what was removed or overwritten, as parts of `written`; it may have been read before.
    """

    folder: Path
    rng: random.Random
    has_dates: bool = False
    banner: bytes = b""
    cuts_characters: bool = True
    is_stamped: bool = False
    is_known: bool = False
    is_begun: bool = False
    is_followed: bool = False
    written: bytearray = field(default_factory=bytearray)
    lost: list[tuple[int, int]] = field(default_factory=list)
    history: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.path = self.folder / "app.log"
        self._rotated: list[File] = []  # newest first
        self._start = 0  # of the named file in `written`
        self._days = 0
        self._number = 0
        self._time = 1_700_000_000_000_000_000

    def _stamp(self, path: Path) -> None:
        if self.is_stamped:
            self._time += 1_000_000
            os.utime(path, ns=(self._time, self._time))

    def _append(self, path: Path, data: bytes) -> None:
        with path.open("ab", buffering=0) as file:
            file.write(data)
        self._stamp(path)
        self.written += data

    def line(self) -> bytes:
        """The text of a new line, which no other line has."""
        self._number += 1
        more = self.rng.choice(["", "", " and so on", " naïve 日本語 🎉", " x" * 300])
        return f"{self._number} {self.rng.getrandbits(24):x}{more}\n".encode()

    # What happens to a log

    def write(self) -> None:
        """Write some lines, sometimes a part of the last one only."""
        lines = b"".join(self.line() for _ in range(self.rng.choice([1, 1, 2, 5, 40])))
        if self.is_followed and self.rng.random() < 0.2:
            cut = len(lines) - self.rng.randrange(1, 5)
            while not self.cuts_characters and lines[cut] & 0xC0 == 0x80:
                cut -= 1
            self.put(lines[:cut])
            self._rest = lines[cut:]
            self.history.append("write a part")
            return
        self.put(lines)
        self.history.append("write")

    _rest = b""

    def put(self, data: bytes) -> None:
        """Append this to what was written, with the banner if the file is new."""
        data, self._rest = self._rest + data, b""
        is_new = not self.path.exists() or not self.path.stat().st_size
        # A banner would end up inside of a line that was begun in the old file.
        if is_new and (not self.written or self.written.endswith(b"\n")):
            data = self.banner + data
        self._append(self.path, data)

    def _shift(self) -> Path:
        """Make the name of the next rotated file free."""
        if self.has_dates:
            self._days += 1
            sign = "-" if self._days < 20 else "."
            return self.folder / f"app.log{sign}2026{10 + self._days // 28}{1 + self._days % 28:02}"
        for number in range(len(self._rotated), 0, -1):
            one = self._rotated[number - 1]
            suffix = ".gz" if one.path.suffix == ".gz" else ""
            moved = self.folder / f"app.log.{number + 1}{suffix}"
            one.path.rename(moved)
            one.path = moved
        return self.folder / "app.log.1"

    def rename(self) -> None:
        """Rotate by renaming; sometimes the writer writes to the old file a little longer."""
        if not self.path.exists():
            return
        name = self._shift()
        self.path.rename(name)
        is_created = self.rng.random() < 0.5
        if is_created:
            self.path.touch()
            self._stamp(self.path)
        is_late = self.rng.random() < 0.3
        if is_late:
            self._append(name, self._rest + self.line())
            self._rest = b""
        self._rotated.insert(0, File(name, self._start, len(self.written)))
        self._start = len(self.written)
        self.is_known = False
        self.history.append(f"rename {is_created=} {is_late=}")

    def copy_and_truncate(self) -> None:
        if not self.path.exists():
            return
        name = self._shift()
        shutil.copyfile(self.path, name)
        self._stamp(name)
        os.truncate(self.path, 0)
        self._stamp(self.path)
        self._rotated.insert(0, File(name, self._start, len(self.written)))
        self._start = len(self.written)
        self.is_known = False
        self.history.append("copy and truncate")

    def compress(self) -> None:
        """Compress a rotated file as logrotate does; sometimes its inode is given again."""
        plain = [one for one in self._rotated if one.path.suffix != ".gz"]
        if not plain:
            return
        one = self.rng.choice(plain)
        inode = one.path.stat().st_ino
        one.path = pack(one.path, 0.0 if self.is_stamped else self.rng.choice([0.0, 0.0, 0.3]))
        is_again = not self.path.exists() and self._give_again(inode)
        self.history.append(f"compress {one.path.name} {is_again=}")

    def unpack(self) -> None:
        """Decompress all rotated files, as the message asks for."""
        for one in self._rotated:
            if one.path.suffix == ".gz":
                times, plain = one.path.stat().st_mtime_ns, one.path.with_suffix("")
                plain.write_bytes(gzip.decompress(one.path.read_bytes()))
                os.utime(plain, ns=(times, times))
                one.path.unlink()
                one.path = plain
        self.history.append("decompress")

    def _give_again(self, inode: int) -> bool:
        """Create the log with this inode, if the system gives it again."""
        others: list[Path] = []
        found = False
        for number in range(50):
            path = self.folder / f"other{number}"
            path.touch()
            if found := path.stat().st_ino == inode:
                path.rename(self.path)
                self._stamp(self.path)
                break
            others.append(path)
        for path in others:
            path.unlink()
        return found

    # What loses text

    def truncate(self) -> None:
        """Empty the log without a copy.

        Only if the follower has read some of it: nobody can know of text that came and went.
        """
        if self.is_known:
            os.truncate(self.path, 0)
            self._stamp(self.path)
            self.lost.append((self._start, len(self.written)))
            self._start = len(self.written)
            self.is_known = False
            self.history.append("truncate")

    def remove(self) -> None:
        """Remove the oldest rotated file, once the follower has read something of the log."""
        if self._rotated and self.is_begun:
            one = self._rotated.pop()
            one.path.unlink()
            self.lost.append((one.start, one.stop))
            self.history.append(f"remove {one.path.name}")

    def note_read(self, size: int) -> None:
        """The follower has read `size` bytes, of which all are in `written`."""
        self.is_begun = size > 0
        self.is_known = size == len(self.written) > self._start

    def forget(self) -> None:
        """Count nothing of what is there in rotated files: it is older than the follower."""
        assert not self.lost
        self.is_followed = True
        del self.written[: self._start]
        self._start = 0
        for one in self._rotated:
            one.start = one.stop = 0

    @property
    def steps(self) -> list[Callable[[], None]]:
        """What may happen, the frequent steps more than once."""
        return [self.write] * 4 + [self.rename] * 2 + [self.copy_and_truncate, self.compress]

    @property
    def losing(self) -> list[Callable[[], None]]:
        return [self.truncate, self.remove]

    # What must have come out

    def check(self, text: bytes) -> str | None:
        """What is wrong with the text that came out, or None."""
        return None if text == self.written else _difference(text, bytes(self.written))


def _difference(found: bytes, expected: bytes) -> str:
    at = next((i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), None)
    if at is None:
        at = min(len(found), len(expected))
    return (
        f"{len(found)} bytes came out of {len(expected)}; from byte {at} on there was "
        f"{found[at : at + 60]!r} instead of {expected[at : at + 60]!r}"
    )


def pack(plain: Path, pause: float = 0.0) -> Path:
    """Compress a file as gzip does, with a pause in the middle; its new name."""
    times, data = plain.stat().st_mtime_ns, gzip.compress(plain.read_bytes())
    path = plain.with_name(f"{plain.name}.gz")
    with path.open("wb", buffering=0) as file:
        file.write(data[: len(data) // 2])
        time.sleep(pause)
        file.write(data[len(data) // 2 :])
    os.utime(path, ns=(times, times))
    plain.unlink()
    return path


class Failure(AssertionError):
    """A run that broke the law."""


class Process:
    """The real command on a log, started again and again."""

    def __init__(self, folder: Path, rng: random.Random):
        self._folder = folder
        self._rng = rng
        self.is_lines = rng.random() < 0.8
        self._args = ["encode", "-e", "gpt2", "--follow", "app.log", "--resume", "-o", "app.bin"]
        if self.is_lines:
            self._args += ["--lines", "--append", "<|endoftext|>"]
        self.has_shards = rng.random() < 0.5
        if self.has_shards:
            self._args += ["--shard-tokens", rng.choice(["20", "300", "5000"])]
        self._process: subprocess.Popen[bytes] | None = None
        self.said = ""
        self.is_packed = False  # the last process has asked to decompress a file
        self.has_gap = False

    def start(self) -> None:
        every = self._rng.choice(["0", "0.05", "0.5", "0.5", "5"])
        args = [*self._args, "--checkpoint-every", every]
        args += ["--chunk-size", self._rng.choice(["300", "64k", "64k"]), "-q"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "streamtok", *args],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=ENV,
        )

    def end(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended; take what it has said."""
        assert self._process is not None
        with self._process as process:
            if process.poll() is None:
                process.send_signal(number)
            said = process.communicate(timeout=PATIENCE)[1].decode()
        self._process = None
        self.said += said
        self.is_packed = PACKED in said
        self.has_gap = GAP in said and not self.is_packed
        is_known = process.returncode == 1 and (self.is_packed or self.has_gap)
        if process.returncode not in _KILLED and not is_known:
            raise Failure(f"exit code {process.returncode}: {said}")

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _state(self) -> dict[str, Any]:
        lines = (self._folder / "app.bin.checkpoint").read_bytes().split(b"\n")[:-1]
        row: dict[str, Any] = json.loads(lines[-1].rpartition(b"\t")[0]) if lines else {}
        return row

    @property
    def at(self) -> int:
        """How many bytes the last checkpoint covers."""
        at: int = (self._state().get("position") or {"at": 0})["at"]
        return at

    def text(self) -> bytes:
        """What is in the output up to the last checkpoint."""
        row = self._state()
        data = b""
        for shard in range(row.get("shard", 0) + 1):
            name = f"app_{shard:06d}.bin" if self.has_shards else "app.bin"
            size = None
            if shard == row.get("shard", 0):
                if not row.get("sizes"):
                    break
                size = row["sizes"][0]
            path = self._folder / name
            if not path.exists():
                path = Path(hidden_path(str(path), "part"))
            data += path.read_bytes()[:size]
        text = GPT2.decode_bytes(np.frombuffer(data, "<u2"))
        return text.replace(b"<|endoftext|>", b"\n") if self.is_lines else text


def wait_until(is_true: Callable[[], bool], process: Process, what: str) -> None:
    """Wait for something; returns early if the process ends."""
    end = time.monotonic() + PATIENCE
    while process.is_running:
        with contextlib.suppress(FileNotFoundError):  # published meanwhile
            if is_true():
                return
        if time.monotonic() > end:
            raise Failure(f"{what}: nothing happened for {PATIENCE:.0f} s")
        time.sleep(0.02)


def run_once(seed: int, folder: Path, steps: int = 12) -> Process:
    """One run. Raises Failure."""
    rng = random.Random(seed)
    is_losing = rng.random() < 0.3
    banner = b"" if is_losing or rng.random() < 0.7 else b"# a new file\n"
    process = Process(folder, rng)
    is_losing = is_losing and process.is_lines
    log = Log(folder, rng, rng.random() < 0.3, banner, not is_losing)
    try:
        for _ in range(rng.choice([0, 0, 3, 8])):
            rng.choice(log.steps)()
        log.forget()
        process.start()
        record = folder / "app.bin.checkpoint"
        wait_until(lambda: b'"position"' in record.read_bytes(), process, "the first start")
        for _ in range(steps):
            act(log, process, rng, is_losing)
            if process.has_gap:
                break
        finish(log, process)
    except Failure as failure:
        history = "\n  ".join(log.history)
        covered = f"the last checkpoint covers {process.at} of {len(log.written)} bytes"
        raise Failure(f"{failure}\n  {history}\n{covered}\n{process.said}") from None
    finally:
        if process.is_running:
            process.end(signal.SIGKILL)
    return process


def act(log: Log, process: Process, rng: random.Random, is_losing: bool) -> None:
    """Some of what happens to a log, a pause, and sometimes a death."""
    if rng.random() < 0.35:
        if rng.random() < 0.5:
            time.sleep(rng.uniform(0, 0.3))
        number = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        stop(log, process, number)
        log.history.append(number.name)
        if process.has_gap:
            return
    if is_losing and rng.random() < 0.3:
        wait_until(lambda: process.at == len(log.written), process, "all that was written")
    log.note_read(process.at)
    if is_losing and log.is_known:
        log.truncate()
    for _ in range(rng.choice([1, 1, 2, 4, 8])):
        if is_losing and rng.random() < 0.1:
            rng.choice(log.losing)()
        else:
            rng.choice(log.steps)()
    if not process.is_running:
        if process._process is not None:
            stop(log, process, signal.SIGKILL)
        if process.has_gap:
            return
        process.start()
        log.history.append("start")
    time.sleep(rng.choice([0.0, 0.0, 0.1, 0.5, 0.9]))


def stop(log: Log, process: Process, number: signal.Signals) -> None:
    process.end(number)
    if process.is_packed:
        log.unpack()
    if process.has_gap:
        log.history.append("gap")
        if not log.lost:
            raise Failure("a gap was reported, but nothing was lost")


def finish(log: Log, process: Process) -> None:
    """Let the process read all, and compare."""
    if process.has_gap:
        return check_gap(log, process)
    log.put(log.line())
    log.put(last := b"the end" + b"." * 200 + b"\n")
    wanted = last if process.is_lines else last[:7]
    for _ in range(6):
        wait_until(lambda: wanted in process.text(), process, "the end of the log")
        stop(log, process, signal.SIGTERM)
        if process.has_gap:
            return check_gap(log, process)
        text = process.text()
        if wanted in text:
            break
        process.start()
    else:
        raise Failure("the end of the log never came out")
    if not process.is_lines:  # the last token of a text is not final
        text += log.written[len(text) :] if len(log.written) - len(text) < len(last) else b""
    if error := log.check(text):
        raise Failure(error)


def check_gap(log: Log, process: Process) -> None:
    """Compare what came out before a gap."""
    text = process.text()
    if not log.written.startswith(text):
        raise Failure(_difference(text, bytes(log.written)))


def one_round(seed: int) -> collections.Counter[str]:
    with tempfile.TemporaryDirectory(prefix="followers-") as folder:
        return collections.Counter(gaps=run_once(seed, Path(folder)).has_gap)
