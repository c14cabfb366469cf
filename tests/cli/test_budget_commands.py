"""`split`, `truncate`, and what `count` does with documents, special tokens and live text."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

import streamtok

from .test_arguments import usage
from .test_cli import COMMAND, ENV, FOREGROUND, POSIX, Live, fails, run, spawn, wrapped
from .test_signals import IN_READ

CL100K = streamtok.get_encoding("cl100k_base")
TEXT = "one two\nthree <|endoftext|> four, naïve\n\nfive\n" * 30
DATA = TEXT.encode()


# split


@pytest.mark.parametrize(
    "args", [[], ["--overlap", "3"], ["--boundary", "paragraph"], ["--special", "allow"]]
)
def test_split_gives_what_the_method_gives(tmp_path, args):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(DATA))
    done = run("split", "-n", "12", *args, str(path))
    assert (done.returncode, done.stderr) == (0, b"")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    overlap = 3 if "--overlap" in args else 0
    boundary = "paragraph" if "--boundary" in args else "character"
    allowed = CL100K.special_tokens_set if "allow" in args else set()
    expected = CL100K.split(DATA, 12, overlap, boundary, allowed_special=allowed)
    assert rows == [{**chunk._asdict(), "text": chunk.text.decode()} for chunk in expected]
    assert len(rows) > 20


def test_split_formats_and_files(tmp_path):
    done = run("split", "-n", "9", "--format", "nul", "--regex", r"\n\n", stdin=DATA)
    assert done.stdout.replace(b"\0", b"") == DATA
    assert done.stdout.count(b"\0") == sum(1 for _ in CL100K.split(TEXT, 9, 0, re.compile("\n\n")))
    names = [str(tmp_path / name) for name in "ab"]
    for name in names:
        Path(name).write_text("a b c d")
    rows = [json.loads(line) for line in run("split", "-n", "3", *names).stdout.splitlines()]
    found = [(row["file"], row["text"], row["start"]) for row in rows]
    assert found == [(n, t, s) for n in names for t, s in [("a b c", 0), (" d", 5)]]


def test_split_says_what_is_wrong():
    assert "byte 2, in" in fails("split", "-n", "2", stdin="a 🧬".encode())
    assert "byte 700 is not UTF-8" in fails(
        "split", "-n", "9", stdin=b"a b c d " * 87 + b"abcd\xff"
    )
    done = run("split", "-n", "9", "--errors", "replace", stdin=b"a\xff")
    assert json.loads(done.stdout)["text"] == "a\ufffd"
    said = fails("split", "-n", "9", "--special", "refuse", stdin=DATA)
    assert said == (
        "standard input: the text has the disallowed special token '<|endoftext|>' at byte 14; "
        "--special plain takes it as text, --special allow as one token"
    )
    for args, match in [
        (["-n", "3", "--overlap", "3"], "--overlap must be less than --max-tokens, which is 3"),
        (["-n", "0"], "must be a positive number"),
        (["-n", "3", "--regex", "("], "--regex does not compile"),
    ]:
        assert match in usage("split", *args)


@POSIX
def test_split_of_a_pipe_gives_chunks_as_they_are_complete():
    with Live([*COMMAND, "split", "-n", "4"]) as live:
        live.stdin.write(b"word " * 3000)
        assert len(live.lines(50)) >= 50


# truncate


@pytest.mark.parametrize("side", ["right", "left"])
def test_truncate_gives_what_the_method_gives(side):
    expected = CL100K.truncate(DATA, 50, side)
    done = run("truncate", "-n", "50", "--side", side, stdin=DATA)
    assert (done.returncode, done.stdout) == (0, expected.text)
    what = "end" if side == "right" else "beginning"
    assert done.stderr.decode() == (
        f"streamtok: 50 tokens were kept, the {what} of the text was dropped\n"
    )
    assert run("truncate", "-q", "-n", "50", "--side", side, stdin=DATA).stderr == b""
    done = run("truncate", "-n", "50", "--side", side, "--json", stdin=DATA)
    row = {"text": expected.text.decode(), "n_tokens": 50, "was_truncated": True}
    assert json.loads(done.stdout) == row


def test_truncate_of_what_fits():
    for text in (b"", b"a b", "naïve".encode()):
        done = run("truncate", "-n", "50", stdin=text)
        assert (done.stdout, done.stderr) == (text, b"")


@POSIX
def test_truncate_does_not_wait_for_the_end():
    with Live([*COMMAND, "truncate", "-q", "-n", "10"]) as live:
        live.stdin.write(b"word\n" * 10_000)
        assert live.process.wait(60) == 0  # the pipe is open still
        assert live.stdout.read() == b"word\n" * 5


# count


def test_count_of_each_document(tmp_path):
    lines = TEXT.splitlines()
    expected = [CL100K.count(line, disallowed_special=()) for line in lines]
    done = run("count", "--lines", "--each", "--chunk-size", "100", stdin=DATA)
    assert list(map(int, done.stdout.split())) == expected
    path = tmp_path / "docs.jsonl"
    path.write_text("".join(json.dumps({"a": {"t": line}}) + "\n" for line in lines))
    done = run("count", "--jsonl", "a.t", "--each", "--json", str(path))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows == [
        {"name": str(path), "document": i, "tokens": tokens} for i, tokens in enumerate(expected, 1)
    ]


@POSIX
def test_count_follows_a_file_until_a_signal(tmp_path):
    log = tmp_path / "app.log"
    log.write_text("one two\n")
    with Live(wrapped(FOREGROUND, "count", "--follow", "--lines", "--each", str(log))) as live:
        assert live.lines(1) == [b"2"]
        with log.open("a") as file:
            file.write("three\nfour five six")
        assert live.lines(1) == [b"1"]
        live.process.send_signal(signal.SIGINT)
        assert live.process.wait(60) == 0
        assert (live.stdout.read(), live.stderr.read()) == (b"3\n", b"")
    done = spawn(wrapped(IN_READ, "count", "--follow", str(log)))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.split()[0] == b"%d" % CL100K.count(log.read_text())


@POSIX
def test_count_shows_the_sum_on_a_terminal():
    import fcntl
    import pty
    import struct
    import termios

    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with subprocess.Popen(
        [*COMMAND, "count"],
        env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=terminal,
    ) as process:  # fmt: skip
        os.close(terminal)
        assert process.stdin is not None
        assert process.stdout is not None
        shown = b""
        while b"tokens" not in shown:
            process.stdin.write(b"word " * 1000)
            process.stdin.flush()
            time.sleep(0.05)
            shown += _available(master)
        process.stdin.close()
        total = int(process.stdout.read())
    shown += _available(master)
    os.close(master)
    found = re.findall(rb" ([0-9,]+) tokens", shown)
    assert 0 < int(found[0].replace(b",", b"")) <= total
    assert total % 1000 in (0, 1)
    assert shown.endswith(b" \r")  # nothing is left of it


def _available(fd: int) -> bytes:
    import select

    data = b""
    try:
        while select.select([fd], [], [], 0.05)[0]:
            got = os.read(fd, 1 << 16)
            if not got:
                break
            data += got
    except OSError:  # how Linux says that nobody writes any more
        pass
    return data


def test_a_spent_budget():
    text = "cafe\u0301".encode()
    assert run("truncate", "-n", "0", "-q", stdin=text).stdout == b""
    assert run("truncate", "-n", "2", "-q", stdin=text).stdout == b"cafe"
    counted = run("count", "--add-special-tokens", stdin=text)  # this encoding adds none
    assert counted.stdout == b"%d\n" % CL100K.count(text)


# count of texts that live


BAD = b"caf\xe9 au lait\nna\xefve \xff\xfe\n"


def test_bad_bytes_do_not_end_a_count(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(BAD)
    lines = BAD.decode("utf-8", "replace").splitlines(keepends=True)
    for options, texts in ([], ["".join(lines)]), (["--lines"], [line[:-1] for line in lines]):
        counted = run("count", *options, str(path)).stdout.split()[0]
        assert int(counted) == sum(map(CL100K.count, texts))
        said = fails("count", *options, "--errors", "strict", str(path))
        assert "a.log" in said
        assert "byte 3 is not UTF-8" in said


@POSIX
def test_a_followed_file_that_is_truncated(tmp_path):
    log = tmp_path / "app.log"
    with Live(wrapped(FOREGROUND, "count", "--follow", "--lines", "--each", str(log))) as live:
        assert live.stderr.readline() == f"streamtok: waiting for {log}\n".encode()
        log.write_bytes(b"one\ncaf\xc3")
        assert live.lines(1) == [b"1"]
        os.truncate(log, 0)
        # Another first byte, so that the file is known to be a new one whatever its length.
        log.write_bytes(b"two\nthree\n")
        assert live.process.wait(60) == 1
        assert b"text after byte 8" in live.stderr.read()


@POSIX
def test_what_cannot_be_followed(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for command in "count", "encode":
        assert "only a regular file can be followed" in fails(
            command, "--follow", str(tmp_path / "fifo")
        )
        assert f"{tmp_path}: is a folder" in fails(command, "--follow", str(tmp_path))
