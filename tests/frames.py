"""Compressed data in frames, as bgzip, `cat a.zst b.zst`, pzstd and the seekable format make it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

import zstandard

BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")


def bgzf_member(text: bytes, extra: bytes = b"") -> bytes:
    """A member as bgzip writes it; extra: other fields of the header, in front of its own."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    data = packer.compress(text) + packer.flush()
    size = 12 + len(extra) + 6 + len(data) + 8
    head = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff" + struct.pack("<H", len(extra) + 6) + extra
    head += b"BC" + struct.pack("<HH", 2, size - 1)
    return head + data + struct.pack("<II", zlib.crc32(text), len(text))


def bgzf(texts: Iterable[bytes]) -> bytes:
    """A file of bgzip's: a member for each text, and the empty one at the end."""
    return b"".join(map(bgzf_member, texts)) + BGZF_END


def zstd_frame(text: bytes, *, knows_size: bool = True, checksum: bool = False) -> bytes:
    """A frame whose header has the size of the text, or has not."""
    packer = zstandard.ZstdCompressor(write_content_size=knows_size, write_checksum=checksum)
    if knows_size:
        return packer.compress(text)
    stream = packer.compressobj()
    return stream.compress(text) + stream.flush()


def skippable(data: bytes, number: int = 0) -> bytes:
    """A frame that decompressors skip; number: 0 to 15."""
    return struct.pack("<II", 0x184D2A50 + number, len(data)) + data


def zstd_frames(texts: Iterable[bytes]) -> bytes:
    """Frames of all kinds, skippable ones between them."""
    made = b""
    for number, text in enumerate(texts):
        made += zstd_frame(text, knows_size=bool(number & 1), checksum=bool(number & 2))
        if number % 3 == 2:
            made += skippable(bytes(number % 7), number % 16)
    return made


def seekable(texts: Iterable[bytes], checksums: bool = False) -> bytes:
    """Frames, and behind them the table of their sizes."""
    frames = [(zstd_frame(text), text) for text in texts]
    entries = [
        struct.pack("<II", len(frame), len(text)) + (b"\0\0\0\0" if checksums else b"")
        for frame, text in frames
    ]
    foot = struct.pack("<IBI", len(frames), checksums << 7, 0x8F92EAB1)
    return b"".join(frame for frame, _ in frames) + skippable(b"".join(entries) + foot, 14)


def pieces(text: bytes, size: int) -> list[bytes]:
    """A text in pieces of `size` bytes, which may end inside of a character."""
    return [text[at : at + size] for at in range(0, len(text), size)]


MAKERS = {"bgzf": bgzf, "zstd": zstd_frames, "seekable": seekable}
