"""Compressed inputs that are hostile, or that only some programs produce."""

from __future__ import annotations

import lzma
import struct
import zlib

import pytest
import zstandard

from streamtok.errors import ArchiveError
from streamtok.jobs.sources.compression import unpack

from ..cli.test_cli import fails, run
from ..conftest import chunked

TEXT = b"one two three\n" * 100
FRAME = zstandard.compress(TEXT)


def skippable(data: bytes, number: int = 0) -> bytes:
    """A frame that decompressors skip; number: 0 to 15."""
    return struct.pack("<II", 0x184D2A50 + number, len(data)) + data


@pytest.mark.parametrize("kind", [0, 7, 15])
@pytest.mark.parametrize("content", [b"", b"\x01\x02\x03\x04", b"x" * 70_000])
@pytest.mark.parametrize("size", [1, 3, 4096])
def test_zstd_that_begins_with_a_skippable_frame(kind, content, size):
    start = skippable(content, kind)
    assert b"".join(unpack(iter(chunked(start + FRAME, size)), "x")) == TEXT
    assert b"".join(unpack(iter(chunked(start + start + FRAME + start, size)), "x")) == TEXT
    assert b"".join(unpack(iter(chunked(start, size)), "x")) == b""


def test_a_skippable_frame_that_is_cut_off():
    data = skippable(b"12345678") + FRAME
    for end in (4, 7, 8, 12, 15, 20, len(data) - 1):
        with pytest.raises(ArchiveError, match=rf"is incomplete: it ends at byte {end}"):
            list(unpack(iter(chunked(data[:end], 5)), "x"))


def xz(data: bytes, dictionary: int) -> bytes:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": dictionary}]
    return lzma.compress(data, filters=filters)


def test_an_xz_dictionary_has_a_limit(tmp_path):
    """The memory is that of the presets of xz, not what a file of a few bytes asks for."""
    # Only the header of the block says how large the dictionary is: 16 MiB becomes 1 GiB.
    small = bytearray(xz(TEXT, 1 << 24))
    header = small[12 : 12 + (small[12] + 1) * 4 - 4]
    assert header[4] == 24  # 2 ** (24 / 2 + 12)
    small[16] = 36
    checked = bytes(small[12:20])
    small[20:24] = zlib.crc32(checked).to_bytes(4, "little")
    path = tmp_path / "a.xz"
    path.write_bytes(small)
    error = fails("count", str(path))
    assert error.startswith(f"{path}: decompressing this xz data needs more than 128 MiB of memory")
    assert "xz -dc" in error
    # The largest dictionary of a preset is read.
    path.write_bytes(xz(TEXT, 1 << 26))
    assert run("count", str(path)).stdout.split()[0] == b"400"


def test_a_zstd_window_has_a_limit(tmp_path):
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=True)
    packed = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path = tmp_path / "a.zst"
    path.write_bytes(packed.compress(TEXT) + packed.flush())
    error = fails("count", str(path))
    assert error.startswith(
        f"{path}: decompressing this zstd data needs more than 128 MiB of memory"
    )
