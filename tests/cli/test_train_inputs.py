"""`streamtok train` reads what `encode` reads: the counts are those of the texts, by any way."""

from __future__ import annotations

import pytest

from streamtok.cli.main import main


def test_bad_lines(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "low low"}\n{"tex": 1}\nnot JSON\n{"text": "lower"}\n')
    out = str(tmp_path / "out.tiktoken")
    args = ["train", str(path), "--vocab-size", "257", "-o", out, "--force"]
    assert main([*args, "--jsonl", "text"]) == 1
    assert "a.jsonl line 2: no field 'text'" in capsys.readouterr().err
    assert main([*args, "--jsonl", "text", "--skip-bad-lines"]) == 0
    assert "2 skipped (no field 'text': 1, invalid JSON: 1)" in capsys.readouterr().err
    assert main([*args, "--jsonl", "txet", "--skip-bad-lines"]) == 1
    assert "no document is left: 4 lines or rows were skipped" in capsys.readouterr().err


def test_a_bad_text_is_named(tmp_path, capsys):
    path, out = tmp_path / "a", str(tmp_path / "out")
    args = ["train", str(path), "--vocab-size", "257", "-o", out, "-q"]
    path.write_bytes(b"low\nlower\nlo\xffw\nlow\n")
    assert main([*args, "--lines"]) == 1
    assert "a: document 3: byte 2 is not UTF-8 (invalid start byte)" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a.jsonl", "a.NDJSON", "a.jsonl.gz", "a.parquet"])
def test_records_that_are_taken_as_plain_text(name, tmp_path, capsys):
    path = tmp_path / name
    path.write_bytes(b'{"text": "low low"}\n')
    option = "--parquet COLUMN" if "parquet" in name else "--jsonl FIELD"
    out = str(tmp_path / "out")
    commands = (
        ["count", str(path)],
        ["encode", str(path), "-o", out],
        ["encode", str(path), "-o", f"{out}2", "--task", "0/1"],
        ["train", str(path), "--vocab-size", "257", "-o", f"{out}3"],
    )
    for command in commands:
        assert main(command) == 0
        said = capsys.readouterr().err
        assert said.count("taken as plain text") == 1, said
        assert f"{path}: " in said
        assert option in said
    if "jsonl" in name.lower():
        path.write_bytes(b'{"text": "low low"}\n')
        assert main(["count", "--jsonl", "text", str(path)]) == 0
        assert capsys.readouterr().err == ""
    assert main(["encode", str(path), "-q", "-o", f"{out}5"]) == 0
    assert capsys.readouterr().err == ""
