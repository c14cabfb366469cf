"""Files of ids: they read back at any cut, and no incomplete file is ever visible."""

from __future__ import annotations

import itertools
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamtok import files
from streamtok.jobs.sinks.by_name import Family, choose_format, make_sink
from streamtok.jobs.sinks.flat import About, format_text
from streamtok.jobs.sinks.format_table import read_ids
from streamtok.jobs.sinks.outputs import Pipe, open_output

ID_LISTS = st.lists(st.integers(0, 0xFFFF) | st.integers(0, 0xFFFFFFFE), max_size=40)


class Memory:
    """An output in memory."""

    is_file = True
    name = "memory"

    def __init__(self) -> None:
        self.data = bytearray()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write(self, data: bytes | memoryview) -> None:
        self.data += data

    def patch(self, data: bytes) -> None:
        self.data[: len(data)] = data


def formed(chosen: str, max_id: int, ids: Any, ends: Any = ()) -> Any:
    family = Family(chosen, About("", "", max_id))
    return family.form(np.array(ids, np.uint32), np.array(ends, np.int64))


def written(ids: list[int], chosen: str, max_id: int, step: int = 7) -> bytes:
    memory = Memory()
    sink = make_sink(memory, chosen, max_id)
    for i in range(0, len(ids), step):
        sink.write(formed(chosen, max_id, ids[i : i + step]))
        sink.write(formed(chosen, max_id, []))
    sink.finish()
    return bytes(memory.data)


def pieces(data: bytes, cuts: list[int]) -> Iterator[memoryview]:
    """The data cut at these places, in one buffer that each block overwrites, as files give it."""
    borders = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(borders):
        if start < end:
            block = bytearray(data[start:end])
            yield memoryview(block)
            block[:] = b"\xaa" * len(block)


def read(data: bytes, chosen: str, cuts: list[int] | None = None) -> list[int]:
    return [int(one) for ids in read_ids(pieces(data, cuts or []), chosen) for one in ids]


@pytest.mark.parametrize("chosen", ["u16", "u32", "npy", "text"])
@given(ids=ID_LISTS, cuts=st.lists(st.integers(0, 10**6), max_size=6))
def test_what_is_written_reads_back_at_every_cut(chosen, ids, cuts):
    if chosen == "u16":
        ids = [one & 0xFFFF for one in ids]
    assert read(written(ids, chosen, max(ids, default=0)), chosen, cuts) == ids


@given(ids=st.lists(st.integers(0, 0xFFFFFFFE), max_size=600))
def test_text_is_one_id_a_line(ids):
    expected = "".join(f"{one}\n" for one in ids).encode()
    assert format_text(np.array(ids, dtype=np.uint32)) == expected


def test_text_takes_python_lists():
    assert read(b"[1, 2,3]\r\n 4\t5", "text") == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("data", "chosen", "message"),
    [
        (b"12 x3", "text", r"byte 3: expected a decimal id, found b'x'"),
        (b"1 -3", "text", r"byte 2: expected a decimal id, found b'-'"),
        (b"1.5", "text", r"byte 1: expected a decimal id, found b'\.'"),
        (b"9" * 50, "text", "50 digits"),
        (b"9" * 50 + b" 1", "text", "50 digits"),
        (b"\x01\x00\x02", "u16", "ends inside an id: found 1 of its 2 bytes"),
        (b"\x01\x00\x02\x00\x01", "u32", "ends inside an id: found 1 of its 4 bytes"),
        (b"", "npy", "its header is damaged"),
        (b"\x93NUMPY\x01\x00\x76", "npy", "its header is damaged"),
        (b"hello world, this is text", "npy", "not an npy file"),
        (b"\x93NUMPY\x09\x00" + b" " * 120, "npy", "not an npy file"),
        (written([1, 2, 3], "npy", 10)[:-2], "npy", "3 ids, but the file has only 2"),
        (written([1, 2, 3], "npy", 10) + b"\1\0", "npy", "3 ids, but the file has more"),
    ],
)
def test_bad_input_is_named(data, chosen, message):
    with pytest.raises(ValueError, match=message):
        read(data, chosen)


def test_position_of_a_bad_byte_is_that_in_the_input():
    with pytest.raises(ValueError, match="byte 11"):
        read(b"123 456 78 x", "text", [2, 5, 9])


# Formats by name


@pytest.mark.parametrize(
    ("wanted", "path", "max_id", "chosen"),
    [
        (None, "-", 10, "text"),
        (None, "a.npy", 10, "npy"),
        (None, "a.NPY", 10, "npy"),
        (None, "a.txt", 10, "text"),
        (None, "a.u32", 10, "u32"),
        (None, "a.bin", 65_535, "u16"),
        (None, "a.bin", 65_536, "u32"),
        (None, "a", 65_536, "u32"),
        ("text", "a.npy", 10, "text"),
        ("u32", "-", 10, "u32"),
    ],
)
def test_format_by_suffix(wanted, path, max_id, chosen):
    assert choose_format(wanted, path, max_id) == chosen


