"""Runs that die and are resumed produce the same files as uninterrupted runs.

`python -m tests.long kills` and `jobs` do the same with more and harder deaths.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import signal
import time
import zlib
from pathlib import Path

import pytest

from streamtok import CheckpointError
from streamtok.jobs.sinks.by_name import Family
from streamtok.jobs.sinks.flat import About
from streamtok.jobs.sinks.shards import Files
from streamtok.jobs.sources import unit_ends

from ..cli.test_cli import FOREGROUND, POSIX, Live, fails, only_error, run, spawn, wrapped
from ..long import crash
from ..system_calls import at_call, at_most

pytestmark = POSIX
UNIT = 4096
SMALL = f"""from streamtok.jobs.sources import unit_ends
unit_ends.UNIT = {UNIT}"""
MOST = 50_000  # bytes of a file where the disk is full
LIMIT = f"{at_most(MOST)}\n{SMALL}"
TEXT = crash.make_text(random.Random(7), 200_000).encode()


@pytest.fixture(autouse=True)
def _small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_ends, "UNIT", UNIT)


@pytest.mark.parametrize("name", ["large blocks on two threads", "text, of standard input"])
def test_kill_9_of_a_real_process(name):
    """Standard input comes slowly, and again from its beginning after each kill."""
    scenario = next(one for one in crash.scenarios(9_000) if one.name == name)
    good = crash.expected(scenario)
    # A run may end before its kill: one of some is killed.
    assert any(crash.kill_at_random(scenario, random.Random(seed), good) for seed in range(1, 41))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_bytes(TEXT)
    return path


def resumed(path: Path, out: Path, *more: str) -> list[str]:
    size = [] if "--chunk-size" in more else ["--chunk-size", "1k"]
    return ["encode", str(path), "-o", str(out), "-q", "--resume", *size, *more]


def left(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()} - {"text", "whole.bin", "whole.bin.json"}


def whole(text: Path) -> bytes:
    assert run("encode", str(text), "-q", "-o", str(text.parent / "whole.bin")).returncode == 0
    return (text.parent / "whole.bin").read_bytes()


def run_on_a_full_disk(*args: str) -> str:
    """The error of a run in this process, whose files may not grow over 50 KB."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST, before[1]))
    try:
        return fails(*args)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def interrupt(text: Path, out: Path, *more: str) -> None:
    """A run that ends in the middle."""
    error = run_on_a_full_disk(*resumed(text, out, "--checkpoint-every", "0", *more))
    assert error == f"{out}: File too large; then the same command continues {out}"
    assert (out.parent / f"{out.name}.checkpoint").exists()
    assert not out.exists()


def test_a_signal_makes_a_checkpoint(text, tmp_path):
    out = tmp_path / "out.bin"
    command = ["encode", "-o", str(out), "--resume", "--lines", "--checkpoint-every", "1000"]
    with Live(wrapped(f"{FOREGROUND}\n{SMALL}", *command)) as live:
        live.stdin.write(TEXT[:100_000])
        end = time.monotonic() + 20
        while not any(one.stat().st_size for one in tmp_path.glob(".streamtok*.part")):
            assert time.monotonic() < end
            time.sleep(0.01)
        live.process.send_signal(signal.SIGTERM)
        assert live.process.wait(20) == 128 + signal.SIGTERM
        said = live.stderr.read().decode()
    assert said.endswith(f"streamtok: stopped; the same command continues {out}\n")
    done = run(*command, stdin=TEXT)
    assert done.returncode == 0
    lines = TEXT.count(b"\n") + (not TEXT.endswith(b"\n"))
    note, summary = done.stderr.decode().splitlines()[:2]
    assert re.match(rf"streamtok: {out}: continuing after [1-9][0-9,]* documents, [1-9]", note)
    assert f"1 input, {lines:,} documents, " in summary
    good = tmp_path / "good.bin"
    run("encode", "-o", str(good), "--lines", "-q", stdin=TEXT)
    assert out.read_bytes() == good.read_bytes()
    assert (tmp_path / "out.bin.json").read_bytes() == (tmp_path / "good.bin.json").read_bytes()


def line(row: object) -> bytes:
    data = json.dumps(row).encode()
    return b"%s\t%08x\n" % (data, zlib.crc32(data))


@pytest.mark.parametrize(
    "body",
    [b"somebody's\n", b"{}\n", line({}), line({"record": 2})],
)
def test_a_checkpoint_that_no_run_has_saved(text, tmp_path, body):
    out = tmp_path / "out.bin"
    path = Path(f"{out}.checkpoint")
    path.write_bytes(body)
    assert str(path) in fails(*resumed(text, out))
    assert path.read_bytes() == body
    assert not out.exists()


