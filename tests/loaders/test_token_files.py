"""Files of ids as records: those that `streamtok encode` writes, and what is wrong with others."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamtok
from streamtok.cli.main import main

GPT2 = streamtok.get_encoding("gpt2")
TEXTS = [f"Document {i} is about tea." * (i % 4) for i in range(30)]


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: Any) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").write_text("".join(f"{one}\n" for one in TEXTS))
    return "in"


def encode(name: str, *options: str) -> None:
    args = ["-e", "gpt2", "--lines", "--append", "<|endoftext|>", *options, "-q", "-o", name]
    assert main(["encode", "in", *args]) == 0


def expected() -> list[list[int]]:
    return [[*GPT2.encode(one), GPT2.eot_token] for one in TEXTS]


@pytest.mark.parametrize(
    ("name", "options"),
    [("a.bin", ["--format", "megatron"]), ("a.ds", []), ("a.ds", ["--shard-tokens", "40"])],
)
def test_records_are_documents(texts: str, name: str, options: list[str]) -> None:
    encode(name, *options)
    paths = sorted(Path().glob(f"a*{name[1:]}"))
    assert len(paths) > 1 or not options[1:] or "megatron" in options
    files = streamtok.TokenFiles(paths)
    assert [one.tolist() for one in files] == expected()
    assert files[-1].tolist() == expected()[-1]
    assert [one.tolist() for one in files[3:6]] == expected()[3:6]
    copied = pickle.loads(data := pickle.dumps(files))
    assert [one.tolist() for one in copied] == expected()
    assert len(data) < 1000
    with pytest.raises(ValueError, match="read-only"):
        files[0][0] = 1
    for number in len(TEXTS), -len(TEXTS) - 1:
        with pytest.raises(IndexError):
            files[number]


@pytest.mark.parametrize("name", ["a.npy", "a.u16", "a.u32", "a.bin"])
@pytest.mark.parametrize("record", [1, 7, 10**6])
def test_records_of_fixed_length(texts: str, name: str, record: int) -> None:
    encode(name)
    encode(f"b{name}", "--shard-tokens", "40")
    ids = [id for one in expected() for id in one]
    files = streamtok.TokenFiles(name, record)
    assert [one.tolist() for one in files] == [
        ids[at : at + record] for at in range(0, len(ids), record)
    ]
    paths = sorted(Path().glob(f"ba_*{name[1:]}"))
    assert len(paths) > 2
    found = streamtok.TokenFiles(paths, record)
    assert [id for one in found for id in one.tolist()] == ids
    assert max(map(len, found)) <= record
    with pytest.raises(ValueError, match="does not tell where documents end: give record="):
        streamtok.TokenFiles(name)


def test_blocks_of_files_are_shared_by_processes(texts: str) -> None:
    encode("a.ds")
    files = streamtok.TokenFiles("a.ds")
    found: list[int] = []
    for rank in range(2):
        for worker in range(2):
            blocks = streamtok.TokenBlocks(
                files, 8, rank=rank, ranks=2, worker=worker, workers=2, seed=1
            )
            found += [id for block in blocks for id in block.tolist()]
    assert sorted(found) == sorted(id for one in expected() for id in one)


def test_what_is_no_file_of_ids(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("1\n")
    Path("odd.u16").write_bytes(b"123")
    Path("empty.u16").write_bytes(b"")
    Path("a.bin").write_bytes(b"12")
    np.save("f.npy", np.zeros(3))
    for name, message in (
        ("a.txt", "of an unknown format: expected .npy"),
        ("a.bin", "of an unknown format"),
        ("odd.u16", "3 bytes, which are not ids of 2 bytes"),
        ("f.npy", "holds float64"),
    ):
        with pytest.raises(ValueError, match=message):
            streamtok.TokenFiles(name, 4)
    assert len(streamtok.TokenFiles("empty.u16", 4)) == 0
    Path("a.idx").write_bytes(b"MMIDIDX\0\0" + bytes(20))
    with pytest.raises(ValueError, match=r"a\.idx is not an index"):
        streamtok.TokenFiles("a.bin")
    with pytest.raises(FileNotFoundError):
        streamtok.TokenFiles("no.u16", 4)
    for record in 0, True, 1.5:
        with pytest.raises(ValueError, match="record must be"):
            streamtok.TokenFiles("empty.u16", record)  # type: ignore[arg-type]


def test_an_index_that_belongs_to_other_ids(texts: str) -> None:
    for name, options in ("a.bin", ["--format", "megatron"]), ("a.ds", []):
        encode(name, *options)
        with open(name, "ab") as file:
            file.write(b"\0\0\0\0")
        with pytest.raises(ValueError, match=r"its index|of its index"):
            streamtok.TokenFiles(name)
