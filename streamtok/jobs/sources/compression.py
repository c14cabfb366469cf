"""Detects gzip, zstd, xz and bzip2 by their first bytes and decompresses them in bounded memory.

Consecutive members are one stream, as for `zcat`. Damaged or truncated data raises ArchiveError
with the offset in the compressed file; truncation is always detected. zstd data may begin with a
skippable frame, as the output of pzstd does.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...errors import ArchiveError, MissingLibraryError

_SKIPPABLE = [bytes([first]) for first in range(0x50, 0x60)]
START_SIZE = 10  # bytes that `detect` needs
_OUT = 1 << 16  # bytes of output at a time
_DAMAGE = (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError)
_MEMORY = 1 << 27  # bytes for decompression: twice what xz -9 needs, and the limit of zstd -d
_TOO_MUCH = ("Memory usage limit", "too much memory")  # in the error messages of xz and zstd
_ZSTD_IN = 1 << 8  # bytes of input at a time: 4 bytes can become 128 KiB of output


def detect(start: bytes) -> str | None:
    """The compression of data that begins with `start`: "gzip", "zstd", "xz", "bzip2" or None."""
    for name, kind in KINDS.items():
        if start.startswith(kind.magic) and kind.goes_on(start):
            return name
    return "zstd" if _is_skippable(start) else None


def may_be_compressed(start: bytes) -> bool:
    """Whether more bytes after `start` could let `detect` find a format."""
    if start.startswith(KINDS["bzip2"].magic):
        return len(start) < START_SIZE
    if len(start) >= _LONGEST:
        return False
    kinds = KINDS.values()
    return any(kind.magic.startswith(start) for kind in kinds) or _may_be_skippable(start)


def unpacked_name(name: str) -> str:
    """The name of a file in lower case, without the suffix of a compression."""
    lower = name.lower()
    suffixes = (suffix for kind in KINDS.values() for suffix in kind.suffixes)
    return next((lower[: -len(one)] for one in suffixes if lower.endswith(one)), lower)


def unpack(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield the decompressed `blocks`, or the blocks unchanged if they are not compressed.

    name: the input, for errors. Raises ArchiveError for damaged data, MissingLibraryError if there
    is no library for zstd, and the exceptions of `blocks`.
    """
    start = b""
    while may_be_compressed(start) and (block := next(blocks, b"")):
        start += block
    kind = detect(start)
    if kind is None:
        if start:
            yield start
        yield from blocks
        return
    yield from _members(kind, start, blocks, name)


def _members(kind: str, start: bytes, blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    make = KINDS[kind].make
    data: bytes = start
    offset = 0  # of `data` in the compressed file
    while True:  # a member
        member = make()
        begin = offset
        while not member.eof:
            if not data and member.needs_input:
                data = next(blocks, b"")
                if not data:
                    raise ArchiveError(
                        f"{name}: the {kind} data is incomplete: it ends at byte {offset}"
                    )
            try:
                text = member.feed(data)
            except Exception as e:
                # The libraries for zstd are imported only where they are needed.
                if not isinstance(e, _DAMAGE) and type(e).__name__ != "ZstdError":
                    raise
                if any(text in str(e) for text in _TOO_MUCH):
                    raise ArchiveError(
                        f"{name}: decompressing this {kind} data needs more than "
                        f"{_MEMORY >> 20} MiB of memory: use {kind} -dc FILE | streamtok ..."
                    ) from None
                raise ArchiveError(
                    f"{name}: damaged {kind} data near byte {offset}, "
                    f"in the member that begins at byte {begin}: {e}"
                ) from None
            offset += len(data)
            data = b""
            if text:
                yield text
        data = member.unused
        offset -= len(data)
        while not (rest := data.lstrip(b"\0")):  # zeros may follow a member, as padding
            offset += len(data)
            data = next(blocks, b"")
            if not data:
                return
        offset += len(data) - len(rest)
        data = rest
        while len(data) < _LONGEST and (block := next(blocks, b"")):
            data += block
        if not data.startswith(KINDS[kind].magic) and not (kind == "zstd" and _is_skippable(data)):
            raise ArchiveError(
                f"{name}: byte {offset}: expected {kind} data or the end, after a complete member"
            )


def _is_skippable(data: bytes) -> bool:
    return len(data) >= 4 and _may_be_skippable(data)


def _may_be_skippable(data: bytes) -> bool:
    return data[:1] in _SKIPPABLE and b"\x2a\x4d\x18".startswith(data[1:4])


class _Member:
    """Decompresses a member with bz2, lzma or (since Python 3.14) compression.zstd.

    `feed` accepts all of `data` and returns some of the output. While `needs_input` is false, call
    it with b"" to get more. Subclasses adapt other libraries.
    """

    def __init__(self, inner: Any):
        self._inner = inner

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof)

    @property
    def needs_input(self) -> bool:
        return bool(self._inner.needs_input)

    @property
    def unused(self) -> bytes:
        return bytes(self._inner.unused_data)

    def feed(self, data: bytes) -> bytes:
        return bytes(self._inner.decompress(data, _OUT))


