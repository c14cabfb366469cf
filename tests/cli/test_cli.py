"""Tests of the command line in real processes, with pipes, signals and full disks."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

import streamtok
from streamtok.cli import progress
from streamtok.cli.main import main

from ..long.crash import make_text
from ..serve_clients import ENV as CLIENT_ENV

ENV = {**CLIENT_ENV, "PYTHONUNBUFFERED": ""}  # output waits in buffers, as it does for users
COMMAND = [sys.executable, "-m", "streamtok"]
LARGE = "cl100k_base"
NO_SPACE = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")


def spawn(command: Any, **settings: Any) -> subprocess.CompletedProcess[bytes]:
    """A real process, from its start to its end."""
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    return subprocess.run(command, env=ENV, timeout=60, check=False, **settings)


def run(*args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The same in this process, which is faster: with real descriptors for 0 and 1."""
    kept = os.dup(0), os.dup(1)
    limit = streamtok.cache_limit()
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as target:
        source.write(stdin)
        source.seek(0)
        try:
            os.dup2(source.fileno(), 0)
            os.dup2(target.fileno(), 1)
            errors = io.StringIO()
            with (
                open(1, "w", closefd=False) as stdout,
                contextlib.redirect_stdout(stdout),
                contextlib.redirect_stderr(errors),
            ):
                code = main(args)
        finally:
            for fd, copy in enumerate(kept):
                os.dup2(copy, fd)
                os.close(copy)
            if streamtok.cache_limit() != limit:  # `encode` sets its own
                streamtok.set_cache_limit(limit)
        target.seek(0)
        error = errors.getvalue().encode("utf-8", "surrogateescape")
        return subprocess.CompletedProcess(args, code, target.read(), error)


def only_error(done: subprocess.CompletedProcess[bytes]) -> str:
    """The one line of an expected failure."""
    assert done.returncode == 1, done
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("streamtok: error: ")
    return lines[0].removeprefix("streamtok: error: ")


def fails(*args: str, stdin: bytes = b"") -> str:
    return only_error(run(*args, stdin=stdin))


def wrapped(prelude: str, *args: str) -> list[str]:
    """A command line that runs some Python before streamtok, in the same process."""
    code = (
        f"import sys\n{prelude}\nfrom streamtok.cli import main\nraise SystemExit(main({args!r}))"
    )
    return [sys.executable, "-c", code]


# A background job of a shell inherits SIGINT ignored; these tests want a foreground one.
FOREGROUND = """import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)"""


class Live:
    """A running streamtok with pipes; what it prints is read with a deadline."""

    def __init__(self, command: list[str]):
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENV,
            bufsize=0,
        )
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self.stdin: IO[bytes] = self.process.stdin
        self.stdout: IO[bytes] = self.process.stdout
        self.stderr: IO[bytes] = self.process.stderr

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()

    def lines(self, n: int, seconds: float = 20.0) -> list[bytes]:
        """The next n lines of the output, or what there is when time is up."""
        data = b""
        end = time.monotonic() + seconds
        while data.count(b"\n") < n and time.monotonic() < end:
            if select.select([self.stdout], [], [], 0.2)[0]:
                got = os.read(self.stdout.fileno(), 1 if n == 1 else 1 << 16)
                if not got:
                    break
                data += got
        return data.split(b"\n")[:-1]


def on_terminal(stream: str, *args: str, stdin: bytes = b"") -> bytes:
    """What a real process writes to its output or its errors if that is a terminal."""
    mine, theirs = os.openpty()
    others = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, stream: theirs}
    with subprocess.Popen([*COMMAND, *args], env=ENV, **others) as process:
        os.close(theirs)
        process.stdin.write(stdin)
        process.stdin.close()
        shown = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while block := os.read(mine, 1 << 16):
                shown += block
    os.close(mine)
    assert process.returncode == 0
    return shown


TEXT = make_text(random.Random(1), 300_000)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT.encode())
    return path


def leftovers(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".part")]


# encode


