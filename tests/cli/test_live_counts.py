"""`streamtok count` of texts that live: bad bytes, files that are not there yet."""

from __future__ import annotations

import os

import streamtok

from .test_cli import FOREGROUND, POSIX, Live, fails, run, wrapped

CL100K = streamtok.get_encoding("cl100k_base")


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