def test_a_damaged_checkpoint(text, tmp_path):
    out = tmp_path / "out.bin"
    interrupt(text, out)
    path = tmp_path / "out.bin.checkpoint"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    error = fails(*resumed(text, out))
    assert error.startswith(f"{path} is damaged")
    path.unlink()
    assert run(*resumed(text, out)).returncode == 0
    assert out.read_bytes() == whole(text)
    assert left(tmp_path) == {"out.bin", "out.bin.json"}


@pytest.mark.parametrize("size", [0, 10, 500, -1])
def test_what_is_not_whole_at_the_end_was_never_written(text, tmp_path, size):
    out = tmp_path / "out.bin"
    interrupt(text, out)
    path = tmp_path / "out.bin.checkpoint"
    path.write_bytes(path.read_bytes()[:size])
    assert run(*resumed(text, out)).returncode == 0
    assert out.read_bytes() == whole(text)
    assert left(tmp_path) == {"out.bin", "out.bin.json"}


@pytest.mark.parametrize("how", ["gone", "shorter"])
def test_a_part_that_is_not_there(text, tmp_path, how):
    out = tmp_path / "out.bin"
    interrupt(text, out)
    for part in tmp_path.glob(".streamtok*"):
        if how == "gone":
            part.unlink()
        else:
            os.truncate(part, part.stat().st_size // 2)
    error = fails(*resumed(text, out))
    assert f"held the beginning of {out}" in error
    assert ("is missing" if how == "gone" else "but the checkpoint saved") in error
    assert not out.exists()


@pytest.mark.parametrize("is_last", [True, False])
def test_a_part_of_other_content(text, tmp_path, is_last):
    """The size alone says nothing: the last piece is compared now, the others by `verify`."""
    out = tmp_path / "out.bin"
    interrupt(text, out)
    rows = (tmp_path / "out.bin.checkpoint").read_bytes().splitlines()
    size = json.loads(rows[-1].rpartition(b"\t")[0])["sizes"][0]
    (part,) = (one for one in tmp_path.glob(".streamtok*.part") if one.stat().st_size)
    data = bytearray(part.read_bytes())
    at = size - 1 if is_last else 0
    data[at] ^= 1
    part.write_bytes(data)
    if not is_last:
        assert run(*resumed(text, out)).returncode == 0
        assert b"its contents have changed" in run("verify", str(out)).stdout
        return
    error = fails(*resumed(text, out))
    assert error == (
        f"{part} differs from the bytes that the checkpoint saved: it held the beginning of {out}"
    )
    assert part.read_bytes() == data  # somebody's, perhaps
    assert not out.exists()
    data[at] ^= 1
    part.write_bytes(data)
    assert run(*resumed(text, out)).returncode == 0
    assert out.read_bytes() == whole(text)


def other_names(folder: Path) -> list[tuple[list[str], list[str]]]:
    """Two ways each to name an output of which at least one file is the same."""
    (folder / "link.bin").symlink_to("c.bin")
    (folder / "folder").symlink_to(".")
    c = str(folder / "c")
    megatron = ["-o", c, "--format", "megatron"]
    return [
        (megatron, ["-o", f"{c}.bin"]),
        (megatron, ["-o", f"{c}.bin", "--format", "megatron", "--append", "<|endoftext|>"]),
        (megatron, ["-o", f"{c}.idx", "--format", "u32"]),
        (["-o", f"{c}.bin"], ["-o", str(folder / "link.bin"), "--append", "<|endoftext|>"]),
        (
            ["-o", f"{c}.bin"],
            ["-o", str(folder / "folder" / "c.bin"), "--prepend", "<|endoftext|>"],
        ),
    ]


def refusals(folder: Path, text: Path, command: list[str], two: list[str]) -> list[str]:
    """What runs say that begin while another one is in the middle; they touch nothing."""
    assert list(folder.glob("*.checkpoint"))
    before = {path.name for path in folder.glob("[!.]*")}
    said = [fails(*command, str(text), *two, *more) for more in ([], ["--force"])]
    said.append(fails("encode", "-q", str(text), *two))
    assert {path.name for path in folder.glob("[!.]*")} == before
    return said


IS_WRITTEN = ": another process is writing it"


@pytest.mark.parametrize("case", range(5))
def test_two_names_of_one_output_meet(text, tmp_path, case):
    """While one run writes, the other one is refused before it touches anything."""
    first, second = other_names(tmp_path)[case]
    command = ["encode", "-q", "--resume", "--chunk-size", "1k"]
    for one, two in ((first, second), (second, first)):
        said: list[str] = []

        def begin(name, paths, two=two, said=said):
            said += refusals(tmp_path, text, command, two)

        with at_call(40, begin):
            assert run(*command, str(text), *one, "--checkpoint-every", "0").returncode == 0
        assert [error.endswith(IS_WRITTEN) for error in said] == [True] * 3, said
        for path in tmp_path.glob("c.*"):
            path.unlink()
        assert {path.name for path in tmp_path.iterdir()} <= {"text", "link.bin", "folder"}


def test_two_processes_meet(text, tmp_path):
    first, second = other_names(tmp_path)[3]
    command = ["encode", "-q", "--resume", "--chunk-size", "1k"]
    with Live(wrapped("", *command, *first)) as live:
        end = time.monotonic() + 60
        while not list(tmp_path.glob("*.checkpoint")):
            assert time.monotonic() < end
            time.sleep(0.01)
        for error in refusals(tmp_path, text, command, second):
            assert error.endswith(IS_WRITTEN)
        live.stdin.write(TEXT)
        live.stdin.close()
        assert live.process.wait(60) == 0


@pytest.mark.parametrize("case", range(5))
def test_two_names_of_one_output_one_after_the_other(text, tmp_path, case):
    """One stopped, then the other, then both go on: each is right, or says that it cannot be."""
    first, second = other_names(tmp_path)[case]
    command = ["encode", str(text), "-q", "--resume", "--chunk-size", "1k"]
    for args in (first, second):
        run_on_a_full_disk(*command, "--checkpoint-every", "0", *args)
    (tmp_path / "good").mkdir()
    for args in (first, second, first):
        folder = tmp_path / "good"
        done = run(*command, *args)
        if done.returncode:
            said = rb"checkpoint comes from a run with|--force replaces it|held the beginning of"
            assert re.search(said, done.stderr), done.stderr
            continue
        name = Path(os.path.realpath(args[1]))
        good = run("encode", str(text), "-q", "--force", "-o", str(folder / name.name), *args[2:])
        assert good.returncode == 0
        for made in folder.iterdir():
            assert (name.parent / made.name).read_bytes() == made.read_bytes(), made.name
            made.unlink()
    assert (tmp_path / "c.bin").exists()


@pytest.mark.parametrize("more", [["--lines"], ["--shard-tokens", "5k", "--format", "megatron"]])
def test_a_failure_before_the_first_checkpoint_leaves_nothing(tmp_path, more, monkeypatch):
    monkeypatch.setattr(unit_ends, "UNIT", 1 << 25)
    (tmp_path / "text").write_bytes(TEXT + b"\xff\xff")
    command = resumed(tmp_path / "text", tmp_path / "out.bin", "--checkpoint-every", "1000", *more)
    assert "is not UTF-8" in fails(*command)
    assert left(tmp_path) == set()


def test_what_appeared_since_is_not_replaced(text, tmp_path):
    out = tmp_path / "out.bin"
    interrupt(text, out)
    out.write_bytes(b"somebody's only copy")
    assert fails(*resumed(text, out)).startswith(f"{out} exists; --force")
    assert out.read_bytes() == b"somebody's only copy"
    out.unlink()
    assert run(*resumed(text, out)).returncode == 0
    assert out.read_bytes() == whole(text)


def test_the_files_of_a_finished_run_must_be_there(tmp_path):
    family = Family("npy", About("none", "", 100))
    files = Files(str(tmp_path / "a.npy"), family, is_resumable=True)
    files.begin()
    done = files.finish()
    files.close()
    files.publish_left(done)
    files.publish_left(done)  # published before
    (tmp_path / "a.npy").write_bytes(b"x")
    with pytest.raises(
        CheckpointError, match=r"a\.npy was complete at the checkpoint and has changed"
    ):
        files.publish_left(done)
    (tmp_path / "a.npy").unlink()
    with pytest.raises(
        CheckpointError, match=r"a\.npy was complete at the checkpoint and is now missing"
    ):
        files.publish_left(done)


def test_other_inputs_are_refused(text, tmp_path):
    out = tmp_path / "out.bin"
    interrupt(text, out)
    text.write_bytes(TEXT + b"more")
    assert fails(*resumed(text, out)) == f"{text} has changed since {out}.checkpoint was saved"
    error = fails("encode", str(text), *resumed(text, out)[1:])
    assert "the number of inputs has changed from 1 to 2" in error


def test_a_device_cannot_be_resumed():
    done = run("encode", "--resume", "-o", "/dev/null")
    assert done.returncode == 2
    assert "--resume needs a regular file: give one with -o" in done.stderr.decode()


def test_standard_input_must_come_again(tmp_path):
    out = tmp_path / "out.bin"
    interrupt_stdin = wrapped(
        LIMIT,
        *resumed(Path("-"), out, "--checkpoint-every", "0"),
    )
    assert "too large" in only_error(spawn(interrupt_stdin, input=TEXT))
    for other in (b"X" + TEXT[1:], TEXT[:1000], gzip.compress(TEXT[:5000])):
        error = fails(*resumed(Path("-"), out), stdin=other)
        assert "standard input does not begin with the " in error
    packed = gzip.compress(TEXT)  # the text counts, not how it is packed
    assert run(*resumed(Path("-"), out), stdin=packed).returncode == 0
    assert run("decode", str(out)).stdout == TEXT