def test_standard_input_to_standard_output():
    done = spawn([*COMMAND, "encode"], input=b"hello world")
    assert done.stdout == b"15339\n1917\n"
    assert done.stderr.startswith(b"streamtok: 1 input, 11 bytes, 2 tokens, 5.50 bytes per token")
    assert spawn([*COMMAND, "decode"], input=done.stdout).stdout == b"hello world"
    error = only_error(spawn([*COMMAND, "encode"], input=b"hello \xff world"))
    assert error.startswith("standard input: byte 6 is not UTF-8 (invalid start byte)")
    assert "--errors replace" in error
    assert "standard input: byte 1 is not" in fails("encode", stdin=b"a\xe2\x82")
    assert run("encode", "-", stdin=b"hello world").stdout == done.stdout
    raw = run("encode", "--format", "u32", stdin=b"hello world").stdout
    assert run("decode", "--format", "u32", stdin=raw).stdout == b"hello world"


def test_empty_input(tmp_path):
    for name in ("out.npy", "out.txt", "out.bin"):
        done = run("encode", "-o", str(tmp_path / name))
        assert done.returncode == 0
        assert b"0 tokens" in done.stderr
        assert run("decode", str(tmp_path / name)).stdout == b""
    assert np.load(tmp_path / "out.npy").shape == (0,)


def test_json_summary(file, tmp_path):
    done = run("encode", str(file), "-o", str(tmp_path / "out.bin"), "--json")
    row = json.loads(done.stderr)
    tokens = len(streamtok.get_encoding(LARGE).encode(TEXT))
    assert (row["files"], row["bytes"], row["tokens"]) == (1, file.stat().st_size, tokens)
    assert row["bytes_per_token"] == pytest.approx(row["bytes"] / tokens, abs=1e-3)
    assert row["seconds"] > 0
    made = [row[key] for key in ("encoding", "format", "dtype", "output")]
    assert made == [LARGE, "u32", "uint32", str(tmp_path / "out.bin")]


