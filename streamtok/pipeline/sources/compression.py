"""gzip, zstd, xz and bzip2, known by their first bytes and unpacked in bounded memory.

zstd may begin with a skippable frame (pzstd writes one).

Members one after the other are one stream, as for `zcat`. What is damaged or cut off raises
ArchiveError with the offset in the packed file: text that ends too early is never taken for whole.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ...errors import ArchiveError, MissingLibraryError

MAGICS = {
    "gzip": b"\x1f\x8b\x08",
    "zstd": b"\x28\xb5\x2f\xfd",
    "xz": b"\xfd7zXZ\x00",
    "bzip2": b"BZh",
}
_SKIPPABLE = [bytes([first]) for first in range(0x50, 0x60)]
START_SIZE = 10  # bytes that `detect` wants to see
_LONGEST = max(map(len, MAGICS.values()))
_OUT = 1 << 16  # bytes that are unpacked at a time
_DAMAGE: tuple[type[Exception], ...] = (
    zlib.error,
    lzma.LZMAError,
    OSError,
    EOFError,
    ValueError,
)
_MEMORY = 1 << 27  # for unpacking: xz -9 needs half of it, and it is the limit of zstd -d, too
_TOO_MUCH = ("Memory usage limit", "too much memory")  # what xz and zstd say then
_ZSTD_IN = 1 << 8  # fed to a decompressor without a limit: 4 bytes can become 128 KiB


def detect(start: bytes) -> str | None:
    """str | None: the name of the compression that data with this start has."""
    for name, magic in MAGICS.items():
        if start.startswith(magic):
            # A text may begin with BZh; what follows is the block size, then pi or the root of it.
            if name == "bzip2" and start[4:10] not in (b"1AY&SY", b"\x17rE8P\x90"):
                continue
            return name
    return "zstd" if _is_skippable(start) else None


def may_be_packed(start: bytes) -> bool:
    """bool: whether more bytes could make `detect` find something."""
    if start.startswith(MAGICS["bzip2"]):
        return len(start) < START_SIZE
    if len(start) >= _LONGEST:
        return False
    return any(m.startswith(start) for m in MAGICS.values()) or _may_be_skippable(start)


def unpack(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Iterator[bytes]: the text in `blocks` if they are packed, else the blocks.

    `name` is for errors. No more is read than needed to tell. Raises ArchiveError,
    MissingLibraryError without a library for zstd, and OSError as the blocks do.
    """
    start = b""
    while not start or may_be_packed(start):
        block = next(blocks, b"")
        if not block:
            break
        start += block
    kind = detect(start)
    if kind is None:
        if start:
            yield start
        yield from blocks
        return
    yield from _members(kind, start, blocks, name)


def _members(kind: str, start: bytes, blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    make = _MAKERS[kind]
    damage = _DAMAGE + _zstd_errors()
    offset = 0  # of `data` in the packed file
    data: bytes = start
    while True:  # a member
        member = make()
        begin = offset
        while not member.eof:
            if not data and member.needs_input:
                data = next(blocks, b"")
                if not data:
                    raise ArchiveError(
                        f"{name}: the {kind} data ends too early, at byte {offset}: "
                        "its end is missing"
                    )
            try:
                text = member.feed(data)
            except damage as e:
                if any(text in str(e) for text in _TOO_MUCH):
                    raise ArchiveError(
                        f"{name}: the {kind} data needs more than {_MEMORY >> 20} MiB of memory to "
                        f"unpack: unpack it yourself, as in {kind} -dc FILE | streamtok"
                    ) from None
                raise ArchiveError(
                    f"{name}: damaged {kind} data near byte {offset} "
                    f"(in the member that begins at byte {begin}): {e}"
                ) from None
            offset += len(data)
            data = b""
            if text:
                yield text
        data = member.unused
        offset -= len(data)
        while True:  # padding with zeros is allowed behind a member
            if not data:
                data = next(blocks, b"")
                if not data:
                    return
            rest = data.lstrip(b"\0")
            offset += len(data) - len(rest)
            data = rest
            if data:
                break
        while len(data) < _LONGEST and (block := next(blocks, b"")):
            data += block
        if not data.startswith(MAGICS[kind]) and not (kind == "zstd" and _is_skippable(data)):
            raise ArchiveError(f"{name}: no {kind} data at byte {offset}, behind a complete member")


def _is_skippable(data: bytes) -> bool:
    return len(data) >= 4 and _may_be_skippable(data)


def _may_be_skippable(data: bytes) -> bool:
    return data[:1] in _SKIPPABLE and b"\x2a\x4d\x18".startswith(data[1:4])


class _Member(Protocol):
    """`feed` takes all of `data` and gives some text; b"" while more of what it took comes out."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused(self) -> bytes: ...
    def feed(self, data: bytes) -> bytes: ...


class _Gzip:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self._is_full = False  # zlib may hold more output of what it has taken in

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail and not self._is_full

    @property
    def unused(self) -> bytes:
        return self._inner.unused_data

    def feed(self, data: bytes) -> bytes:
        text = self._inner.decompress(self._inner.unconsumed_tail + data, _OUT)
        self._is_full = len(text) == _OUT
        return text


class _Standard:
    """bz2, lzma and, since Python 3.14, compression.zstd have one interface."""

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


class _Zstandard:
    """The `zstandard` package: its reader takes a frame that is cut off for a whole one, and its
    decompressobj has no limit for its output, so it is fed in small pieces."""

    def __init__(self, module: Any):
        self._inner = module.ZstdDecompressor(max_window_size=_MEMORY).decompressobj()
        self._rest = b""

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof)

    @property
    def needs_input(self) -> bool:
        return not self._rest

    @property
    def unused(self) -> bytes:
        return bytes(self._inner.unused_data) + self._rest

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
        return _Zstandard(zstandard)
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise MissingLibraryError("zstd files", "zstandard", "zstd") from None
    return _Standard(zstd.ZstdDecompressor())


def _zstd_errors() -> tuple[type[Exception], ...]:
    errors: list[type[Exception]] = []
    try:
        import zstandard

        errors.append(zstandard.ZstdError)
    except ImportError:
        pass
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]

        errors.append(zstd.ZstdError)
    except ImportError:
        pass
    return tuple(errors)


_MAKERS: dict[str, Callable[[], _Member]] = {
    "gzip": _Gzip,
    "zstd": _zstd,
    "xz": lambda: _Standard(lzma.LZMADecompressor(memlimit=_MEMORY)),
    "bzip2": lambda: _Standard(bz2.BZ2Decompressor()),
}