@pytest.mark.parametrize(("wanted", "path"), [("u16", "-"), (None, "a.u16")])
def test_u16_must_fit(wanted, path):
    with pytest.raises(ValueError, match="this vocabulary has 65536"):
        choose_format(wanted, path, 65_536)


def test_npy_needs_a_file():
    with pytest.raises(ValueError, match="cannot be written to standard output"):
        make_sink(open_output("-"), "npy", 10)


# Files


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "out"
    with open_output(str(path)) as output:
        output.write(b"hello")
        (hidden,) = names(tmp_path)
        assert hidden.startswith(".streamtok-")
        output.write(memoryview(b" world"))
        output.patch(b"J")
        output.write(b"!")
    assert path.read_bytes() == b"Jello world!"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_after_an_exception(tmp_path, kind):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(kind), open_output(str(path)) as output:  # noqa: PT012
        output.write(b"new")
        raise kind
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["out"]


def test_mode_of_the_old_file_is_kept_and_a_new_one_obeys_the_umask(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"")
    old.chmod(0o640)
    before = os.umask(0o027)
    try:
        for path in (old, new):
            with open_output(str(path)) as output:
                output.write(b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert stat.S_IMODE(new.stat().st_mode) == 0o640


def test_a_symbolic_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "file", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    target.chmod(0o640)
    with open_output(str(link)) as output:
        output.write(b"new")
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert target.read_bytes() == b"new"


def test_a_name_of_255_bytes(tmp_path):
    path = tmp_path / ("x" * 255)
    with open_output(str(path)) as output:
        output.write(b"x")
    assert path.read_bytes() == b"x"


def test_errors_name_the_file_that_the_user_named(tmp_path):
    for path, kind in [
        (tmp_path / "no folder" / "out", FileNotFoundError),
        (tmp_path, IsADirectoryError),
    ]:
        with pytest.raises(kind) as caught:
            open_output(str(path))
        assert caught.value.filename == str(path)
    assert names(tmp_path) == []


def test_a_file_that_cannot_be_made_is_not_remembered(tmp_path):
    """What is remembered is removed at exit: a service would remember more and more."""
    missing = os.fspath(tmp_path / "missing" / "out")
    before = set(files._unpublished)
    with pytest.raises(FileNotFoundError) as caught:
        open_output(missing)
    assert caught.value.filename == missing
    assert files._unpublished == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_device_is_written_as_it_is():
    with pytest.raises(OSError, match="No space left") as caught:  # noqa: SIM117
        with open_output("/dev/full") as output:
            output.write(b"x")
    assert caught.value.filename == "/dev/full"


def test_a_pipe_that_does_not_block_is_waited_for():
    import threading

    source, target = os.pipe()
    os.set_blocking(target, False)
    data = os.urandom(1 << 20)
    with Pipe(target, "pipe") as pipe:
        writer = threading.Thread(target=pipe.write, args=(data,))
        writer.start()
        received = b""
        with open(source, "rb", buffering=0) as file:
            while len(received) < len(data):
                received += file.read(1 << 16)
        writer.join()
    assert received == data


@pytest.mark.parametrize("shortest", [0, 1])
def test_many_documents_at_once_as_json_lines(shortest):
    """However the ids fall into calls, and whether or not some documents have none."""
    rng = np.random.default_rng(shortest)
    lengths = rng.integers(shortest, 9, 1_000)
    ids = rng.integers(0, 10 ** rng.integers(1, 10, lengths.sum()), dtype=np.uint32)
    ends = np.cumsum(lengths)
    rows = [ids[end - size : end].tolist() for end, size in zip(ends, lengths, strict=True)]
    expected = "".join(json.dumps({"input_ids": row}, separators=(",", ":")) + "\n" for row in rows)
    for most in (3, 700, 100_000):
        memory = Memory()
        sink = make_sink(memory, "jsonl", 0xFFFFFFFE)
        at = done = 0
        while done < len(ends):
            stop = min(len(ids), at + int(rng.integers(1, most)))
            # An end at the place of a cut may come with what is before it, or what is behind.
            last = int(np.searchsorted(ends, stop, rng.choice(["left", "right"])))
            last = len(ends) if stop == len(ids) else last
            sink.write(formed("jsonl", 0xFFFFFFFE, ids[at:stop], ends[done:last] - at))
            at, done = stop, last
        sink.finish()
        assert bytes(memory.data).decode() == expected
