"""Objects: what is written is read, and nothing is seen half."""

import errno
import os
import random
import sys

import fsspec
import pytest

from streamtok.errors import MissingLibraryError
from streamtok.jobs.stores import objects, places
from streamtok.jobs.stores.object_reader import ObjectReader, read_blocks
from streamtok.jobs.stores.urls import check_writable, is_url, join

DATA = random.Random(4).randbytes(3 << 20)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("s3://b/k", True), ("hf://datasets/x", True), ("C://x", False), ("a/b", False), ("-", False)],
)
def test_what_is_a_url(name, expected):
    assert is_url(name) is expected


def test_names_are_joined():
    assert join("s3://b/k/", "x", "y") == "s3://b/k/x/y"
    assert join("a", "x") == os.path.join("a", "x")


def test_outputs_need_a_store_without_half_objects():
    check_writable("gs://b/k")
    with pytest.raises(OSError, match=r"outputs can be paths, or URLs of s3://"):
        check_writable("http://host/x")
    with pytest.raises(IsADirectoryError):
        check_writable("s3://b/")


@pytest.mark.parametrize("kind", ["memory", "s3"])
def test_objects(kind, tmp_path, request):
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
    assert objects.read_head(url, 3) == b"sec"
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


def test_an_object_as_a_file(memory):
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
def test_blocks_of_an_object(memory, start):
    url = f"{memory}/x"
    objects.write(url, DATA)
    about = objects.describe(url)
    assert b"".join(read_blocks(url, about, start, None)) == DATA[start:]
    assert b"".join(read_blocks(url, about, start, start + 9)) == DATA[start : start + 9]


def test_an_object_that_changes_while_it_is_read(memory):
    url = f"{memory}/x"
    objects.write(url, DATA)
    blocks = read_blocks(url, objects.describe(url), 0, None)
    next(blocks)
    objects.write(url, DATA[::-1])
    with pytest.raises(OSError, match="it changed while it was being read"):
        list(blocks)


def test_an_error_of_a_store_names_the_object(memory, monkeypatch):
    url = f"{memory}/x"
    objects.write(url, DATA)

    def broken(*args, **options):
        raise RuntimeError("it is away\nand more")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "cat_file", broken)
    with pytest.raises(OSError, match="the store failed: it is away") as caught:
        objects.read_whole(url)
    assert (caught.value.errno, caught.value.filename) == (errno.EIO, url)


def test_what_fsspec_does_not_know():
    with pytest.raises(OSError, match="Protocol not known: nothing"):
        objects.describe("nothing://x/y")


def test_a_library_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingLibraryError, match=r'need fsspec: pip install "streamtok\[fs\]"'):
        objects.describe("s3://b/k")


def test_a_library_that_does_not_load(tmp_path, monkeypatch):
    (tmp_path / "fsspec.py").write_text("raise ImportError('libssl.so.3: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "fsspec")
    with pytest.raises(MissingLibraryError, match=r"fsspec is installed, but.*libssl\.so\.3"):
        objects.describe("s3://b/k")
