"""No command overwrites its input, nor any other file without --force."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import streamtok
from streamtok.cli.main import main
from streamtok.jobs.sinks.by_name import Family
from streamtok.jobs.sinks.flat import About
from streamtok.jobs.sinks.shards import Files

from ..system_calls import contents
from .test_cli import COMMAND, POSIX, fails, only_error, run, spawn

TEXT = b"one two three\nfour five\n" * 20
CL100K = streamtok.get_encoding("cl100k_base")


@pytest.fixture
def keep(tmp_path: Path) -> Path:
    path = tmp_path / "keep.txt"
    path.write_bytes(TEXT)
    return path


def spelled(path: Path) -> Iterator[str]:
    """Names of the same file."""
    yield str(path)
    yield str(path.parent / ".." / path.parent.name / path.name)
    yield os.path.relpath(path)
    other = path.parent / "other"
    for make in (os.symlink, os.link):
        make(path, other)
        yield str(other)
        other.unlink()


TRAIN = ["train", "keep.txt", "--vocab-size", "300", "--to", "tiktoken", "-q"]
INPUTS = [  # a file, and commands that read it and would write the file whose name follows
    ("keep.txt", ["encode", "keep.txt", "-o"]),
    ("keep.txt", ["encode", "keep.txt", "--format", "u32", "-o"]),
    ("keep.txt", ["encode", "keep.txt", "--resume", "-o"]),
    ("keep.txt", ["encode", "keep.txt", "--follow", "-o"]),
    ("keep.txt", [*TRAIN, "-o"]),
    ("keep.txt", [*TRAIN, "-o", "t", "--save-counts"]),
    ("i.npy", ["decode", "i.npy", "-o"]),
    ("i.npy.json", ["decode", "i.npy", "-o"]),
    ("v.tiktoken", ["convert", "v.tiktoken", "--to", "tiktoken"]),
    ("v.tiktoken", ["convert", "v.tiktoken@gpt2", "--to", "tiktoken"]),
    ("v.tiktoken", ["encode", "-e", "v.tiktoken@gpt2", "--format", "text", "-o"]),
    ("v.tiktoken", ["decode", "-e", "v.tiktoken@gpt2", "-o"]),
]


@POSIX
def test_no_command_destroys_its_input(keep, monkeypatch):
    monkeypatch.chdir(keep.parent)
    assert run("encode", "-q", "keep.txt", "-o", "i.npy").returncode == 0
    assert run("convert", "r50k_base", "v.tiktoken", "-q").returncode == 0
    before = contents(keep.parent)
    for source, command in INPUTS:
        for name in spelled(keep.with_name(source)):
            for force in ([], ["--force"]):
                assert "is also an input" in fails(*command, name, *force), (command, name)
    assert contents(keep.parent) == before


@POSIX
def test_standard_input_is_an_input_as_well(keep):
    with keep.open("rb") as file:
        said = only_error(spawn([*COMMAND, "encode", "-o", str(keep)], stdin=file))
    assert "is also an input (standard input)" in said
    with keep.open("ab") as file:
        said = only_error(spawn([*COMMAND, "encode", str(keep), "-o", "-"], stdout=file))
    assert "standard output is also an input" in said
    assert keep.read_bytes() == TEXT


@pytest.mark.parametrize(
    ("source", "args"),
    [
        ("c.bin", ["--format", "megatron", "-o", "c"]),
        ("c.idx", ["--format", "megatron", "-o", "c"]),
        ("c.npy.json", ["-o", "c.npy"]),
        ("c.ds.index", ["-o", "c.ds"]),
        ("c.u32.checkpoint", ["-o", "c.u32", "--resume"]),
        ("c_000007.txt", ["-o", "c.txt", "--shard-tokens", "10"]),
        ("c_000007.txt.json", ["-o", "c.txt", "--shard-tokens", "10"]),
    ],
)
def test_each_file_of_an_output_is_compared(tmp_path, monkeypatch, source, args):
    monkeypatch.chdir(tmp_path)
    (tmp_path / source).write_bytes(TEXT)
    assert "is also an input" in fails("encode", source, *args, "--force")
    assert contents(tmp_path) == {source: TEXT}


def test_convert_into_its_own_folder(tmp_path):
    folder = tmp_path / "g"
    assert run("convert", "gpt2", str(folder), "--to", "gpt2", "-q").returncode == 0
    before = contents(folder)
    for source in (folder, folder / "vocab.bpe"):
        args = [str(source), str(folder), "--to", "gpt2", "--force"]
        assert "is also an input" in fails("convert", *args)
    args = [str(folder / "vocab.bpe"), str(folder / "encoder.json"), "--to", "huggingface"]
    assert "is also an input" in fails("convert", *args, "--force")
    assert contents(folder) == before


def test_two_outputs_are_not_one_file(keep):
    (keep.parent / "c.bin").symlink_to("c.idx")
    args = ["encode", str(keep), "--format", "megatron", "-o", str(keep.parent / "c")]
    assert "is the same file as another output" in fails(*args)


# What is there and is not ours


OURS = ["a.npy", "a.u32", "a", "a.jsonl", "a.ds", "a.parquet", "megatron"]


@pytest.mark.parametrize("more", [[], ["--shard-tokens", "30"], ["--resume"]])
@pytest.mark.parametrize("name", OURS)
def test_a_finished_output_needs_force(keep, name, more, capsys):
    """Also of the same command, and an index of an output that has no ids."""
    keep.write_bytes(b"" if name == "a.ds" else TEXT)
    out = keep.parent / "out" / ("c.bin" if name == "megatron" else name)
    out.parent.mkdir()
    command = ["encode", "--lines", "-q", str(keep), "-o", str(out), *more]
    if name == "megatron":
        command += ["--format", name]
    assert main(command) == 0
    first = contents(out.parent)
    for other in ([], ["-e", "gpt2"]):
        assert main([*command, *other]) == 1
        assert capsys.readouterr().err.endswith(" exists; --force replaces it\n")
    assert contents(out.parent) == first
    assert main([*command, "--force"]) == 0
    assert contents(out.parent) == first
    assert main([*command, "-e", "gpt2", "--force"]) == 0
    assert contents(out.parent) != first


SHARDS = ["--shard-tokens", "20"]


@pytest.mark.parametrize(
    ("there", "args"),
    [
        ("out.npy", ["-o", "out.npy"]),
        ("out.bin", ["-o", "out.bin"]),
        ("out", ["-o", "out"]),
        ("out", ["-o", "out", "--resume"]),
        ("out.parquet", ["-o", "out.parquet"]),
        ("out.idx", ["-o", "out", "--format", "megatron"]),
        ("out.bin", ["-o", "out", "--format", "megatron"]),
        ("out.ds.metadata", ["-o", "out.ds"]),
        ("out.json", ["-o", "out"]),
        ("a_000000.npy", ["-o", "a.npy", *SHARDS]),
        ("a_000007.npy", ["-o", "a.npy", *SHARDS, "--resume"]),
        ("a_000007.npy.json", ["-o", "a.npy", *SHARDS]),
        ("a_000007.parquet", ["-o", "a.parquet", *SHARDS]),
        ("a_000007.idx", ["-o", "a.bin", *SHARDS, "--format", "megatron"]),
        ("a_000007.bin", ["-o", "a.bin", *SHARDS, "--format", "megatron", "--resume"]),
    ],
)
def test_what_is_not_ours_stays(keep, monkeypatch, there, args):
    monkeypatch.chdir(keep.parent)
    Path(there).write_bytes(b"somebody's only copy: 1, 2, 3!")  # no multiple of 4 bytes
    before = contents(keep.parent)
    command = ["encode", "-q", "--lines", "keep.txt", *args]
    assert fails(*command) == f"{there} exists; --force replaces it"
    assert contents(keep.parent) == before
    Path(there).unlink()
    assert run(*command).returncode == 0


def test_a_sidecar_by_itself_holds_nothing(keep):
    out = keep.parent / "out.npy"
    for _ in range(2):
        assert run("encode", "-q", str(keep), "-o", str(out)).returncode == 0
        out.unlink()


def test_an_empty_file_holds_nothing_to_lose(keep):
    out = keep.parent / "out.npy"
    out.touch()
    assert run("encode", "-q", str(keep), "-o", str(out)).returncode == 0
    assert np.load(out).tolist() == CL100K.encode(TEXT)


OTHERS = {  # commands, and the file that they write
    "back": ["decode", "i.npy", "-o", "back"],
    "v.tiktoken": ["convert", "gpt2", "v.tiktoken", "-q"],
    "tokenizer.json": ["convert", "gpt2", "tokenizer.json", "-q"],
    "g/encoder.json": ["convert", "gpt2", "g", "--to", "gpt2", "-q"],
    "t.tiktoken": ["train", "keep.txt", "-q", "-o", "t.tiktoken", "--vocab-size", "260"],
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_exists_needs_force(keep, name, monkeypatch):
    monkeypatch.chdir(keep.parent)
    assert run("encode", "-q", "keep.txt", "-o", "i.npy").returncode == 0
    assert run(*OTHERS[name]).returncode == 0
    good = Path(name).read_bytes()
    for data in (good, b'{"name": "package"}', b"x"):
        Path(name).write_bytes(data)
        assert fails(*OTHERS[name]).endswith("exists; --force replaces it")
        assert Path(name).read_bytes() == data
    assert run(*OTHERS[name], "--force").returncode == 0
    assert Path(name).read_bytes() == good
    assert not list(keep.parent.glob(".streamtok*"))


# Devices, pipes and descriptors


@POSIX
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_an_open_descriptor_is_written_not_replaced(keep, name):
    if not os.path.exists(name):
        name = "/dev/stdout"
    log = keep.parent / "log"
    log.write_bytes(b"before\n")
    command = [*COMMAND, "encode", "-q", str(keep), "-o", name, "--format", "text"]
    with log.open("ab") as file:
        assert spawn(command, stdout=file).returncode == 0
    ids = "".join(f"{one}\n" for one in CL100K.encode(TEXT)).encode()
    assert log.read_bytes() == b"before\n" + ids
    assert sorted(contents(keep.parent)) == ["keep.txt", "log"]


@POSIX
def test_a_vocabulary_does_not_replace_a_device(keep):
    fifo = keep.parent / "fifo"
    os.mkfifo(fifo)
    for out in (str(fifo), "/dev/null", "/dev/stdout"):
        for args in (["--force"], []):
            convert = ["convert", "gpt2", out, "--to", "tiktoken", *args]
            assert f"{out} is not a regular file" in fails(*convert)
            train = ["train", str(keep), "--vocab-size", "260", "-o", out, *args]
            assert f"{out} is not a regular file" in fails(*train)
    assert fifo.is_fifo()


@POSIX
def test_devices_need_no_force(keep):
    assert run("encode", "-q", str(keep), "-o", "/dev/null").returncode == 0
    assert not os.path.exists("/dev/null.json")


# Shards of an earlier run


@pytest.mark.parametrize("more", [[], ["--resume"]])
def test_a_shorter_run_with_force_removes_the_shards_behind_it(tmp_path, more):
    other = tmp_path / "a_notes.npy"
    other.write_bytes(b"not a shard")
    command = ["encode", "-q", "--lines", "-o", str(tmp_path / "a.npy"), "--shard-tokens", "20"]
    assert run(*command, *more, stdin=TEXT).returncode == 0
    assert len(list(tmp_path.glob("a_0*.npy"))) > 2
    before = contents(tmp_path)
    assert "a_000000.npy exists; --force" in fails(*command, *more)
    assert contents(tmp_path) == before
    more = [*more, "--force"]
    assert run(*command, *more, stdin=TEXT[:50]).returncode == 0
    names = {"a_000000.npy", "a_000000.npy.json", "a_notes.npy"}
    assert {one.name for one in tmp_path.iterdir()} == names
    assert run(*command, *more, stdin=TEXT).returncode == 0


def test_force_removes_no_shard_without_a_sidecar(tmp_path):
    mine = tmp_path / "a_000007.npy"
    mine.write_bytes(b"mine")
    command = ["encode", "-q", "-o", str(tmp_path / "a.npy"), "--shard-tokens", "9", "--force"]
    assert run(*command, stdin=b"few words").returncode == 0
    assert mine.read_bytes() == b"mine"


def test_a_file_that_comes_while_shards_are_written_stays(tmp_path):
    about = About("none", "", 1000)
    family = Family("npy", about)
    files = Files(str(tmp_path / "a.npy"), family, shard_tokens=5)
    files.begin()
    files.append(family.form(np.arange(5, dtype=np.uint32), np.array([5])))
    mine = tmp_path / "a_000007.npy"
    mine.write_bytes(b"mine")
    files.finish()
    files.publish()
    assert {one.name for one in tmp_path.iterdir()} == {
        "a_000000.npy", "a_000000.npy.json", mine.name,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["a.foo", "ids.json", "ids.csv"])
def test_a_suffix_that_names_no_format(keep, name):
    out = keep.parent / name
    done = run("encode", str(keep), "-o", str(out))
    assert done.returncode == 2
    assert f"unknown suffix {out.suffix!r} of {out}: use --format" in done.stderr.decode()
    assert not out.exists()
    assert run("encode", "-q", str(keep), "-o", str(out), "--format", "u32").returncode == 0
    assert np.fromfile(out, "<u4").tolist() == CL100K.encode(TEXT)
    assert run("decode", str(out)).stdout == TEXT  # its sidecar says the format
    os.remove(f"{out}.json")
    assert "unknown suffix" in fails("decode", str(out))
