"""What `load` keeps: used again, made again when damaged, and never a reason to fail."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import streamtok
from streamtok import VocabularyError, formats
from streamtok.formats import detection, load_cache

from ..long.loader_fuzz import small_encoding
from .test_packed import forged_parts


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tokenizer.json that is large enough to be kept, for a cache in `tmp_path / "cache"`."""
    monkeypatch.setenv("STREAMTOK_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "tokenizer.json"
    formats.save_huggingface(small_encoding(), path)
    path.write_bytes(path.read_bytes() + b" " * load_cache.MIN_BYTES)
    return path


def entries(file: Path) -> list[Path]:
    folder = file.parent / "cache" / "streamtok"
    return sorted(folder.iterdir()) if folder.is_dir() else []


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Gets a line for each file that is really read."""
    lines: list[str] = []
    read = detection.read_json

    def listed(data: bytes, source: str, name: str) -> streamtok.Encoding:
        lines.append(name)
        return read(data, source, name)

    monkeypatch.setitem(detection._READERS, "json", listed)
    return lines


def test_the_second_load_reads_what_the_first_kept(file, reads):
    first, second = streamtok.load(file), streamtok.load(file)
    assert reads == ["tokenizer"]
    assert len(entries(file)) == 1
    assert second.digest == first.digest
    assert second.name == "tokenizer"
    assert streamtok.load(file, name="other").name == "other"
    assert streamtok.load(file.parent).digest == first.digest
    assert reads == ["tokenizer"]
    assert streamtok.load(file, cache=False).digest == first.digest
    assert streamtok.load(file.parent, cache=False).digest == first.digest
    assert len(reads) == 3
    if os.name == "posix":
        assert entries(file)[0].stat().st_mode & 0o77 == 0


def test_other_contents_and_other_code_are_other_entries(file, reads, monkeypatch):
    streamtok.load(file)
    value = json.loads(file.read_bytes())
    value["added_tokens"] = []
    file.write_text(json.dumps(value) + " " * load_cache.MIN_BYTES)
    assert streamtok.load(file).special_tokens_set == set()
    assert len(entries(file)) == 2
    monkeypatch.setattr(load_cache, "_code", lambda: b"newer")
    streamtok.load(file)
    assert len(entries(file)) == len(reads) == 3


@pytest.mark.parametrize("value", ["off", "OFF", ""])
def test_it_can_be_switched_off(file, reads, monkeypatch, value):
    monkeypatch.setenv("STREAMTOK_CACHE", value)
    monkeypatch.chdir(file.parent)
    assert streamtok.load(file).digest == streamtok.load(file).digest
    assert len(reads) == 2
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_small_files_are_not_kept(file):
    file.write_bytes(file.read_bytes().strip())
    streamtok.load(file)
    assert entries(file) == []


def test_errors_are_those_of_the_file(file):
    file.write_bytes(file.read_bytes().replace(b'"BPE"', b'"Morphemes"', 1))
    for _ in range(2):
        with pytest.raises(VocabularyError, match=r"tokenizer\.json: model: .*Morphemes"):
            streamtok.load(file)
    assert entries(file) == []


def test_a_folder_that_cannot_be_written_to(file, reads, monkeypatch):
    (file.parent / "cache").write_bytes(b"a file")
    assert streamtok.load(file).digest == streamtok.load(file).digest
    assert len(reads) == 2

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("STREAMTOK_CACHE", str(file.parent / "other"))
    monkeypatch.setattr(load_cache.os, "replace", full)
    streamtok.load(file)
    assert list((file.parent / "other" / "streamtok").iterdir()) == []


def test_the_oldest_go(file, monkeypatch):
    streamtok.load(file)
    (entry,) = entries(file)
    size = entry.stat().st_size
    monkeypatch.setattr(load_cache, "MAX_BYTES", 3 * size)
    folder = entry.parent
    names = [f"{letter * 64}.streamtok" for letter in "abcd"]
    for age, name in enumerate(names):
        other = folder / name
        other.write_bytes(bytes(size))
        os.utime(other, (time.time() - 1000 * age - 1000,) * 2)
    old, new = (f"{names[0]}.1.{number}.part" for number in (1, 2))
    for name, age in ((old, 10_000), (new, 10)):
        (folder / name).write_bytes(b"")
        os.utime(folder / name, (time.time() - age,) * 2)
    not_ours = {"mine-v1.streamtok", "download.iso.part", f"{'a' * 63}.streamtok", "of another"}
    for name in not_ours:
        (folder / name).write_bytes(bytes(9 * size))
        os.utime(folder / name, (0, 0))
    os.utime(entry, (0, 0))
    streamtok.load(file)  # uses the entry, which is the newest now
    load_cache._remove_oldest(str(folder))
    left = {path.name for path in entries(file)}
    assert left == {entry.name, names[0], names[1], new} | not_ours


def changed(entry: Path, change: Callable[[bytes], bytes]) -> None:
    entry.write_bytes(change(entry.read_bytes()))


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def forged(_: bytes) -> bytes:
    """Its checksums are right, but a token is not the two that it is said to be made of."""
    return forged_parts(small_encoding(), random.Random(2))


def moved(entry: Path, make: Callable[[Path], object]) -> None:
    """The entry has another place, and something else is in its own."""
    real = entry.parents[2] / "real"
    entry.rename(real)
    make(real)


# What becomes of an entry; in a folder of which others may be the masters.
SPOILED: dict[str, Callable[[Path], object]] = {
    "cut": lambda entry: changed(entry, lambda data: data[: len(data) // 2]),
    "flipped": lambda entry: changed(entry, flipped),
    "empty": lambda entry: changed(entry, lambda _: b""),
    "forged": lambda entry: changed(entry, forged),
    "a folder": lambda entry: [entry.unlink(), entry.mkdir()],
}
if os.name == "posix":  # owners, modes and FIFOs
    SPOILED |= {
        "written by the group": lambda entry: entry.chmod(0o770),
        "written by others": lambda entry: entry.chmod(0o702),
        "folder of the group": lambda entry: entry.parent.chmod(0o770),
        "folder of others": lambda entry: entry.parent.chmod(0o702),
        "a FIFO": lambda entry: moved(entry, lambda _: os.mkfifo(entry)),
        "a link": lambda entry: moved(entry, entry.symlink_to),
        "a second link": lambda entry: moved(entry, entry.hardlink_to),
        "folder that is a link": lambda entry: [
            entry.parent.rename(victim := entry.parents[2] / "victim"),
            entry.parent.symlink_to(victim),
        ],
    }
if os.name == "posix" and os.geteuid() == 0:
    SPOILED |= {
        "of another user": lambda entry: os.chown(entry, 12345, 12345),
        "folder of another user": lambda entry: os.chown(entry.parent, 12345, 12345),
    }


@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_entry_is_not_used(file, reads, how):
    expected = streamtok.load(file).encode("the ab abc")
    (entry,) = entries(file)
    sound = entry.read_bytes()
    SPOILED[how](entry)
    real = file.parent / "real"
    before = real.read_bytes() if real.exists() else b""
    assert streamtok.load(file).encode("the ab abc") == expected
    assert len(reads) == 2
    assert not before or real.read_bytes() == before
    if how in ("cut", "flipped", "empty", "forged"):  # made again
        assert entry.read_bytes() == sound
        assert streamtok.load(file).encode("the ab abc") == expected
        assert len(reads) == 2


def test_default_folders(monkeypatch, tmp_path):
    monkeypatch.delenv("STREAMTOK_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    expected = {
        "linux": tmp_path / "xdg" / "streamtok",
        "darwin": tmp_path / "Library" / "Caches" / "streamtok",
        "win32": tmp_path / "local" / "streamtok",
    }
    for platform, folder in expected.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert load_cache.cache_folder() == str(folder)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert load_cache.cache_folder() == str(tmp_path / ".cache" / "streamtok")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.delenv("LOCALAPPDATA")
    assert load_cache.cache_folder() is None


def test_several_processes_at_once(file):
    code = "import sys, streamtok; print(streamtok.load(sys.argv[1]).digest)"
    command = [sys.executable, "-c", code, str(file)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    found = {process.communicate(timeout=120)[0].strip() for process in running}
    assert found == {formats.load(file, cache=False).digest}
    assert len(entries(file)) == 1
