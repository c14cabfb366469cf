"""Outputs record the encoding of their ids, and `decode` uses it or rejects contradictions."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamtok
from streamtok.cli.main import main

from ..cli.test_cli import fails, run

TEXT = "one two three, naïve 日本語\n".encode() * 30
GPT2 = streamtok.get_encoding("gpt2")
CL100K = streamtok.get_encoding("cl100k_base")


def made(tmp_path: Path, name: str, *more: str, encoding: str = "gpt2") -> Path:
    text, out = tmp_path / "text", tmp_path / name
    text.write_bytes(TEXT)
    done = run("encode", "-q", "-e", encoding, str(text), "-o", str(out), *more)
    assert done.returncode == 0, done.stderr
    return out


def sidecar(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(f"{path}.json").read_text())
    return found


def test_another_encoding_is_an_error_that_names_both(tmp_path):
    out, back = made(tmp_path, "a.npy"), tmp_path / "back"
    error = fails("decode", str(out), "-e", "cl100k_base", "-o", str(back))
    assert f"{out}.json says that the ids are of gpt2 ({GPT2.digest[:16]})" in error
    assert f"cl100k_base ({CL100K.digest[:16]})" in error
    assert not back.exists()


def test_a_vocabulary_file_is_found_again(tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    Path("models").mkdir()
    Path("text").write_bytes(TEXT)
    assert main(["convert", "gpt2", "models/tokenizer.json", "-q"]) == 0
    command = ["encode", "-q", "text", "-e", "models/tokenizer.json"]
    assert main([*command, "-o", "a.npy"]) == 0
    assert main([*command, "-o", "a.parquet"]) == 0
    assert main([*command, "-o", "job", "--task", "0/1"]) == 0
    capfdbinary.readouterr()
    for path in ("a.npy", "a.parquet", "job"):
        assert main(["decode", path]) == 0
        assert capfdbinary.readouterr().out == TEXT
    Path("models/tokenizer.json").rename("moved.json")
    assert main(["decode", "a.npy"]) == 1
    said = capfdbinary.readouterr().err.decode()
    assert "a.npy.json says that the ids are of models/tokenizer.json" in said
    assert said.endswith("which is not here: give that vocabulary with -e\n")
    assert main(["decode", "a.npy", "-e", "moved.json"]) == 0
    assert main(["convert", "r50k_base", "models/tokenizer.json", "-q"]) == 0
    Path("models/tokenizer.json").write_text(
        Path("models/tokenizer.json").read_text("utf-8").replace('"Ġthe"', '"Ġthex"', 1), "utf-8"
    )
    capfdbinary.readouterr()
    assert main(["decode", "a.npy"]) == 1
    assert b"give that vocabulary with -e" in capfdbinary.readouterr().err


def test_decode_names_what_it_cannot_take(tmp_path):
    one, other = made(tmp_path, "one.npy"), made(tmp_path, "other.npy", encoding="cl100k_base")
    job = made(tmp_path, "job", "--task", "0/1", "--part-size", "300")
    assert "is a folder; give a file in it" in fails("decode", str(tmp_path))
    assert "decode them one by one" in fails("decode", str(one), str(other))
    (job / "manifest.jsonl").unlink()
    next(job.glob("part-000002-*.json")).unlink()
    assert "part 2 is not done" in fails("decode", str(job), "-o", str(tmp_path / "back"))
    assert not (tmp_path / "back").exists()


def test_another_format_is_an_error_that_names_both(tmp_path):
    out = made(tmp_path, "a.bin", encoding="cl100k_base")
    error = fails("decode", str(out), "--format", "npy")
    assert f"{out}.json says that the format is u32, but --format is npy" in error


def test_a_vocabulary_of_the_same_name_is_another_encoding(tmp_path):
    out = made(tmp_path, "a.npy")
    row = sidecar(out) | {"vocabulary_sha256": "00" * 32}
    Path(f"{out}.json").write_text(json.dumps(row))
    assert "(0000000000000000)" in fails("decode", str(out))
    assert "(0000000000000000)" in fails("decode", str(out), "-e", "gpt2")


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"vocabulary_sha256": 7}',
        b'{"vocabulary_sha256": "00", "encoding": "gpt2", "tokens": "many"}',
        b'{"vocabulary_sha256": "00", "encoding": "gpt2", "tokens": true}',
        b'{"vocabulary_sha256": "00", "encoding": "gpt2", "tokens": 5, "documents": 1}',
    ],
)
def test_a_damaged_sidecar(tmp_path, damage):
    out = made(tmp_path, "a.npy")
    Path(f"{out}.json").write_bytes(damage)
    error = fails("decode", str(out))
    assert error.startswith(f"{out}.json: the sidecar of {out} is damaged: ")
    assert error.endswith("; remove it to decode without it")
    Path(f"{out}.json").unlink()
    assert run("decode", str(out), "-e", "gpt2").stdout == TEXT


def test_a_sidecar_of_another_file(tmp_path):
    out = made(tmp_path, "a.u16")
    with out.open("ab") as file:
        file.write(b"\1\0")
    size = out.stat().st_size
    error = fails("decode", str(out))
    assert f"{out} has {size} bytes, but {out}.json describes a file of {size - 2}" in error


def test_a_link_to_ids(tmp_path):
    """The sidecar is beside the real file, whichever name was used to write or to read it."""
    (tmp_path / "sub").mkdir()
    link = tmp_path / "link.npy"
    link.symlink_to(Path("sub") / "real.npy")
    made(tmp_path, "link.npy")
    assert sorted(os.listdir(tmp_path / "sub")) == ["real.npy", "real.npy.json"]
    for path in (link, tmp_path / "sub" / "real.npy"):
        assert run("decode", str(path)).stdout == TEXT
    made(tmp_path, "link.npy", "--force", encoding="cl100k_base")
    assert run("decode", str(tmp_path / "sub" / "real.npy")).stdout == TEXT
    assert sorted(os.listdir(tmp_path)) == ["link.npy", "sub", "text"]


def test_json_of_another_kind_is_no_sidecar(tmp_path):
    out = made(tmp_path, "a.npy")
    for other in ({"name": "x"}, [1, 2], "text", None):
        Path(f"{out}.json").write_text(json.dumps(other))
        assert run("decode", str(out), "-e", "gpt2").stdout == TEXT


def test_ids_that_the_default_cannot_be(tmp_path):
    """Without a sidecar, the type in npy's header speaks against the default at least."""
    out, back = made(tmp_path, "a.npy"), tmp_path / "back"
    Path(f"{out}.json").unlink()
    error = fails("decode", str(out), "-o", str(back))
    assert "the ids are uint16, but those of cl100k_base, the default, need uint32" in error
    assert not back.exists()
    assert run("decode", str(out), "-e", "gpt2").stdout == TEXT


