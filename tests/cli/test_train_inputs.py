"""`streamtok train` reads what `encode` reads: the counts are those of the texts, by any way."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from streamtok import Trainer
from streamtok.cli.main import main
from streamtok.jobs import input_counts
from streamtok.load import load_tiktoken_bpe

WORDS = ["low", "lower", "newest", "日本語", "don't", "2026", " \n", "é", '"', "\\", "", "\t{"]


def texts() -> list[str]:
    rng = random.Random(5)
    sizes = [0, 1, 40, 3, 0, 700, 9, 200, *rng.choices(range(12), k=60), 0]
    return [" ".join(rng.choices(WORDS, k=size)) for size in sizes]


def as_lines(text: str) -> str:
    return text.replace("\n", " ")


def write(kind: str, path: Path, documents: list[str]) -> list[str]:
    """Write the documents, and return the options that read them."""
    if kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"text": documents}), path, row_group_size=11)
        return ["--parquet", "text"]
    if kind == "jsonl":
        rows = [json.dumps({"id": i, "text": one}) + "\n" for i, one in enumerate(documents)]
        data, options = "".join(rows), ["--jsonl", "text"]
    elif kind == "lines":
        data, options = "".join(f"{one}\n" for one in documents), ["--lines"]
    elif kind == "delimiter":
        data, options = "".join(f"{one}<END>" for one in documents), ["--delimiter", "<END>"]
    else:
        data, options = "".join(documents), []
    raw = data.encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return options


def documents_of(kind: str) -> list[str]:
    found = [as_lines(one) if kind == "lines" else one for one in texts()]
    return ["".join(found)] if kind == "whole" else found


def model(documents: list[str]) -> Trainer:
    trainer = Trainer("gpt2")
    for one in documents:
        trainer.update(one, final=True)
    return trainer


KINDS = ["whole", "lines", "delimiter", "jsonl", "parquet"]


@pytest.fixture(params=KINDS)
def kind(request: Any) -> str:
    return str(request.param)


@pytest.fixture
def inputs(kind: str, tmp_path: Path, monkeypatch: Any) -> tuple[list[str], list[str]]:
    """(arguments, the documents): a plain file and a compressed one, in this folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(input_counts, "BLOCK", 300)
    second = Path("b.rows" if kind == "parquet" else "b.rows.gz")
    documents = documents_of(kind)
    write(kind, Path("a.rows"), documents)
    options = write(kind, second, documents[::-1])
    args = [
        *options,
        "--pattern",
        "gpt2",
        "--vocab-size",
        "300",
        "--tie",
        "first",
        "--glob",
        "*.rows*",
    ]
    return args, documents + documents[::-1]


def test_the_vocabulary_is_that_of_the_texts(inputs: Any, capsys: Any) -> None:
    args, documents = inputs
    expected = model(documents)
    vocabulary = expected.train(300, tie="first")
    for number, way in enumerate(([], ["--threads", "1"], ["--errors", "replace"])):
        assert main(["train", *args, *way, "-q", "-o", f"{number}.tiktoken"]) == 0
        found = Path(f"{number}.tiktoken").read_bytes()
        if number == 0:
            first = found
            ranks = {vocabulary.decode_single_token_bytes(i): i for i in range(vocabulary.n_vocab)}
            assert load_tiktoken_bpe("0.tiktoken") == ranks
        assert found == first
    assert capsys.readouterr().err == ""


def test_bad_lines(tmp_path: Path, capsys: Any) -> None:
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


def test_a_bad_text_is_named(tmp_path: Path, capsys: Any) -> None:
    path, out = tmp_path / "a", str(tmp_path / "out")
    args = ["train", str(path), "--vocab-size", "257", "-o", out, "-q"]
    path.write_bytes(b"low\nlower\nlo\xffw\nlow\n")
    assert main([*args, "--lines"]) == 1
    assert "a: document 3: byte 2 is not UTF-8 (invalid start byte)" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a.jsonl", "a.NDJSON", "a.jsonl.gz", "a.parquet"])
def test_records_that_are_taken_as_plain_text(name: str, tmp_path: Path, capsys: Any) -> None:
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
