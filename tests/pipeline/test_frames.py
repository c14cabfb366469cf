"""Where compressed files may be cut: at real frames, never at what only looks like one."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard

from streamtok.errors import ArchiveError
from streamtok.pipeline.sources.compression import unpack
from streamtok.pipeline.sources.frames import frame_starts, text_behind

from ..frames import BGZF_END, MAKERS, bgzf, bgzf_member, pieces, seekable, skippable, zstd_frame

TEXT = random.Random(4).randbytes(700) + b"word " * 3000 + bytes(300_000)


def starts(path: Path, data: bytes, step: int = 1) -> list[int]:
    path.write_bytes(data)
    return list(frame_starts(str(path), len(data), step))


def sizes_of(frames: Iterable[bytes]) -> list[int]:
    """Where frames begin that follow each other, without the first one."""
    found, at = [], 0
    for frame in frames:
        at += len(frame)
        found.append(at)
    return found[:-1]


@pytest.mark.parametrize("size", [1, 100, 5000, 60_000])
def test_frames_are_where_they_begin(tmp_path: Path, size: int) -> None:
    texts = pieces(TEXT, size)[:50]
    members = [*map(bgzf_member, texts), BGZF_END]
    assert starts(tmp_path / "a", b"".join(members)) == sizes_of(members)
    frames = []
    for number, text in enumerate(texts):
        frames.append(zstd_frame(text, knows_size=bool(number & 1), checksum=bool(number & 2)))
        frames.append(skippable(b"x" * (number % 9), number % 16))
    assert starts(tmp_path / "b", b"".join(frames)) == sizes_of(frames)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000, 1 << 18, 700_000])
@pytest.mark.parametrize("level", [-5, 1, 19])
@pytest.mark.parametrize("kind", ["text", "random", "zeros"])
def test_headers_of_zstd_of_all_sizes(tmp_path: Path, size: int, level: int, kind: str) -> None:
    """Raw, RLE and compressed blocks, one segment or a window, sizes of one to eight bytes."""
    text = {
        "text": b"some words to compress, " * (size // 24 + 1),
        "random": random.Random(size).randbytes(size),
        "zeros": bytes(size),
    }[kind][:size]
    frames = [
        zstandard.ZstdCompressor(level=level, write_content_size=b, write_checksum=c).compress(text)
        for b in (True, False)
        for c in (True, False)
    ]
    assert starts(tmp_path / "in", b"".join(frames)) == sizes_of(frames)


def test_a_number_of_a_dictionary(tmp_path: Path) -> None:
    for number in (1, 300, 70_000):
        words = zstandard.ZstdCompressionDict(b"words of a dictionary " * 20)
        trained = zstandard.train_dictionary(
            900, [b"some words %d of a text" % i * 9 for i in range(200)], dict_id=number
        )
        assert trained.dict_id() == number
        frames = [
            zstandard.ZstdCompressor(dict_data=one).compress(b"some words")
            for one in (trained, words, trained)
        ]
        assert starts(tmp_path / "in", b"".join(frames)) == sizes_of(frames)


@pytest.mark.parametrize("kind", MAKERS)
def test_they_are_a_step_apart(tmp_path: Path, kind: str) -> None:
    data = MAKERS[kind](pieces(TEXT, 3000))
    every = starts(tmp_path / "in", data)
    for step in (50, 1000, len(data) - 1, len(data)):
        chosen = starts(tmp_path / "in", data, step)
        assert set(chosen) <= set(every)
        assert all(b - a >= step for a, b in zip([0, *chosen], chosen, strict=False))
        last = 0
        for one in every:  # the first one that is far enough
            if one - last >= step:
                assert one == chosen.pop(0)
                last = one
        assert not chosen


def test_what_only_looks_like_a_frame(tmp_path: Path) -> None:
    """Compressed data inside of compressed data, stored as it is."""
    texts = [random.Random(number).randbytes(500) for number in range(20)]
    inner = bgzf(texts) + MAKERS["zstd"](texts)
    packer = zstandard.ZstdCompressor(level=-1000)
    outer = [packer.compress(inner), packer.compress(inner)]
    assert inner[:100] in outer[0]
    assert outer[0].count(b"\x28\xb5\x2f\xfd") > 10
    assert starts(tmp_path / "in", b"".join(outer)) == sizes_of(outer)
    members = [gzip.compress(inner, 0), gzip.compress(inner, 0)]
    assert inner[:100] in members[0]
    assert starts(tmp_path / "in", b"".join(members)) == []


def test_what_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "in"
    for data in (gzip.compress(TEXT) * 3, lzma.compress(TEXT) * 3, bz2.compress(TEXT) * 3, TEXT):
        assert starts(path, data) == []
    member, frame = bgzf_member(b"text"), zstd_frame(b"text")
    # Up to where the files are what they seem.
    assert starts(path, member * 2 + gzip.compress(TEXT)) == [len(member), 2 * len(member)]
    assert starts(path, member * 2 + bytes(20)) == [len(member), 2 * len(member)]
    assert starts(path, frame * 2 + TEXT) == [len(frame), 2 * len(frame)]
    assert starts(path, frame + frame[:-1]) == [len(frame)]
    assert starts(path, frame + frame[:3]) == [len(frame)]
    reserved = frame[:4] + b"\0\0" + b"\x07\0\0"
    assert starts(path, frame + reserved + frame) == [len(frame)]
    assert starts(path, skippable(b"x" * 30)[:-1]) == []
    # Another field in the header, and one that only has the name.
    other = bgzf_member(b"text", b"XY\x04\0abcdBC\x01\0x")
    assert starts(path, other * 2) == [len(other)]
    broken = bytearray(other)
    broken[12 + 8 + 5 + 1] = ord("D")
    assert starts(path, bytes(broken) * 2) == []


def test_every_damaged_byte(tmp_path: Path) -> None:
    """Nothing but OSError is raised, and frames are in order."""
    path = tmp_path / "in"
    for kind in MAKERS:
        data = MAKERS[kind]([b"some text", b"", b"other text"])
        for at in range(len(data)):
            for value in (0, 0xFF, data[at] ^ 1, data[at] ^ 0x80):
                found = starts(path, data[:at] + bytes([value]) + data[at + 1 :])
                assert found == sorted(set(found))
                assert all(0 < one < len(data) for one in found)
        for size in range(len(data)):
            assert all(0 < one < size for one in starts(path, data[:size]))


class TestInAStore:
    def found(self, data: bytes) -> list[int]:
        import fsspec

        url = "memory://frames/in.zst"
        with fsspec.open(url, "wb") as file:
            file.write(data)
        return list(frame_starts(url, len(data), 1))

    @pytest.mark.parametrize("checksums", [False, True])
    def test_the_table_tells(self, tmp_path: Path, checksums: bool) -> None:
        data = seekable(pieces(TEXT, 1000)[:30], checksums)
        assert self.found(data) == starts(tmp_path / "in", data) != []

    def test_only_a_table_that_fits(self) -> None:
        data = seekable([b"some text", b"other text"])
        assert self.found(b"\x28\xb5\x2f\xfd" + data) == []  # it tells another size
        assert self.found(data[:-9] + b"\xff\xff\xff\xff" + data[-5:]) == []
        assert self.found(data[:-5] + b"\x04" + data[-4:]) == []  # a reserved bit
        for without in (MAKERS["zstd"](pieces(TEXT, 100)), bgzf(pieces(TEXT, 100))):
            assert self.found(without) == []

    def test_every_damaged_byte(self) -> None:
        data = seekable([b"some text", b"other text"])
        for at in range(len(data)):
            for value in (0, 0xFF, data[at] ^ 1):
                found = self.found(data[:at] + bytes([value]) + data[at + 1 :])
                assert found == sorted(set(found))
                assert all(0 < one < len(data) for one in found)


@pytest.mark.parametrize("kind", MAKERS)
def test_text_behind_a_frame(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "in"
    data = MAKERS[kind](pieces(TEXT, 4000))
    every = [0, *starts(path, data), None]
    whole = b"".join(unpack(iter([data]), "in"))
    assert whole == TEXT
    read = [b"".join(text_behind(str(path), a or 0, b, 999)) for a, b in pairwise(every)]
    assert b"".join(read) == TEXT
    assert len(read) > 50


def test_a_stop_that_is_no_end(tmp_path: Path) -> None:
    path = tmp_path / "in"
    data = MAKERS["zstd"](pieces(TEXT, 4000))
    (first, second, *_) = starts(path, data)
    with pytest.raises(ArchiveError, match=f"is incomplete: it ends at byte {second - 1}"):
        list(text_behind(str(path), first, second - 1, 1 << 16))
    damaged = bytearray(data)
    damaged[second : second + 40] = bytes(40)
    path.write_bytes(damaged)
    with pytest.raises(ArchiveError, match=f"in: byte {second + 40}: expected zstd data"):
        list(text_behind(str(path), first, None, 1 << 16))


def test_nothing_is_read_but_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamtok.stores import places

    data = MAKERS["zstd"]([random.Random(i).randbytes(1 << 20) for i in range(4)])
    (tmp_path / "in").write_bytes(data)
    read = 0

    class Counting(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes | None:
            nonlocal read
            found = super().read(-1 if size is None else size)
            read += len(found or b"")
            return found

    monkeypatch.setattr(places, "open_binary", Counting)
    assert len(list(frame_starts(str(tmp_path / "in"), len(data), 1))) == 4
    assert 0 < read < 400
