"""Objects: what is written is read, nothing is seen half, and what fails is tried again."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import fsspec
import pytest

from streamtok.errors import MissingLibraryError
from streamtok.parallel import threads
from streamtok.stores import objects, places, retry
from streamtok.stores.object_reader import ObjectReader, read_blocks
from streamtok.stores.urls import check_writable, is_url, join

from ..live_threads import Threads, refused, stillborn

DATA = random.Random(4).randbytes(3 << 20)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("s3://b/k", True), ("hf://datasets/x", True), ("C://x", False), ("a/b", False), ("-", False)],
)
def test_what_is_a_url(name: str, expected: bool) -> None:
    assert is_url(name) is expected


def test_names_are_joined() -> None:
    assert join("s3://b/k/", "x", "y") == "s3://b/k/x/y"
    assert join("a", "x") == os.path.join("a", "x")


def test_outputs_need_a_store_without_half_objects() -> None:
    check_writable("gs://b/k")
    with pytest.raises(OSError, match=r"outputs can be paths, or URLs of s3://"):
        check_writable("http://host/x")
    with pytest.raises(IsADirectoryError):
        check_writable("s3://b/")


class Passing(Exception):
    """What passes."""


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST", 0.0)
    monkeypatch.setattr(retry, "_LONGEST", 0.0)


@pytest.mark.usefixtures("no_pauses")
def test_what_passes_is_tried_again() -> None:
    left = [Passing(), OSError("cut"), asyncio.TimeoutError(), http_error(503), http_error(429)]

    def request() -> int:
        if left:
            raise left.pop()
        return 5

    assert retry.retried("s3://b/k", request) == 5


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError("b/k"), FileNotFoundError),
        (PermissionError("b/k"), PermissionError),
        (NotImplementedError(), OSError),
        (400, OSError),
        (412, FileExistsError),
    ],
)
def test_what_will_not_pass_is_not(error: Any, kind: type[OSError]) -> None:
    seen = []

    def request() -> None:
        seen.append(1)
        raise http_error(error) if isinstance(error, int) else error

    with pytest.raises(kind) as caught:
        retry.retried("s3://b/k", request)
    assert len(seen) == 1
    assert caught.value.filename == "s3://b/k"


def http_error(status: int) -> Exception:
    error = OSError(errno.EINVAL, "an answer")
    error.response = {"ResponseMetadata": {"HTTPStatusCode": status}}  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize("kind", ["status", "status_code", "response"])
@pytest.mark.parametrize(
    ("status", "final"), [(403, True), (404, True), (429, False), (503, False)]
)
def test_the_status_decides(kind: str, status: int, final: bool) -> None:
    error = Passing()
    value = SimpleNamespace(status_code=status) if kind == "response" else status
    setattr(error, kind, value)
    assert retry.is_final(error) is final


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(retry.PATIENCE, "0")
    with pytest.raises(OSError, match="the store failed: it is away") as caught:
        retry.retried("s3://b/k", lambda: (_ for _ in ()).throw(Passing("it is away")))
    assert caught.value.errno == errno.EIO
    monkeypatch.setenv(retry.PATIENCE, "soon")
    with pytest.raises(OSError, match="number of seconds, not 'soon': 'STREAMTOK_STORE_PATIENCE'"):
        retry.patience()


def test_a_reader_that_is_closed_does_not_wait_for_the_store() -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(OSError, match="it is away"):
        retry.retried("s3://b/k", lambda: (_ for _ in ()).throw(Passing("it is away")), stopped)


@pytest.mark.parametrize("kind", ["memory", "s3"])
def test_objects(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(kind)
    url = f"{folder}/a/object"
    with pytest.raises(FileNotFoundError):
        objects.describe(url)
    assert not places.exists(url)
    assert objects.names_in(folder) == []
    objects.remove(url)
    places.create(url, [b"fi", b"rst"])
    about = objects.describe(url)
    assert about.size == 5
    with pytest.raises(FileExistsError):
        places.create(url, [b"second"])
    assert objects.read_whole(url) == b"first"
    objects.write(url, b"second")
    assert objects.describe(url) != about
    assert objects.read_range(url, 1, 3) == b"ec"
    path = tmp_path / "file"
    path.write_bytes(DATA)
    objects.upload(str(path), f"{folder}/b")
    with pytest.raises(FileExistsError):
        objects.upload(str(path), f"{folder}/b", is_new=True)
    assert sorted(objects.names_in(folder)) == ["a", "b"]
    assert objects.expand(f"{folder}/**") == [url, f"{folder}/b"]
    assert (
        b"".join(read_blocks(f"{folder}/b", objects.describe(f"{folder}/b"), 7, None)) == (DATA[7:])
    )
    objects.remove(url)
    assert not places.exists(url)


def test_a_store_that_cannot_refuse(
    memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "is_hub", lambda url: True)
    (tmp_path / "file").write_bytes(b"second")
    places.create(f"{memory}/x", [b"first"])
    with pytest.raises(FileExistsError):
        places.create(f"{memory}/x", [b"second"])
    with pytest.raises(FileExistsError):
        objects.upload(str(tmp_path / "file"), f"{memory}/x", is_new=True)
    assert objects.read_whole(f"{memory}/x") == b"first"


class Slot:
    """A file object of a store, completed by `close`; the first one breaks."""

    made: ClassVar[list[Slot]] = []
    done: ClassVar[list[bytes]] = []

    def __init__(self) -> None:
        self.closed = False
        self.data = b""
        self.breaks = not self.made
        self.made.append(self)

    def write(self, data: bytes) -> None:
        if self.breaks and self.data:
            raise OSError("cut")
        self.data += data

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.done.append(self.data)


@pytest.mark.usefixtures("no_pauses")
def test_an_upload_that_breaks_is_not_completed(
    memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SimpleNamespace(open=lambda name, mode: Slot())
    monkeypatch.setattr(objects, "_open_store", lambda url: (store, url))
    monkeypatch.setattr(objects, "is_hub", lambda url: True)
    (tmp_path / "file").write_bytes(DATA)
    objects.upload(str(tmp_path / "file"), f"{memory}/x")
    assert len(Slot.made) == 2
    for one in Slot.made:
        one.close()  # as when they are forgotten
    assert Slot.done == [DATA]


def test_a_large_upload_is_in_parts(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_ONE_REQUEST", 1 << 20)
    path = tmp_path / "file"
    path.write_bytes(DATA)
    objects.upload(str(path), f"{s3}/large", is_new=True)
    with pytest.raises(FileExistsError):
        objects.upload(str(path), f"{s3}/large", is_new=True)
    assert objects.read_whole(f"{s3}/large") == DATA


def test_an_object_as_a_file(memory: str) -> None:
    objects.write(f"{memory}/x", DATA)
    rng = random.Random(1)
    with ObjectReader(f"{memory}/x", 1000) as file:
        assert file.read(0) == b""
        for _ in range(300):
            at, size = rng.randrange(len(DATA) + 10), rng.choice([1, 10, 999, 1000, 5000])
            assert file.seek(at) == file.tell() == at
            assert file.read(size) == DATA[at : at + size]
        assert file.seek(-3, os.SEEK_END) == len(DATA) - 3
        assert file.read() == DATA[-3:]


@pytest.mark.parametrize("start", [0, 1, 1 << 18, (1 << 20) + 7, len(DATA)])
def test_blocks_of_an_object(memory: str, start: int) -> None:
    url = f"{memory}/x"
    objects.write(url, DATA)
    about = objects.describe(url)
    assert b"".join(read_blocks(url, about, start, None)) == DATA[start:]
    assert b"".join(read_blocks(url, about, start, start + 9)) == DATA[start : start + 9]


@pytest.mark.parametrize("start", [refused, stillborn])
def test_blocks_without_a_thread(
    memory: str, monkeypatch: pytest.MonkeyPatch, start: Callable[..., int]
) -> None:
    url = f"{memory}/x"
    objects.write(url, DATA)
    about = objects.describe(url)
    monkeypatch.setattr(threads, "start_new_thread", start)
    assert b"".join(read_blocks(url, about, 0, None)) == DATA


def test_nobody_reads_on_when_the_caller_has_stopped(
    memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{memory}/x"
    objects.write(url, DATA)
    readers = Threads(monkeypatch)
    blocks = read_blocks(url, objects.describe(url), 0, None)
    first = next(blocks)
    assert DATA.startswith(first)
    assert readers.left(1) == 1
    blocks.close()
    assert readers.left() == 0


def test_an_object_that_changes_while_it_is_read(memory: str) -> None:
    url = f"{memory}/x"
    objects.write(url, DATA)
    blocks = read_blocks(url, objects.describe(url), 0, None)
    next(blocks)
    objects.write(url, DATA[::-1])
    with pytest.raises(OSError, match="it has changed while it was read"):
        list(blocks)


@pytest.mark.usefixtures("no_pauses")
def test_an_answer_that_is_too_short(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{memory}/x"
    objects.write(url, DATA)
    kind = type(fsspec.filesystem("memory"))
    whole = kind.cat_file
    seen = []

    def cut(self: Any, *args: Any, **options: Any) -> bytes:
        seen.append(1)
        data = bytes(whole(self, *args, **options))
        return data[:-1] if len(seen) % 2 else data

    monkeypatch.setattr(kind, "cat_file", cut)
    assert b"".join(read_blocks(url, objects.describe(url), 0, None)) == DATA
    assert len(seen) > 4


def test_what_fsspec_does_not_know() -> None:
    with pytest.raises(OSError, match="Protocol not known: nothing"):
        objects.describe("nothing://x/y")


def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingLibraryError, match=r'need fsspec: pip install "streamtok\[fs\]"'):
        objects.describe("s3://b/k")


def test_a_library_that_does_not_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fsspec.py").write_text("raise ImportError('libssl.so.3: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "fsspec")
    with pytest.raises(MissingLibraryError, match=r"fsspec is installed, but.*libssl\.so\.3"):
        objects.describe("s3://b/k")
