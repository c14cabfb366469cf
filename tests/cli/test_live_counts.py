"""`streamtok count` of texts that live: bad bytes, files that are not there yet."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import streamtok
from streamtok.cli.main import main

from .test_cli import FOREGROUND, POSIX, Live, fails, wrapped

CL100K = streamtok.get_encoding("cl100k_base")


BAD = b"caf\xe9 au lait\nna\xefve \xff\xfe\n"


@pytest.mark.parametrize("options", [[], ["--lines"], ["--lines", "--each"], ["--json"]])
def test_bad_bytes_do_not_end_a_count(options: list[str], tmp_path: Path, capsys: Any) -> None:
    path, other = tmp_path / "a.log", tmp_path / "b.log"
    path.write_bytes(BAD)
    other.write_bytes(b"caf\xe9")
    text = BAD.decode("utf-8", "replace")
    expected = CL100K.count(text)
    if options[:1] == ["--lines"]:
        expected = sum(map(CL100K.count, text.splitlines()))
    assert main(["count", *options, str(path), str(other)]) == 0
    said = capsys.readouterr()
    if options == ["--json"]:
        assert json.loads(said.out.splitlines()[0])["tokens"] == expected
    elif "--each" not in options:
        assert int(said.out.split()[0]) == expected
    assert main(["count", *options, "--errors", "strict", str(path)]) == 1
    assert "a.log" in (message := capsys.readouterr().err)
    assert "byte 3 is not UTF-8" in message


def test_bad_bytes_in_json_lines(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "caf\xe9"}\n{"text": "tea"}\n{"text": "\xff\xff"}')
    assert main(["count", "--jsonl", "text", str(path)]) == 0
    said = capsys.readouterr()
    assert int(said.out.split()[0]) == sum(map(CL100K.count, ["caf\ufffd", "tea", "\ufffd\ufffd"]))


@POSIX
def test_a_followed_file_that_is_truncated(tmp_path: Path) -> None:
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
def test_what_cannot_be_followed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for command in "count", "encode":
        assert "only a regular file can be followed" in fails(
            command, "--follow", str(tmp_path / "fifo")
        )
        assert f"{tmp_path}: is a folder" in fails(command, "--follow", str(tmp_path))