class _Gzip(_Member):
    _is_full = False  # the last output had the full size, so zlib may have more

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail and not self._is_full

    def feed(self, data: bytes) -> bytes:
        text = super().feed(self._inner.unconsumed_tail + data)
        self._is_full = len(text) == _OUT
        return text


class _Zstandard(_Member):
    """The decompressor of the `zstandard` package.

    Its stream reader accepts a truncated frame as complete, so this class uses decompressobj. That
    cannot limit its output, so it is fed few bytes at a time.
    """

    _rest = b""

    @property
    def needs_input(self) -> bool:
        return not self._rest

    @property
    def unused(self) -> bytes:
        return super().unused + self._rest

    def feed(self, data: bytes) -> bytes:
        rest = self._rest + data if self._rest else data
        parts, size, at = [], 0, 0
        while at < len(rest) and size < _OUT and not self._inner.eof:
            parts.append(self._inner.decompress(rest[at : at + _ZSTD_IN]))
            size += len(parts[-1])
            at += _ZSTD_IN
        self._rest = rest[at:]
        return b"".join(parts)


def _zstd() -> _Member:
    try:
        import zstandard
    except ImportError:
        pass
    else:
        how = zstandard.ZstdDecompressor(max_window_size=_MEMORY)
        return _Zstandard(how.decompressobj())
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise MissingLibraryError("zstd files", "zstandard", "zstd", error) from None
    return _Member(zstd.ZstdDecompressor())


def _begins_a_block(start: bytes) -> bool:
    """Whether data that begins with BZh is bzip2 and not text.

    In bzip2, the block size and the digits of pi or of its square root follow.
    """
    return start[4:10] in (b"1AY&SY", b"\x17rE8P\x90")


class Kind(NamedTuple):
    """A compression. magic: its first bytes. goes_on: a test of all bytes up to START_SIZE."""

    magic: bytes
    make: Callable[[], _Member]
    suffixes: tuple[str, ...]
    goes_on: Callable[[bytes], bool] = lambda start: True


KINDS = {
    "gzip": Kind(b"\x1f\x8b\x08", lambda: _Gzip(zlib.decompressobj(wbits=31)), (".gz", ".bgz")),
    "zstd": Kind(b"\x28\xb5\x2f\xfd", _zstd, (".zst", ".zstd")),
    "xz": Kind(b"\xfd7zXZ\x00", lambda: _Member(lzma.LZMADecompressor(memlimit=_MEMORY)), (".xz",)),
    "bzip2": Kind(b"BZh", lambda: _Member(bz2.BZ2Decompressor()), (".bz2",), _begins_a_block),
}
_LONGEST = max(len(kind.magic) for kind in KINDS.values())
