"""Where a compressed file may be cut: in front of a frame that needs nothing of those before it.

zstd data may have several frames (pzstd, the seekable format, files put together with `cat`), and
gzip data several members. A frame is found by its header: in zstd data each block tells its size,
and so does each member that bgzip writes (BGZF), in an extra field. The sizes are followed from the
beginning of the file, so what looks like a header inside of a frame is never taken for one. In a
store that would read the whole object, so there only zstd data with a seek table at its end is cut.

Zstandard: RFC 8878. Its seekable format: contrib/seekable_format in the project zstd. BGZF: the
specification of SAM, 4.1.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from ...stores import places
from .blocks import up_to
from .compression import KINDS, START_SIZE, detect, unpack
from .open_blocks import open_blocks

_SKIPPABLE = 0x184D2A50  # and the 15 numbers after it
_SEEK_TABLE = 0x184D2A5E
_SEEKABLE = 0x8F92EAB1
_ZSTD_HEAD = 18  # bytes of the longest header of a frame
_RAW, _RLE, _COMPRESSED = range(3)


class Stretch(NamedTuple):
    """A stretch of the text in a compressed file.

    start, stop: bytes of the file where frames begin; stop is None if the stretch ends with the
    text. skipped, more: bytes of the text; the stretch begins `skipped` bytes after the beginning
    of the frame at `start`, and ends `more` bytes after that of the frame at `stop`.
    """

    start: int
    skipped: int
    stop: int | None
    more: int

    def blocks(self, path: str, size: int) -> Iterator[bytes]:
        """The text from the beginning of the first frame to the end. Raises as `text_behind`."""
        texts = text_behind(path, self.start, self.stop, size)
        if self.stop is None:
            return texts
        return itertools.chain(texts, up_to(text_behind(path, self.stop, None, size), self.more))


def text_behind(path: str, start: int, stop: int | None, size: int) -> Iterator[bytes]:
    """The text in the frames from byte `start` of a file or an object up to `stop`, or the end.

    size: bytes to read at a time. Raises OSError, and ArchiveError also if no frame ends at `stop`.
    """
    return unpack(open_blocks(path, start=start, stop=stop, size=size), path, start)


def is_compressed(place: str) -> bool:
    """Whether a file or an object begins as compressed data does. Raises OSError."""
    return detect(places.read_head(place, START_SIZE)) is not None


def frame_starts(place: str, size: int, step: int) -> Iterator[int]:
    """The bytes, in order, at which frames of a compressed file begin, but not its first one.

    size: of the file. step: each is at least so far after the one before. What cannot be followed
    to its end, such as a damaged file, is left in one piece. Raises OSError. Costs a read of some
    bytes for each block of a local file, and two reads of an object.
    """
    kind = detect(places.read_head(place, START_SIZE)) if size > step else None
    if kind not in ("zstd", "gzip"):
        return
    with places.open_binary(place) as file:
        ends: Iterable[int]
        if kind == "gzip":
            ends = () if places.is_url(place) else _bgzf_ends(file)
        else:
            ends = _ends_in_table(file, size) if places.is_url(place) else _zstd_ends(file, size)
        last = 0
        for end in ends:
            if end >= size:
                return
            if end - last >= step:
                yield end
                last = end


def _read(file: BinaryIO, at: int, size: int) -> bytes:
    file.seek(at)
    return file.read(size)


def _bgzf_ends(file: BinaryIO) -> Iterator[int]:
    at = 0
    while True:
        head = _read(file, at, 12)
        # Deflate, and an extra field is the only thing that follows the header.
        if len(head) < 12 or not head.startswith(KINDS["gzip"].magic) or head[3] != 4:
            return
        (extra_size,) = struct.unpack_from("<H", head, 10)
        total = _bgzf_size(_read(file, at + 12, extra_size))
        if total is None:
            return
        at += total
        yield at


def _bgzf_size(extra: bytes) -> int | None:
    """The size of a member, from its extra field; None if it does not tell."""
    at = 0
    while at + 4 <= len(extra):
        name, size = extra[at : at + 2], int.from_bytes(extra[at + 2 : at + 4], "little")
        if name == b"BC" and size == 2 and at + 6 <= len(extra):
            return int.from_bytes(extra[at + 4 : at + 6], "little") + 1
        at += 4 + size
    return None


def _zstd_ends(file: BinaryIO, size: int) -> Iterator[int]:
    at = 0
    while True:
        head = _read(file, at, _ZSTD_HEAD)
        if len(head) < 8:
            return
        magic, skipped = struct.unpack_from("<II", head)
        if magic & ~0xF == _SKIPPABLE:
            at += 8 + skipped
        elif head.startswith(KINDS["zstd"].magic):
            end = _zstd_end(file, at, head, size)
            if end is None:
                return
            at = end
        else:
            return
        yield at


def _zstd_end(file: BinaryIO, at: int, head: bytes, size: int) -> int | None:
    """The end of the frame at byte `at`; None if it is damaged or incomplete."""
    flags = head[4]
    is_single = flags >> 5 & 1  # then the window is the content, and has no byte of its own
    content = (is_single, 2, 4, 8)[flags >> 6]
    at += 5 + (1 - is_single) + (0, 1, 2, 4)[flags & 3] + content
    while at < size:
        block = int.from_bytes(_read(file, at, 3), "little")
        kind, length = block >> 1 & 3, block >> 3
        if kind > _COMPRESSED:
            return None
        at += 3 + (1 if kind == _RLE else length)
        if block & 1:
            at += 4 if flags & 4 else 0
            return at if at <= size else None
    return None


def _ends_in_table(file: BinaryIO, size: int) -> Iterator[int]:
    """The ends of frames that a seek table tells; none if there is no table that fits the file."""
    foot = _read(file, max(size - 9, 0), 9)
    if len(foot) < 9 or int.from_bytes(foot[5:], "little") != _SEEKABLE:
        return
    number, descriptor = struct.unpack_from("<IB", foot)
    entry = 12 if descriptor & 0x80 else 8  # with a checksum, or without
    table_size = 8 + number * entry + 9
    if descriptor & 0x7C or table_size > size:
        return
    table = _read(file, size - table_size, table_size)
    magic, content = struct.unpack_from("<II", table)
    sizes = [length for (length,) in struct.iter_unpack(f"<I{entry - 4}x", table[8:-9])]
    if magic != _SEEK_TABLE or content != table_size - 8 or sum(sizes) + table_size != size:
        return
    at = 0
    for length in sizes:
        at += length
        yield at