@pytest.mark.parametrize(
    ("args", "made"),
    [
        (["-o", "out.npy"], "cl100k_base as npy (uint32) in out.npy"),
        (["-e", "gpt2", "-o", "out", "--format", "megatron"], "gpt2 as megatron (uint16) in out"),
        (["-o", "out.txt"], "cl100k_base as text in out.txt"),
        (["--format", "u32"], "cl100k_base as u32"),
        (["-o", "out", "--format", "npy", "--task", "0/1"], "cl100k_base as npy in out"),
    ],
)
def test_the_summary_names_what_was_made(args, made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("hello world")
    assert run("encode", *args, "a.txt").stderr.decode().endswith(f"; {made}\n")


def test_a_job_in_parts_says_what_was_done_before(file, tmp_path):
    args = ["encode", "--lines", str(file), "-o", str(tmp_path / "out"), "--part-size", "64KiB"]
    assert b"continuing" not in run(*args, "--task", "1/2").stderr
    said = run(*args, "--task", "0/1").stderr.decode()
    found = re.search(rf"{tmp_path}/out: continuing; ([0-9]+) of ([0-9]+) parts are done\n", said)
    assert found
    assert int(found[1]) == int(found[2]) // 2 > 0
    assert "continuing; " in run(*args, "--task", "0/1").stderr.decode()  # all are done


# As it comes


def test_ids_come_before_the_input_ends():
    enc = streamtok.get_encoding(LARGE)
    with Live([*COMMAND, "encode", "-o", "-", "--format", "text"]) as live:
        sent = b""
        got = []
        for i in range(3):
            line = f"GET /index{i}.html took {i} ms\n".encode()
            live.stdin.write(line)
            sent += line
            stream = enc.stream_encoder()
            stable = stream.encode(sent)
            assert len(stable) > len(got)
            got += [int(x) for x in live.lines(len(stable) - len(got))]
            assert got == stable
        live.stdin.close()
        got += [int(x) for x in live.lines(100)]
        assert got == enc.encode(sent)
        assert live.process.wait(20) == 0


@POSIX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_quietly_with_whole_ids(number):
    with Live(wrapped(FOREGROUND, "encode")) as live:
        text = b"one two three four five\n" * 50
        live.stdin.write(text)
        stable = streamtok.get_encoding(LARGE).stream_encoder().encode(text)
        got = live.lines(len(stable))
        live.process.send_signal(number)
        assert live.process.wait(20) == 128 + number
        assert [int(x) for x in got] == stable
        assert live.stdout.read() == b""
        assert live.stderr.read() == b""


@POSIX
def test_an_interrupted_file_is_not_there(tmp_path):
    out = tmp_path / "out.bin"
    with Live(wrapped(FOREGROUND, "encode", "-o", str(out))) as live:
        live.stdin.write(b"one two three\n")
        end = time.monotonic() + 20
        while not leftovers(tmp_path) and time.monotonic() < end:
            time.sleep(0.01)
        assert leftovers(tmp_path)
        live.process.send_signal(signal.SIGINT)
        assert live.process.wait(20) == 130
        error = live.stderr.read().decode()
    assert error == f"streamtok: error: interrupted: {out} was not written\n"
    assert os.listdir(tmp_path) == []


@POSIX
def test_a_signal_waits_until_ids_are_written_and_a_second_one_does_not(file):
    """A reader that is stuck: the first Ctrl-C waits for the write, the second ends it."""
    with Live(wrapped(FOREGROUND, "encode", *[str(file)] * 20)) as live:
        assert select.select([live.stdout], [], [], 20)[0]
        time.sleep(0.5)  # the pipe is full now
        live.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert live.process.poll() is None
        live.process.send_signal(signal.SIGINT)
        assert live.process.wait(20) == 130


@POSIX
def test_the_last_id_is_whole_after_ctrl_c(file):
    with Live(wrapped(FOREGROUND, "encode", *[str(file)] * 20)) as live:
        assert select.select([live.stdout], [], [], 20)[0]
        time.sleep(0.3)
        live.process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        data = b""
        while got := os.read(live.stdout.fileno(), 1 << 16):
            data += got
        assert live.process.wait(20) == 130
    whole = streamtok.get_encoding(LARGE).encode(TEXT) * 20
    got_ids = [int(x) for x in data.split()]
    assert data.endswith(b"\n")
    assert 0 < len(got_ids) < len(whole)
    assert got_ids == whole[: len(got_ids)]


@POSIX
def test_progress_on_a_terminal_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl
    import pty
    import struct
    import termios

    monkeypatch.setattr(progress, "_SOON", -1.0)
    text, ids = str(tmp_path / "text"), str(tmp_path / "ids.npy")
    Path(text).write_text("a line of text\n" * 20_000)

    def seen(*args: str) -> str:
        mine, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        try:
            with (
                open(theirs, "w") as terminal,
                contextlib.redirect_stderr(terminal),
                contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())),
            ):
                assert main(args) == 0
            data = b""
            with contextlib.suppress(OSError):  # the other side is closed
                while select.select([mine], [], [], 0.1)[0]:
                    data += os.read(mine, 1 << 16)
            return data.decode()
        finally:
            os.close(mine)

    for args in (
        ["encode", text, "-o", ids],
        ["verify", ids],
        ["decode", ids, "-o", str(tmp_path / "again")],
        ["count", text],
        ["split", "-n", "500", text],
        ["truncate", "-n", "9", "--side", "left", text],
        ["show", text],
        ["bench", text, "--chunk-sizes", "100k"],
    ):
        assert re.search(r"\d%\|.*\[\d\d:\d\d<", seen(*args)), args
    assert "bytes per token" in seen("encode", text, "-o", ids, "--force")
    assert seen("encode", text, "-o", ids, "--force", "--quiet") == ""
    assert seen("verify", ids, "--quiet") == ""


