"""No command overwrites its input, nor any other file without --force."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import streamtok
from streamtok.cli.main import main
from streamtok.jobs.sinks.by_name import Family
from streamtok.jobs.sinks.flat import About
from streamtok.jobs.sinks.shards import Files

from .test_cli import COMMAND, ENV, POSIX, fails, run

TEXT = b"one two three\nfour five\n" * 20
CL100K = streamtok.get_encoding("cl100k_base")


@pytest.fixture
def keep(tmp_path: Path) -> Path:
    path = tmp_path / "keep.txt"
    path.write_bytes(TEXT)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}


# The same file by another name.
SPELLINGS: dict[str, Callable[[Path], str]] = {
    "itself": str,
    "dots": lambda path: str(path.parent / ".." / path.parent.name / path.name),
    "relative": os.path.relpath,
    "symbolic link": lambda path: _link(path, os.symlink),
    "hard link": lambda path: _link(path, os.link),
}


def _link(path: Path, make: Callable[[Path, Path], None]) -> str:
    other = path.parent / "other.txt"
    make(path, other)
    return str(other)


@POSIX
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_encode_never_destroys_its_input(keep: Path, spelling: str, force: list[str]) -> None:
    out = SPELLINGS[spelling](keep)
    before = contents(keep.parent)
    for more in ([], ["--format", "u32"], ["--resume"]):
        assert "is also an input" in fails("encode", str(keep), "-o", out, *more, *force)
        assert contents(keep.parent) == before
    assert "is also an input" in fails("encode", str(keep), "--follow", "-o", out, *force)
    assert contents(keep.parent) == before


@POSIX
def test_standard_input_is_an_input_as_well(keep: Path) -> None:
    assert "is also an input (standard input)" in _with_files(keep, "encode", "-o", str(keep))
    command = ["encode", str(keep), "-o", "-"]
    with keep.open("ab") as file:
        done = subprocess.run(
            [*COMMAND, *command], env=ENV, stdout=file, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert b"standard output is also an input" in done.stderr
    assert keep.read_bytes() == TEXT


def _with_files(stdin: Path, *args: str) -> str:
    with stdin.open("rb") as file:
        done = subprocess.run(
            [*COMMAND, *args], env=ENV, stdin=file, capture_output=True, check=False
        )
    assert done.returncode == 1
    return done.stderr.decode()


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
def test_each_file_of_an_output_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, args: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / source).write_bytes(TEXT)
    assert "is also an input" in fails("encode", source, *args, "--force")
    assert contents(tmp_path) == {source: TEXT}


def test_the_vocabulary_is_an_input_as_well(tmp_path: Path) -> None:
    vocabulary = tmp_path / "tokenizer.json"
    assert run("convert", "gpt2", str(vocabulary), "-q").returncode == 0
    before = vocabulary.read_bytes()
    args = ["-e", str(vocabulary), "-o", str(vocabulary), "--format", "text", "--force"]
    assert "is also an input" in fails("encode", *args, stdin=b"hello")
    assert "is also an input" in fails("decode", *args, stdin=b"1 2")
    assert vocabulary.read_bytes() == before


@POSIX
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_decode_never_destroys_its_input(keep: Path, spelling: str) -> None:
    ids = keep.parent / "i.npy"
    assert run("encode", "-q", str(keep), "-o", str(ids)).returncode == 0
    before = ids.read_bytes()
    out = SPELLINGS[spelling](ids)
    assert "is also an input" in fails("decode", str(ids), "-o", out, "--force")
    assert "is also an input" in fails("decode", str(ids), "-o", f"{ids}.json", "--force")
    assert ids.read_bytes() == before


@POSIX
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_convert_and_train_never_destroy_their_input(keep: Path, spelling: str) -> None:
    vocabulary = keep.parent / "v.tiktoken"
    assert run("convert", "r50k_base", str(vocabulary), "-q").returncode == 0
    out = SPELLINGS[spelling](vocabulary)
    before = contents(keep.parent)
    to = ["--to", "tiktoken", "--force"]
    assert "is also an input" in fails("convert", str(vocabulary), out, *to)
    assert "is also an input" in fails("convert", f"{vocabulary}@gpt2", out, *to)
    train = ["train", str(keep), "--vocab-size", "300", "--to", "tiktoken", "--force", "-q", "-o"]
    assert "is also an input" in fails(*train, str(keep))
    assert "is also an input" in fails(*train, str(keep.parent / "t"), "--save-counts", str(keep))
    assert contents(keep.parent) == before


def test_convert_into_its_own_folder(tmp_path: Path) -> None:
    folder = tmp_path / "g"
    assert run("convert", "gpt2", str(folder), "--to", "gpt2", "-q").returncode == 0
    before = contents(folder)
    for source in (folder, folder / "vocab.bpe"):
        args = [str(source), str(folder), "--to", "gpt2", "--force"]
        assert "is also an input" in fails("convert", *args)
    args = [str(folder / "vocab.bpe"), str(folder / "encoder.json"), "--to", "huggingface"]
    assert "is also an input" in fails("convert", *args, "--force")
    assert contents(folder) == before


def test_two_outputs_are_not_one_file(keep: Path) -> None:
    (keep.parent / "c.bin").symlink_to("c.idx")
    args = ["encode", str(keep), "--format", "megatron", "-o", str(keep.parent / "c")]
    assert "is the same file as another output" in fails(*args)


# What is there and is not ours


OURS = ["a.npy", "a.u32", "a", "a.jsonl", "a.ds", "a.parquet", "megatron"]


@pytest.mark.parametrize("more", [[], ["--shard-tokens", "30"], ["--resume"]])
@pytest.mark.parametrize("name", OURS)
def test_a_finished_output_needs_force(
    keep: Path, name: str, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
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


@pytest.mark.parametrize(
    ("there", "args"),
    [
        ("out.npy", ["-o", "out.npy"]),
        ("out.txt", ["-o", "out.txt"]),
        ("out.bin", ["-o", "out.bin"]),
        ("out.u32", ["-o", "out.u32"]),
        ("out", ["-o", "out"]),
        ("out", ["-o", "out", "--resume"]),
        ("out.jsonl", ["-o", "out.jsonl"]),
        ("out.parquet", ["-o", "out.parquet"]),
        ("out.idx", ["-o", "out", "--format", "megatron"]),
        ("out.bin", ["-o", "out", "--format", "megatron"]),
        ("out.ds.metadata", ["-o", "out.ds"]),
        ("out.json", ["-o", "out"]),
    ],
)
def test_what_is_not_ours_needs_force(
    keep: Path, monkeypatch: pytest.MonkeyPatch, there: str, args: list[str]
) -> None:
    monkeypatch.chdir(keep.parent)
    data = b"somebody's only copy: 1, 2, 3!"  # no multiple of 4 bytes
    Path(there).write_bytes(data)
    before = contents(keep.parent)
    assert fails("encode", str(keep), *args) == f"{there} exists; --force replaces it"
    assert contents(keep.parent) == before
    assert run("encode", str(keep), *args, "--force").returncode == 0
    assert Path(there).read_bytes() != data


def test_a_sidecar_by_itself_holds_nothing(keep: Path) -> None:
    out = keep.parent / "out.npy"
    for _ in range(2):
        assert run("encode", "-q", str(keep), "-o", str(out)).returncode == 0
        out.unlink()


def test_an_empty_file_holds_nothing_to_lose(keep: Path) -> None:
    out = keep.parent / "out.npy"
    out.touch()
    assert run("encode", "-q", str(keep), "-o", str(out)).returncode == 0
    assert np.load(out).tolist() == CL100K.encode(TEXT)


def test_decode_replaces_nothing(keep: Path) -> None:
    ids, back = keep.parent / "i.npy", keep.parent / "back"
    assert run("encode", "-q", str(keep), "-o", str(ids)).returncode == 0
    back.touch()  # holds nothing
    assert run("decode", str(ids), "-o", str(back)).returncode == 0
    for other in (TEXT, b"x"):
        back.write_bytes(other)
        assert "exists; --force replaces it" in fails("decode", str(ids), "-o", str(back))
        assert back.read_bytes() == other
    assert run("decode", str(ids), "-o", str(back), "--force").returncode == 0
    assert back.read_bytes() == TEXT
    assert not list(keep.parent.glob(".streamtok*"))


@pytest.mark.parametrize(
    ("name", "to"),
    [
        ("v.tiktoken", "tiktoken"),
        ("tokenizer.json", "huggingface"),
        ("g", "gpt2"),
    ],
)
def test_convert_replaces_a_vocabulary_with_force_only(tmp_path: Path, name: str, to: str) -> None:
    out = tmp_path / name
    command = ["convert", "gpt2", str(out), "--to", to, "-q"]
    assert run(*command).returncode == 0
    file = out / "encoder.json" if out.is_dir() else out
    before = file.read_bytes()
    assert "exists; --force replaces it" in fails("convert", "cl100k_base", *command[2:])
    assert file.read_bytes() == before
    file.write_bytes(b'{"name": "package"}')
    assert "exists; --force replaces it" in fails(*command)
    assert file.read_bytes() == b'{"name": "package"}'
    assert run(*command, "--force").returncode == 0
    assert file.read_bytes() == before


def test_train_replaces_a_vocabulary_with_force_only(keep: Path) -> None:
    out = keep.parent / "v.tiktoken"
    command = ["train", str(keep), "-q", "-o", str(out), "--vocab-size"]
    assert run(*command, "260").returncode == 0
    before = out.read_bytes()
    for data in (before, b"my notes"):
        out.write_bytes(data)
        assert f"{out} exists; --force replaces it" in fails(*command, "261")
        assert out.read_bytes() == data
    assert run(*command, "260", "--force").returncode == 0
    assert out.read_bytes() == before


# Devices, pipes and descriptors


@POSIX
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_an_open_descriptor_is_written_not_replaced(keep: Path, name: str) -> None:
    if not os.path.exists(name):
        name = "/dev/stdout"
    log = keep.parent / "log"
    log.write_bytes(b"before\n")
    command = [*COMMAND, "encode", "-q", str(keep), "-o", name, "--format", "text"]
    with log.open("ab") as file:
        assert subprocess.run(command, env=ENV, stdout=file, check=False).returncode == 0
    ids = "".join(f"{one}\n" for one in CL100K.encode(TEXT)).encode()
    assert log.read_bytes() == b"before\n" + ids
    assert sorted(contents(keep.parent)) == ["keep.txt", "log"]


@POSIX
def test_a_vocabulary_does_not_replace_a_device(keep: Path) -> None:
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
def test_devices_need_no_force(keep: Path) -> None:
    assert run("encode", "-q", str(keep), "-o", "/dev/null").returncode == 0
    assert not os.path.exists("/dev/null.json")


# Shards of an earlier run


@pytest.mark.parametrize("more", [[], ["--resume"]])
def test_a_shorter_run_with_force_removes_the_shards_behind_it(
    tmp_path: Path, more: list[str]
) -> None:
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


@pytest.mark.parametrize("more", [[], ["--resume"]])
@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("a_000000.npy", "npy"),
        ("a_000007.npy", "npy"),
        ("a_000007.npy.json", "npy"),
        ("a_000007.npy", "parquet"),
        ("a_000007.idx", "megatron"),
        ("a_000007.bin", "megatron"),
    ],
)
def test_a_file_with_the_name_of_a_shard_is_refused_and_stays(
    tmp_path: Path, name: str, chosen: str, more: list[str]
) -> None:
    if chosen == "parquet":
        pytest.importorskip("pyarrow")
    suffix = {"megatron": "bin"}.get(chosen, "npy")
    command = ["encode", "-q", "--lines", "-o", str(tmp_path / f"a.{suffix}"), *more]
    command += ["--format", chosen, "--shard-tokens", "20"]
    mine = tmp_path / name
    mine.write_bytes(b'{"not": "ours"}')
    text = tmp_path / "text"
    text.write_bytes(TEXT)
    before = contents(tmp_path)
    said = fails(*command, str(text))
    assert f"{name} exists; --force" in said
    assert contents(tmp_path) == before
    mine.unlink()
    assert run(*command, str(text)).returncode == 0


def test_force_removes_no_shard_without_a_sidecar(tmp_path: Path) -> None:
    mine = tmp_path / "a_000007.npy"
    mine.write_bytes(b"mine")
    command = ["encode", "-q", "-o", str(tmp_path / "a.npy"), "--shard-tokens", "9", "--force"]
    assert run(*command, stdin=b"few words").returncode == 0
    assert mine.read_bytes() == b"mine"


def test_a_file_that_comes_while_shards_are_written_stays(tmp_path: Path) -> None:
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
def test_a_suffix_that_names_no_format(keep: Path, name: str) -> None:
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
