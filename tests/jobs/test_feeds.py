"""`streamtok encode` from inputs to files: the effect of its options, and what it rejects."""

from __future__ import annotations

import gzip
import json
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import streamtok
from streamtok.cli import progress

from ..cli.test_cli import FOREGROUND, POSIX, Live, fails, only_error, run, spawn, wrapped

CL100K = streamtok.get_encoding("cl100k_base")
EOT = CL100K.eot_token


def ids_of(*args: str, stdin: bytes = b"") -> list[int]:
    done = run("encode", "-q", *args, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return [int(one) for one in done.stdout.split()]


def rows_of(*args: str, stdin: bytes = b"") -> list[list[int]]:
    done = run("encode", "-q", "--format", "jsonl", *args, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return [json.loads(line)["input_ids"] for line in done.stdout.splitlines()]


# Documents


def test_documents_begin_and_end_with_a_special_token(tmp_path):
    names = [str(tmp_path / "a"), str(tmp_path / "b")]
    for name in names:
        Path(name).write_text("one")
    ids = [100258, *CL100K.encode("one"), EOT]
    assert ids_of(*names, "--bos", "<|fim_prefix|>", "--eos", "<|endoftext|>") == [*ids, *ids]
    assert "neither a special token nor an id of cl100k_base" in fails("encode", "--eos", "</s>")


# Reports


def test_summary_of_documents():
    data = b'{"text": "one two"}\nbroken\n{"text": "three"}\n'
    args = ["encode", "--jsonl", "text", "--skip-bad-lines"]
    said = run(*args, stdin=data).stderr.decode()
    assert said.startswith(
        "streamtok: 1 input, 2 documents, 1 skipped (invalid JSON: 1), 12 bytes, 3 tokens, 4.00"
    )
    row = json.loads(run(*args, "--json", stdin=data).stderr)
    assert (row["files"], row["documents"], row["skipped"]) == (1, 2, 1)
    assert (row["bytes"], row["tokens"], row["bytes_per_token"]) == (12, 3, 4.0)
    assert row["skipped_because"] == {"invalid JSON": 1}


def test_log_lines_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "text"
    path.write_text("hello world\n" * 50_000)
    args = ["encode", str(path), "-o", str(tmp_path / "out.bin")]
    monkeypatch.setattr(progress, "EVERY", 0.00001)
    args += ["--force", "--chunk-size", "64k"]
    lines = run(*args).stderr.decode().splitlines()
    assert len(lines) > 3
    assert all(line.startswith("streamtok: ") for line in lines)
    assert " tokens, " in lines[0]
    assert " s left" in lines[0]
    rows = [json.loads(line) for line in run(*args, "--json").stderr.splitlines()]
    done = [row["progress"]["bytes"] for row in rows if "progress" in row]
    assert done == sorted(done)  # what is written: the first blocks are read ahead
    assert 0 < done[-1] <= 600_000
    assert rows[-1]["bytes"] == path.stat().st_size
    assert run(*args, "-q").stderr == b""


# Live inputs


def when_all_is_read(then: str) -> str:
    """Python before streamtok: `then` runs whenever a followed file has been read to its end."""
    lines = "".join(f"    {line}\n" for line in then.splitlines())
    return f"""{FOREGROUND}
import itertools, os
from streamtok.jobs.sources.follow import Follower
sleep, turns = Follower._sleep, itertools.count(1)
def then_sleep(self):
    turn = next(turns)
{lines}    sleep(self)
Follower._sleep = then_sleep
"""


SIGNAL = "os.kill(os.getpid(), signal.SIGTERM)"


@POSIX
def test_a_signal_is_the_end_of_a_followed_file(tmp_path):
    log, out = tmp_path / "app.log", tmp_path / "out.npy"
    log.write_text("one\n")
    then = f"""if turn == 1:
    with open({str(log)!r}, "a") as file:
        file.write("two\\nthree")
else:
    assert not os.path.exists({str(out)!r})
    {SIGNAL}"""
    args = ["encode", "--follow", str(log), "-o", str(out)]
    done = spawn(wrapped(when_all_is_read(then), *args))
    assert done.returncode == 0
    assert b"1 input, 13 bytes" in done.stderr
    assert np.load(out).tolist() == CL100K.encode("one\ntwo\nthree")


@POSIX
def test_followed_lines_come_as_they_are_written(tmp_path):
    log = tmp_path / "app.log"
    log.write_text("one two\n")
    with Live(wrapped(FOREGROUND, "encode", "--follow", str(log), "--lines")) as live:
        first = CL100K.encode("one two")
        assert [int(one) for one in live.lines(len(first))] == first
        with log.open("a") as file:
            file.write("three\n")
        second = CL100K.encode("three")
        assert [int(one) for one in live.lines(len(second))] == second
        live.process.send_signal(signal.SIGINT)
        assert live.process.wait(20) == 0


@POSIX
@pytest.mark.parametrize(
    ("args", "data", "expected"),
    [
        (["--delimiter", r"\n--\n"], b"one\n--\ntwo\n-", ["one", "two\n-"]),
        (["--jsonl", "t"], b'{"t": "one"}\n{"t": "tw', ["one"]),
        (["--lines"], b"one\n", ["one"]),
        ([], b"", []),
    ],
)
def test_what_a_signal_leaves_of_the_last_document(tmp_path, args, data, expected):
    log, out = tmp_path / "app.log", tmp_path / "out.jsonl"
    log.write_bytes(data)
    args = ["encode", "--follow", str(log), *args, "-o", str(out)]
    done = spawn(wrapped(when_all_is_read(SIGNAL), *args))
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line)["input_ids"] for line in out.read_text().splitlines()]
    assert rows == CL100K.encode_batch(expected)


# Refusals


def test_a_place_in_a_document_is_named(tmp_path):
    data = b"one\nt\xffo\n"
    assert "standard input line 2: byte 1 is not UTF-8" in fails("encode", "--lines", stdin=data)
    out = tmp_path / "out.jsonl"
    error = fails("encode", "--jsonl", "text", "-o", str(out), stdin=b'{"text": "a"}\n{}\n')
    assert error == ("standard input line 2: no field 'text'; --skip-bad-lines skips it")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"text" * 1000)[:-9])
    error = fails("encode", str(tmp_path / "cut.gz"), "-o", str(out))
    assert error.startswith(f"{tmp_path}/cut.gz: the gzip data is incomplete: it ends at byte ")
    assert [one.name for one in tmp_path.iterdir()] == ["cut.gz"]


@pytest.mark.parametrize(
    ("library", "args", "extra"),
    [
        ("pyarrow", ["--parquet", "text", "file"], "streamtok[arrow]"),
        ("pyarrow", ["-o", "x.parquet", "file"], "streamtok[arrow]"),
        ("zstandard", ["file"], "streamtok[zstd]"),
    ],
)
def test_a_missing_library_is_named(tmp_path, library, args, extra):
    if library == "zstandard" and sys.version_info >= (3, 14):
        pytest.skip("the standard library has zstd")
    (tmp_path / "file").write_bytes(b"\x28\xb5\x2f\xfd" * 10)
    prelude = f"import os; os.chdir({str(tmp_path)!r}); sys.modules[{library!r}] = None"
    assert extra in only_error(spawn(wrapped(prelude, "encode", *args)))
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