# Memory


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB")
@pytest.mark.parametrize("command", ["encode", "count"])
def test_memory_does_not_grow_with_the_input(command):
    # In a small process of its own: a forked child begins with the size of its parent.
    measure = f"""
import resource, subprocess, sys
block = sys.stdin.buffer.read()
child = subprocess.Popen(
    [sys.executable, "-m", "streamtok", "{command}"] + sys.argv[1:],
    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
)
for _ in range(100):
    child.stdin.write(block)
child.stdin.close()
assert child.wait() == 0
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
    block = make_text(random.Random(2), 1 << 20).encode()[: 1 << 20]
    args = ["--format", "u32", "--errors", "replace", "-q"] if command == "encode" else []
    if command == "count":
        args = ["--errors", "replace"]
    done = spawn(
        [sys.executable, "-c", measure, *args],
        input=block,
    )
    assert done.stderr == b""
    assert int(done.stdout) < 100 * 1024


# Bad input and outputs


@pytest.mark.parametrize("command", ["encode", "decode", "count"])
def test_unreadable_input(command, tmp_path):
    missing = str(tmp_path / "missing")
    assert fails(command, missing) == f"{missing}: No such file or directory"
    what = f"is a folder; give a file in it, or all of them: {tmp_path}/*"
    assert fails(command, str(tmp_path)) == f"{tmp_path}: {what}"


def test_a_missing_second_file_is_found_before_anything_is_encoded(file, tmp_path):
    out = tmp_path / "out.bin"
    fails("encode", str(file), str(tmp_path / "missing"), "-o", str(out))
    assert not out.exists()


def test_unwritable_output(file, tmp_path):
    out = str(tmp_path / "no folder" / "out.bin")
    what = f"No such file or directory; there is no folder {tmp_path / 'no folder'}"
    assert fails("encode", str(file), "-o", out) == f"{out}: {what}"
    for command in (["encode"], ["decode"], ["train", "--vocab-size", "257"]):
        error = fails(*command, str(file), "-o", str(tmp_path))
        assert error == f"{tmp_path}: is a folder; give a file name"
    assert fails("convert", "gpt2", "--to", "tiktoken", str(tmp_path)) == error
    train = ["train", str(file), "--vocab-size", "257", "-o", str(tmp_path / "v")]
    assert fails(*train, "--save-counts", str(tmp_path)) == error
    assert fails("encode", str(file), "-o", f"{tmp_path}/new/").endswith("; give a file name")
    assert fails("encode", str(file), "--task", "0/1", "-o", str(file)).startswith(f"{file} is ")
    out = str(file / "out.bin")
    assert fails("encode", str(file), "-o", out) == f"{out}: Not a directory"


def test_decode_takes_what_verify_takes(tmp_path):
    text, prefix = tmp_path / "text", tmp_path / "corpus"
    text.write_bytes(b"one\ntwo\n")
    assert (
        run("encode", "--lines", str(text), "--format", "megatron", "-o", str(prefix)).returncode
        == 0
    )
    for name in ("corpus", "corpus.bin", "corpus.idx", "corpus.bin.json"):
        assert run("verify", str(tmp_path / name)).returncode == 0
        assert run("decode", str(tmp_path / name)).stdout == b"onetwo"
    said = fails("decode", str(prefix), "--force", "-o", f"{prefix}.bin")
    assert "is also an input" in said
    prefix.write_bytes(b"1 2")  # a file of that name is meant
    assert run("decode", "--format", "text", str(prefix)).stdout == b'"#'


@NO_SPACE
def test_full_device(file):
    assert fails("encode", str(file), "-o", "/dev/full") == "/dev/full: No space left on device"
    with open("/dev/full", "wb") as full:
        done = spawn(
            [*COMMAND, "encode", str(file)],
            stdout=full,
        )
    assert done.returncode == 1
    assert done.stderr == b"streamtok: error: standard output: No space left on device\n"
    for command in (["count", str(file)], ["list"]):
        with open("/dev/full", "wb") as full:
            done = spawn([*COMMAND, *command], stdout=full)
        assert "No space left on device" in only_error(done)


@POSIX
@pytest.mark.parametrize(
    "args",
    [["encode"], ["truncate", "-n", "300k"], ["count", "--lines", "--each"], ["split", "-n", "1k"]],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])  # "1": standard output takes parts of a write
def test_the_reader_closes_the_output(args, unbuffered, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a b c\n" * 400_000)
    command = [*COMMAND, *args, str(path)]
    env = ENV | {"PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        assert len(done.stdout.read(1)) == 1
        done.stdout.close()
        assert done.wait(60) == 141
        assert done.stderr.read() == b""


@POSIX
def test_the_reader_closes_the_output_before_an_error(tmp_path):
    """The exit code and the message are the error's."""
    path = tmp_path / "a.txt"
    path.write_text("a b c\n" * 9)
    command = [*COMMAND, "split", "-n", "5", str(path), str(tmp_path / "missing.txt")]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        env = ENV | {"PYTHONUNBUFFERED": ""}
        done = subprocess.run(command, check=False, env=env, stdout=gone, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert "missing.txt" in only_error(done)


def test_u16_is_refused_before_anything_is_read(tmp_path):
    out = tmp_path / "out.u16"
    with Live([*COMMAND, "encode", "-o", str(out)]) as live:
        assert live.process.wait(20) == 2  # its input is still open
        assert b"this vocabulary has 100276" in live.stderr.read()
    assert os.listdir(tmp_path) == []


def test_max_pending():
    error = fails("encode", "--max-pending", "0", stdin=b"hello")
    assert "standard input: " in error
    assert "--max-pending" in error


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"1 2 x", "if the input is not text, give its --format"),
        (b"1 2 100270 4", "standard input: id 100270 is not in cl100k_base (after 2 others)"),
        (b"1 99999999999", "standard input: id 99999999999 is not in cl100k_base (after 1 others)"),
        (b"1 " * 70_000 + b"100270", "id 100270 is not in cl100k_base (after 70000 others)"),
        (b"9" * 30, "standard input: a number of 30 digits is too large for an id"),
    ],
)
def test_ids_that_are_none(data, message):
    assert fails("decode", stdin=data).endswith(message)