@pytest.mark.parametrize("name", ["a.jsonl", "a.npy"])
def test_ids_are_no_text(tmp_path, name):
    out = made(tmp_path, name)
    for command in ("encode", "count", "bench"):
        error = fails(command, str(out))
        assert f"{out} holds ids, not text" in error
        assert f"{out}.json says {GPT2.count(TEXT):,} ids of gpt2" in error


def test_tables_name_their_encoding(tmp_path):
    import pyarrow.parquet as pq

    expected = {
        "encoding": "gpt2",
        "vocabulary_sha256": GPT2.digest,
        "documents": 1,
        "first_document": 0,
        "tokens": GPT2.count(TEXT),
    }
    schema = pq.read_schema(made(tmp_path, "a.parquet"))
    row = json.loads(schema.metadata[b"streamtok"])
    assert row == expected


def test_an_id_that_is_not_there_names_the_sidecar(tmp_path):
    out = made(tmp_path, "a.npy")
    np.save(out, np.full(GPT2.count(TEXT), 60_000, np.uint16))
    error = fails("decode", str(out))
    assert error.endswith(f"id 60000 is not in gpt2 (after 0 others), though {out}.json says gpt2")


# Documents without a mark between them


def test_joined_documents_are_said(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_bytes(b"hello")
    names = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    out = str(tmp_path / "out.u16")
    command = ["encode", "-e", "gpt2", *names, "-o", out, "--force"]
    said = run(*command).stderr.decode().splitlines()
    assert len(said) == 2
    assert said[1] == (
        "streamtok: warning: u16 does not record where the 2 documents end: "
        "--append '<|endoftext|>' marks their ends, --format jsonl keeps them separate"
    )
    row = json.loads(run(*command, "--json").stderr)
    assert row["warning"].startswith("u16 does not record where")
    for more in (["--append", "<|endoftext|>"], ["-q"]):
        assert b"warning" not in run(*command, *more).stderr
    assert b"warning" not in run("encode", "-e", "gpt2", names[0], "-o", out, "--force").stderr
    for name in ("out.jsonl", "out.ds", "out.parquet"):
        assert b"warning" not in run("encode", *names, "-o", str(tmp_path / name)).stderr
