"""Inputs that change: what is the same is compared by contents, and a change while reading stops.

The model is one sentence: a command that succeeds has encoded exactly what the file held when the
command began. `touch` changes nothing; whatever changes the contents stops the command, which
names the file.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.parquet import write_table

from streamtok.cli.main import main
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


def table(data: bytes) -> bytes:
    file = io.BytesIO()
    rows = pa.table({"text": data.decode().splitlines()})
    write_table(rows, file, use_dictionary=False, compression=None)
    return file.getvalue()


KINDS: dict[str, tuple[Callable[[bytes], bytes], list[str]]] = {
    "text": (bytes, []),
    "lines": (bytes, ["--lines"]),
    "jsonl": (rows, ["--jsonl", "text"]),
    "gzip": (packed, ["--lines"]),
    "parquet": (table, ["--parquet", "text"]),
}
DOORS = {
    "encode": ["encode", "-q", "-o", "out/ids.u16", "--chunk-size", "1k"],
    "count": ["count", "--chunk-size", "1k"],
    "parts": ["encode", "-q", "-o", "out", "--task", "0/1", "--part-size", "50000"],
}


@pytest.mark.parametrize("change", [*CHANGES, *HARMLESS])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("door", "at"), [(one, 1) for one in DOORS] + [("encode", 5)])
def test_a_file_that_changes_while_it_is_read(
    door, at, kind, change, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    make, more = KINDS[kind]
    path, out = Path("input"), Path("out")

    def run():
        """(the exit code, the message, what was written or printed)."""
        out.mkdir()
        code = main([*DOORS[door], "-e", "gpt2", str(path), *more])
        said = capsys.readouterr()
        ids = b"".join(one.read_bytes() for one in sorted(out.glob("*.u16")))
        shutil.rmtree(out)
        return code, said.err, ids or said.out.encode()

    path.write_bytes(make(TEXT))
    good = run()
    assert good[0] == 0
    hook = ChangeAtRead(path, 1 if kind == "parquet" else at, lambda: change(path, make(OTHER)))
    with monkeypatch.context() as patch:
        hook.install(patch)
        found = run()
    assert hook.has_changed
    if change in HARMLESS:
        assert found == good
        return
    code, said, ids = found
    assert (code, ids) == (1, b"")
    if door == "parts":
        assert re.search("has changed|it changed|was removed", said)
        return
    assert said.count("\n") == 1
    assert "input: it changed while it was being read: " in said
    if change is shrink and kind != "parquet":
        before = len(make(TEXT))
        assert f"it had {before:,} bytes, now {before // 2:,}" in said


def test_files_of_the_kernel_have_no_size():
    for name in ("/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled"):
        if os.path.exists(name):
            assert main(["count", "-e", "gpt2", name]) == 0


@pytest.mark.parametrize("size", [0, 1, 8191, 8192, 65_535, 65_536, 65_537, 1_000_000])
def test_the_fingerprint_of_a_file(size, tmp_path):
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