@POSIX
def test_a_file_name_that_is_no_text(tmp_path):
    name = os.path.join(os.fsencode(tmp_path), b"\xff\n")
    with open(name, "wb") as file:
        file.write(b"hello")
    done = spawn(
        [*map(os.fsencode, COMMAND), b"count", name, name + b"x"],
    )
    assert done.returncode == 1
    assert done.stdout.count(b"\n") == 2
    assert done.stderr.count(b"\n") == 1


# count, list, bench


def test_count(file, tmp_path):
    other = tmp_path / "other"
    other.write_text("hello world")
    n = len(streamtok.get_encoding(LARGE).encode(TEXT))
    assert run("count", stdin=b"hello world").stdout == b"2\n"
    done = run("count", str(file), str(other))
    expected = [[str(n), str(file)], ["2", str(other)], [str(n + 2), "total"]]
    assert [line.split() for line in done.stdout.decode().splitlines()] == expected
    rows = run("count", "--json", str(file), str(other)).stdout.splitlines()
    assert [json.loads(row)["tokens"] for row in rows] == [n, 2, n + 2]
    assert json.loads(rows[0])["bytes"] == file.stat().st_size


def test_count_goes_on_after_an_error(file, tmp_path):
    bad = tmp_path / "bad"
    bad.write_bytes(b"half of a stream \xff")
    paths = str(bad), str(tmp_path / "missing"), str(file)
    done = run("count", "--errors", "strict", *paths)
    n = len(streamtok.get_encoding(LARGE).encode(TEXT))
    assert done.returncode == 1
    assert done.stderr.count(b"streamtok: error: ") == 2
    assert re.findall(r"\d+(?= )", done.stdout.decode()) == [str(n), str(n)]


@pytest.fixture(autouse=True)
def _signals_are_as_before() -> Iterator[None]:
    numbers = [signal.SIGINT, signal.SIGTERM]
    before = [signal.getsignal(number) for number in numbers]
    yield
    assert [signal.getsignal(number) for number in numbers] == before
