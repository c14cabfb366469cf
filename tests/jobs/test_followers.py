"""The real `encode --follow --resume` on logs that are rotated while it runs, waits or is dead."""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

import pytest

from ..long import followers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")


@pytest.mark.parametrize("seed", [7, 5000])
def test_a_short_run_of_the_driver(tmp_path, seed):
    followers.run_once(seed, tmp_path, steps=5)


class Started(followers.Process):
    """A process for a log that has begun, with checkpoints often and no shards."""

    def __init__(self, folder: Path):
        super().__init__(folder, random.Random(0))
        self.is_lines, self.has_shards = True, False
        self._args = [
            *("encode", "-e", "gpt2", "--follow", "app.log", "--resume", "-o", "app.bin"),
            *("--lines", "--append", "<|endoftext|>"),
        ]

    def wait_for(self, text: bytes) -> None:
        followers.wait_until(lambda: self.text() == text, self, "the checkpoint")
        assert self.text() == text, self.said


def test_a_checkpoint_is_made_while_nothing_comes(tmp_path):
    """The lines are in no other file when the process comes back."""
    log = tmp_path / "app.log"
    process = Started(tmp_path)
    process.start()
    process.wait_for(b"")  # before there is any text, and before there is a log
    text = b""
    for number in range(3):
        lines = b"%d\nmore lines of %d\n" % (number, number)
        with log.open("ab") as file:
            file.write(lines)
        text += lines
        process.wait_for(text)
        process.end(signal.SIGKILL)
        log.rename(tmp_path / f"app.log-2030010{number + 1}")
        log.write_bytes(line := b"one more than %d\n" % number)
        text += line
        process.start()
        process.wait_for(text)
    process.end(signal.SIGTERM)
    assert not process.has_gap


def test_a_gap_stops_the_run_and_destroys_nothing(tmp_path):
    log = tmp_path / "app.log"
    log.write_bytes(b"one\ntwo\nthr")
    process = Started(tmp_path)
    process.start()
    process.wait_for(b"one\ntwo\nthr"[:8])
    process.end(signal.SIGKILL)
    before = kept(tmp_path)
    os.truncate(log, 0)
    log.write_bytes(b"four\n")
    for _ in range(2):
        process.start()
        process.end(signal.SIGCONT)
        assert "app.log: " in process.said
        assert "byte 11" in process.said
        assert process.has_gap
        assert kept(tmp_path) == before


def kept(folder: Path) -> dict[str, bytes]:
    """The files of the run, hidden ones included."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.suffix != ".lock" and path.name != "app.log"
    }
