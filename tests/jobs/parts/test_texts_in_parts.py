"""Parts of inputs, which may end anywhere, are together what one process makes of the text."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
import zstandard

from streamtok import PlanError, commit, plan, run_part

from .test_run_part import ENC, KINDS, ids_of, texts

OPTIONS: dict[str, Any] = {"special": "plain", "append": 50256, "prepend": 0}


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("size", [1, 64, 1000])
def test_a_document_in_parts(tmp_path: Path, number: int, size: int) -> None:
    """Ranges that end anywhere: in a character, a word, a run of blanks."""
    text = texts()[number][: size * 20].decode("utf-8", "ignore").encode()
    path = tmp_path / "in"
    path.write_bytes(text)
    made = plan(path, tmp_path / "out", encoding="gpt2", part_size=size, **OPTIONS)
    assert len(made) == max(1, -(-len(text) // size))
    assert ids_of(made) == [0, *ENC.encode(text, disallowed_special=()), 50256]


def lines(kind: str) -> bytes:
    rng = random.Random(3)
    documents = ["".join(rng.choices("ab \tcé日-x", k=rng.randrange(30))) for _ in range(16)]
    documents[9] = "-x" * 90
    if kind == "jsonl":
        return ("\n".join(json.dumps({"text": one}) for one in documents) + "\n").encode()
    return {"lines": "\n", "delimiter": "--x"}[kind].join(documents).encode()


SIZES = [11, 64, 5000]  # bytes of a part
FORMATS = ["jsonl", "u16", "npy", "megatron", "text", "datatrove"]
CASES = [  # each format with each kind and with each size
    (kind, format, SIZES[(row + column) % 3])
    for row, kind in enumerate(KINDS)
    for column, format in enumerate(FORMATS)
]


@pytest.mark.parametrize(("kind", "format", "size"), CASES)
def test_documents_in_parts(tmp_path: Path, kind: str, format: str, size: int) -> None:
    path = tmp_path / "in"
    path.write_bytes(lines(kind))
    options = KINDS[kind] | {"append": 50256, "encoding": "gpt2", "format": format}
    whole = plan(path, tmp_path / "whole", **options)
    expected = run_part(whole, 0)
    made = plan(path, tmp_path / "out", part_size=size, **options)
    numbers = list(range(len(made)))
    random.Random(5).shuffle(numbers)
    for number in numbers:
        run_part(made, number)
    totals = commit(made)
    assert totals.documents == expected.documents
    assert (totals.tokens, totals.bytes) == (expected.tokens, expected.bytes)
    if format in ("jsonl", "u16", "text"):
        joined = b"".join(Path(made.path(i)).read_bytes() for i in range(len(made)))
        assert joined == Path(whole.path(0)).read_bytes()


@pytest.mark.parametrize("errors", ["replace", "surrogateescape"])
def test_bytes_that_are_not_utf8(tmp_path: Path, errors: str) -> None:
    data = random.Random(1).randbytes(900) + b"\xed\xa0x \xf0\x9f\n" * 60
    path = tmp_path / "in"
    path.write_bytes(data)
    made = plan(path, tmp_path / "out", encoding="gpt2", part_size=97, errors=errors)
    assert ids_of(made) == ENC.encode(data, errors=errors, disallowed_special=())


@pytest.mark.parametrize("special", ["allow", "plain"])
def test_no_cut_lies_inside_a_special_token(tmp_path: Path, special: str) -> None:
    text = "a <|endoftext|> b<|endoftext|><|endoftext|>.\n" * 12
    path = tmp_path / "in"
    path.write_bytes(text.encode())
    made = plan(path, tmp_path / "out", encoding="gpt2", part_size=11, special=special)
    assert len(made) > 40
    allowed = "all" if special == "allow" else ()
    assert ids_of(made) == ENC.encode(text, allowed_special=allowed, disallowed_special=())


def test_a_byte_order_mark(tmp_path: Path) -> None:
    text = "\ufeffa text\ufeff with marks\n" * 3
    path = tmp_path / "in"
    path.write_bytes(text.encode())
    made = plan(path, tmp_path / "out", encoding="gpt2", part_size=1)
    assert ids_of(made) == ENC.encode(text)


def test_several_inputs_of_several_kinds(tmp_path: Path) -> None:
    """A compressed file is one part, also one of several frames."""
    texts = [f"text of the file {i}, " * 200 for i in range(3)]
    data = [one.encode() for one in texts]
    zstd = zstandard.compress(data[1][:1800]) + zstandard.compress(data[1][1800:])
    paths = [tmp_path / f"in{i}" for i in range(3)]
    for path, one in zip(paths, (gzip.compress(data[0]), zstd, data[2]), strict=True):
        path.write_bytes(one)
    made = plan(paths, tmp_path / "out", encoding="gpt2", part_size=50, append=50256)
    counts = [sum(part.input.path == str(path) for part in made) for path in paths]
    assert counts == [1, 1, len(data[2]) // 50]
    assert ids_of(made) == [one for text in texts for one in [*ENC.encode(text), 50256]]


def test_broken_lines(tmp_path: Path) -> None:
    good, bad = b'{"text": "some text"}\n', b'{"text": broken}\n'
    path = tmp_path / "in"
    path.write_bytes(good * 30 + bad + good * 30)
    options: dict[str, Any] = {"encoding": "gpt2", "part_size": 50, "jsonl": "text"}
    made = plan(path, tmp_path / "out", **options)
    failed = []
    for number in range(len(made)):
        try:
            run_part(made, number)
        except PlanError as error:
            failed.append(str(error))
    assert len(failed) == 1
    assert "invalid JSON" in failed[0]
    made = plan(path, tmp_path / "skipped", skip_bad_lines=True, **options)
    records = [run_part(made, number) for number in range(len(made))]
    assert sum(record.skipped for record in records) == 1
    assert sum(record.documents for record in records) == 60
