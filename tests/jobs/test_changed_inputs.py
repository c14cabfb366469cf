"""Inputs that change: what is the same is compared by contents, and a change while reading stops.

The model is one sentence: a command that succeeds has encoded exactly what the file held when the
command began. `touch` changes nothing; whatever changes the contents stops the command, which
names the file.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import streamtok
from streamtok.cli.main import main
from streamtok.jobs.parts.part import read_part, run_part
from streamtok.jobs.parts.plan import plan
from streamtok.jobs.sources.fingerprint import fingerprint
from streamtok.jobs.sources.parquet_texts import ParquetTexts

LINES = [f"line {i} of the text, with words" for i in range(2000)]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
OTHER = TEXT.replace(b"text", b"copy")
assert len(OTHER) == len(TEXT)


def packed(data: bytes) -> bytes:
    return gzip.compress(data, 0, mtime=0)  # stored: the size does not depend on the text


def rows(data: bytes) -> bytes:
    return b"".join(
        json.dumps({"text": line}).encode() + b"\n" for line in data.decode().splitlines()
    )


def grow(path: Path, other: bytes) -> None:
    with path.open("ab") as file:
        file.write(b'{"text": "more"}\n')


def shrink(path: Path, other: bytes) -> None:
    os.truncate(path, path.stat().st_size // 2)


def replace(path: Path, other: bytes) -> None:
    new = path.with_name("new")
    new.write_bytes(other)
    os.replace(new, path)


def rewrite(path: Path, other: bytes) -> None:
    path.write_bytes(other)


def remove(path: Path, other: bytes) -> None:
    path.unlink()


def touch(path: Path, other: bytes) -> None:
    os.utime(path, (1, 1))


def copy_back(path: Path, other: bytes) -> None:
    """The same contents in another file."""
    shutil.copy(path, path.with_name("new"))
    os.replace(path.with_name("new"), path)


CHANGES = [grow, shrink, replace, rewrite, remove]
HARMLESS = [touch, copy_back]


class ChangeAtRead:
    """Calls `change` once, after the n-th block of the file at `path` was read."""

    def __init__(self, path: Path, at: int, change: Callable[[], None]):
        self._inode = path.stat().st_ino
        self._left = at
        self._change = change
        self.has_changed = False

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        read = os.read

        def reading(fd: int, size: int) -> bytes:
            data = read(fd, size)
            if os.fstat(fd).st_ino == self._inode:
                self.step()
            return data

        texts = ParquetTexts.texts

        def yielding(source: ParquetTexts, *more: Any) -> Iterator[Any]:
            for found in texts(source, *more):
                self.step()
                yield found

        monkeypatch.setattr(os, "read", reading)
        monkeypatch.setattr(ParquetTexts, "texts", yielding)

    def step(self) -> None:
        self._left -= 1
        if self._left == 0:
            self.has_changed = True
            self._change()


KINDS: dict[str, tuple[Callable[[bytes], bytes], list[str]]] = {
    "text": (bytes, []),
    "lines": (bytes, ["--lines"]),
    "jsonl": (rows, ["--jsonl", "text"]),
    "gzip": (packed, ["--lines"]),
}


@pytest.mark.parametrize("at", [1, 5])
@pytest.mark.parametrize("change", [*CHANGES, *HARMLESS])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", ["encode", "count"])
def test_a_file_that_changes_while_it_is_read(
    command: str,
    kind: str,
    change: Callable[[Path, bytes], None],
    at: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make, more = KINDS[kind]
    path, out = tmp_path / "input", tmp_path / "out.u32"
    path.write_bytes(make(TEXT))
    args = [command, "-e", "gpt2", str(path), "--chunk-size", "1k", *more]
    output = ["-q", "-o", str(out)] if command == "encode" else []
    assert main([*args, *output]) == 0
    good = out.read_bytes() if output else capsys.readouterr().out.encode()
    if output:
        out.unlink()
    hook = ChangeAtRead(path, at, lambda: change(path, make(OTHER)))
    with monkeypatch.context() as patch:
        hook.install(patch)
        code = main([*args, *output])
    said = capsys.readouterr()
    assert hook.has_changed
    if change in HARMLESS:
        assert (code, said.err) == (0, "")
        assert (out.read_bytes() if output else said.out.encode()) == good
        return
    assert code == 1
    assert said.err.count("\n") == 1
    assert f"{path}: it has changed while it was read: " in said.err
    assert not out.exists()
    if change is shrink:
        before = len(make(TEXT))
        assert f"it had {before:,} bytes, now {before // 2:,}" in said.err


@pytest.mark.parametrize("change", [*CHANGES, *HARMLESS])
@pytest.mark.parametrize("kind", ["lines", "gzip", "parquet"])
def test_a_file_that_changes_while_a_part_is_read(
    kind: str,
    change: Callable[[Path, bytes], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "input"
    if kind == "parquet":
        options: dict[str, Any] = {"parquet": "text"}
        path.write_bytes(table(LINES))
        other = table([line.replace("text", "copy") for line in LINES])
    else:
        options, make = {"lines": True}, KINDS[kind][0]
        path.write_bytes(make(TEXT))
        other = make(OTHER)
    made = plan(path, tmp_path / "out", encoding="gpt2", part_size=50_000, **options)
    hook = ChangeAtRead(path, 1, lambda: change(path, other))
    hook.install(monkeypatch)
    if change in HARMLESS:
        assert sum(run_part(made, i).documents for i in range(len(made))) == len(LINES)
    else:
        said = "has changed|is gone|was removed"
        with pytest.raises((streamtok.StreamtokError, OSError), match=said):
            run_part(made, 0)
        assert read_part(made, 0) is None
    assert hook.has_changed


def table(texts: list[str]) -> bytes:
    import io

    import pyarrow as pa
    from pyarrow.parquet import write_table

    file = io.BytesIO()
    write_table(pa.table({"text": texts}), file, use_dictionary=False, compression=None)
    return file.getvalue()


@pytest.mark.parametrize("change", [*CHANGES, *HARMLESS])
@pytest.mark.parametrize("command", ["encode", "count"])
def test_a_table_that_changes_while_it_is_read(
    command: str,
    change: Callable[[Path, bytes], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, out = tmp_path / "input", tmp_path / "out.u32"
    path.write_bytes(table(LINES))
    other = table([line.replace("text", "copy") for line in LINES])
    hook = ChangeAtRead(path, 1, lambda: change(path, other))
    hook.install(monkeypatch)
    output = ["-q", "-o", str(out)] if command == "encode" else []
    code = main([command, "-e", "gpt2", str(path), "--parquet", "text", *output])
    assert hook.has_changed
    assert code == (change not in HARMLESS)
    if code:
        assert "it has changed while it was read" in capsys.readouterr().err
        assert not out.exists()


def test_files_of_the_kernel_have_no_size() -> None:
    for name in ("/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled"):
        if os.path.exists(name):
            assert main(["count", "-e", "gpt2", name]) == 0


@pytest.mark.parametrize("size", [0, 1, 8191, 8192, 65_535, 65_536, 65_537, 1_000_000])
def test_the_fingerprint_of_a_file(size: int, tmp_path: Path) -> None:
    """All of a small file counts, and the beginning and the end of a large one."""
    path = tmp_path / "input"
    data = os.urandom(size)
    path.write_bytes(data)
    first = fingerprint(str(path))
    assert first.size == size
    os.utime(path, (1, 1))
    assert fingerprint(str(path)) == first
    places = {0, size // 2, size - 1} if size <= 1 << 16 else {0, size - 1}
    for place in places if size else ():
        changed = bytearray(data)
        changed[place] ^= 1
        path.write_bytes(changed)
        assert fingerprint(str(path)) != first
    path.write_bytes(data + b"x")
    assert fingerprint(str(path)) != first
