"""The inputs of a run, one after the other, as documents, with a position to go on from.

An input gives groups of parts (see `documents`). Between two groups `position` says,
for JSON, where the next one begins; `Feed` made with that position goes on there, in another
process. Positions count unpacked bytes: of a compressed file, what comes before is unpacked again,
and its CRC must be what it was, as for standard input, which must come again from its beginning.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from ...errors import CheckpointError
from .blocks import BLOCK_SIZE, STDIN, Waiting, check_file, is_ready, read_descriptor
from .compression import START_SIZE, detect, unpack
from .follow import Follower
from .parquet import ParquetTexts
from .records import Part, Splitter
from .sockets import Address, Listener, connect

MakeSplitter = Callable[[str, int, int, int, bool], Splitter]
"""(name, consumed, records, crc, is_open) to a splitter; `name` is the input's, for errors."""


class Opening(NamedTuple):
    """What happens at the begin of an input of bytes.

    strip_bom: a byte order mark is left out. look: called with the name and the first bytes, as
    many as came at once.
    """

    strip_bom: bool = False
    look: Callable[[str, bytes], None] = lambda name, start: None


_AS_IT_IS = Opening()


class Input(Protocol):
    """One input. name: for errors; size: bytes on the disk, if known; read: of those, so far;
    is_done: the last group was given out; skipped: broken records so far; may_wait: whether its
    next group may be a while in coming.
    """

    name: str
    size: int | None
    read: int
    is_done: bool

    @property
    def skipped(self) -> int: ...
    @property
    def may_wait(self) -> bool: ...

    def fingerprint(self) -> dict[str, Any]:
        """dict: what must not change between a checkpoint and going on, for JSON."""

    def groups(self, position: dict[str, Any] | None, is_open: bool) -> Iterator[list[Part]]:
        """Iterator of lists of parts; is_open: the position is inside a document."""

    def position(self) -> dict[str, Any]:
        """dict: where the next group begins, for JSON."""

    def stop(self) -> list[Part]:
        """list of parts: what is left if nothing more is read."""


class ByteInput:
    """What the inputs that are bytes have in common."""

    def __init__(
        self,
        name: str,
        make_splitter: MakeSplitter,
        size: int | None = None,
        opening: Opening = _AS_IT_IS,
    ):
        self.name = name
        self.size = size
        self.read = 0
        self.is_done = False
        self._make_splitter = make_splitter
        self._opening = opening
        self._splitter: Splitter | None = None

    def _blocks(self, position: dict[str, Any] | None) -> Iterator[bytes]:
        raise NotImplementedError

    @property
    def may_wait(self) -> bool:
        return True

    def fingerprint(self) -> dict[str, Any]:
        return {"name": self.name}

    def groups(self, position: dict[str, Any] | None, is_open: bool) -> Iterator[list[Part]]:
        saved = position or {"at": 0, "records": 0, "crc": 0}
        splitter = self._make_splitter(
            self.name, saved["at"], saved["records"], saved["crc"], is_open
        )
        self._splitter = splitter
        blocks = self._blocks(position)
        try:
            if not saved["at"]:
                yield splitter.split(self._begin(blocks, splitter))
            for block in blocks:
                yield splitter.split(block)
            last = splitter.finish()
            self.is_done = True
            yield last
        finally:
            blocks.close()  # type: ignore[attr-defined]  # they are generators

    def _begin(self, blocks: Iterator[bytes], splitter: Splitter) -> bytes:
        """bytes: the first ones, behind a byte order mark that is to be left out."""
        mark, start = codecs.BOM_UTF8, b""
        while len(start) < len(mark) and mark.startswith(start):
            block = next(blocks, b"")
            if not block:
                break
            start += block
        self._opening.look(self.name, start)
        if self._opening.strip_bom and start.startswith(mark):
            splitter.leave_out(mark)
            start = start[len(mark) :]
        return start

    def stop(self) -> list[Part]:
        if self._splitter is None or not self.read:
            return []
        self.is_done = True
        return self._splitter.stop()

    @property
    def skipped(self) -> int:
        return self._splitter.skipped if self._splitter is not None else 0

    def position(self) -> dict[str, Any]:
        assert self._splitter is not None
        return {
            "at": self._splitter.consumed,
            "records": self._splitter.records,
            "crc": self._splitter.crc,
        }


class FileInput(ByteInput):
    """A file, plain or compressed, or standard input ("-")."""

    def __init__(
        self,
        path: str,
        name: str,
        make_splitter: MakeSplitter,
        *,
        is_packed: bool = True,
        block_size: int = BLOCK_SIZE,
        opening: Opening = _AS_IT_IS,
        waiting: Waiting = contextlib.nullcontext,
    ):
        """is_packed: look whether it is compressed. Raises OSError if it cannot be read."""
        super().__init__(name, make_splitter, None if path == "-" else check_file(path), opening)
        self._path = path
        self._is_packed = is_packed
        self._block_size = block_size
        self._waiting = waiting
        self._fd: int | None = None

    @property
    def may_wait(self) -> bool:
        return self.size is None and (self._fd is None or not is_ready(self._fd))

    def fingerprint(self) -> dict[str, Any]:
        if self.size is None:  # of these, the CRC is compared
            return {"name": self.name}
        status = os.stat(self._path)
        return {"name": self.name, "size": status.st_size, "mtime_ns": status.st_mtime_ns}

    def _blocks(self, position: dict[str, Any] | None) -> Iterator[bytes]:
        if self._path == "-":
            yield from self._from(STDIN, position)
            return
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
        with self._waiting():  # a FIFO opens when its writer comes
            fd = os.open(self._path, flags)
        try:
            yield from self._from(fd, position)
        finally:
            self._fd = None
            os.close(fd)

    def _from(self, fd: int, position: dict[str, Any] | None) -> Iterator[bytes]:
        self._fd = fd
        at = position["at"] if position else 0
        if self.size is not None and not self._is_compressed(fd):
            assert self._splitter is not None
            self._splitter.has_crc = False  # `fingerprint` says whether the file is the same
            if at:
                os.lseek(fd, at, os.SEEK_SET)
                self.read += at
            yield from self._counted(fd)
            return
        blocks = self._counted(fd)
        texts = unpack(blocks, self.name) if self._is_packed else blocks
        if position:
            texts = self._skip(texts, at, position["crc"])
        yield from texts

    def _is_compressed(self, fd: int) -> bool:
        return self._is_packed and detect(os.pread(fd, START_SIZE, 0)) is not None

    def _counted(self, fd: int) -> Iterator[bytes]:
        for block in read_descriptor(fd, self.name, self._block_size, self._waiting):
            self.read += len(block)
            yield block

    def _skip(self, texts: Iterator[bytes], size: int, crc: int) -> Iterator[bytes]:
        left, found = size, 0
        while left:
            text = next(texts, b"")
            if not text:
                break
            found = zlib.crc32(memoryview(text)[:left], found)
            if len(text) > left:
                texts = _chain(text[left:], texts)
            left = max(0, left - len(text))
        if left or found != crc:
            raise CheckpointError(
                f"{self.name} does not begin with the {size} bytes that were read before the "
                "checkpoint"
            )
        yield from texts


class FollowInput(ByteInput):
    """A file that others write to; it never ends."""

    def __init__(
        self,
        path: str,
        name: str,
        make_splitter: MakeSplitter,
        follower: Follower,
        *,
        opening: Opening = _AS_IT_IS,
    ):
        super().__init__(name, make_splitter, None, opening)
        self._follower = follower

    def fingerprint(self) -> dict[str, Any]:
        return {"name": self.name, "followed": True}

    def _blocks(self, position: dict[str, Any] | None) -> Iterator[bytes]:
        for block in self._follower.blocks(position):
            self.read += len(block)
            yield block

    def position(self) -> dict[str, Any]:
        own = super().position()
        return own | self._follower.position(own["at"])


class SocketInput(ByteInput):
    """One connection. There is no going on from the middle of it."""

    def __init__(
        self,
        source: Address | Listener,
        make_splitter: MakeSplitter,
        *,
        block_size: int = BLOCK_SIZE,
        opening: Opening = _AS_IT_IS,
        waiting: Waiting = contextlib.nullcontext,
    ):
        address = source.address if isinstance(source, Listener) else source
        super().__init__(address.text, make_splitter, None, opening)
        self._source = source
        self._block_size = block_size
        self._waiting = waiting

    def _blocks(self, position: dict[str, Any] | None) -> Iterator[bytes]:
        if isinstance(self._source, Listener):
            blocks = self._source.accept(self._block_size, self._waiting)
        else:
            blocks = connect(self._source, self._block_size, self._waiting)
        for block in blocks:
            self.read += len(block)
            yield block


class ParquetInput:
    """The rows of a Parquet file."""

    def __init__(
        self,
        path: str,
        name: str,
        column: str,
        *,
        skip_bad: bool = False,
        waiting: Waiting = contextlib.nullcontext,
    ):
        """Raises OSError, DocumentError and MissingLibraryError, before anything is read."""
        self.name = name
        self.size = check_file(path)
        self.read = 0
        self.is_done = False
        self._path = path
        self._column = column
        self._skip_bad = skip_bad
        self._waiting = waiting
        self._texts = self._open(0)
        self._texts.close()

    def _open(self, row: int) -> ParquetTexts:
        return ParquetTexts(self._path, self._column, skip_bad=self._skip_bad, row=row)

    @property
    def skipped(self) -> int:
        return self._texts.skipped

    @property
    def may_wait(self) -> bool:
        return False

    def fingerprint(self) -> dict[str, Any]:
        status = os.stat(self._path)
        return {"name": self.name, "size": status.st_size, "mtime_ns": status.st_mtime_ns}

    def groups(self, position: dict[str, Any] | None, is_open: bool) -> Iterator[list[Part]]:
        self._texts = self._open(position["at"] if position else 0)
        try:
            for texts in self._texts.texts(self._waiting):
                self.read = int((self.size or 0) * self._texts.row / max(1, self._texts.rows))
                yield [(text, True) for text in texts]
            self.is_done = True
        finally:
            self._texts.close()

    def position(self) -> dict[str, Any]:
        return {"at": self._texts.row}

    def stop(self) -> list[Part]:
        return []


class Feed:
    """The documents of all inputs, in order.

    `position` is for JSON: which input, and where in it. `read` and `skipped` count bytes on the
    disk and broken records in this process.
    """

    def __init__(self, inputs: Iterator[Input], first: int = 0, at: dict[str, Any] | None = None):
        """inputs: those from number `first` on; at: a position in that one."""
        self._inputs = inputs
        self._number = first
        self._at = at
        self._input: Input | None = None
        self._read = self._skipped = 0
        self._is_before_wait = False

    @property
    def may_wait(self) -> bool:
        """bool: whether the next group may be a while in coming."""
        return self._is_before_wait or (self._input is not None and self._input.may_wait)

    def groups(self, is_open: bool = False) -> Iterator[list[Part]]:
        """Iterator of lists of parts; is_open: the position is inside a document."""
        for one in self._inputs:
            if one.may_wait:  # before it is opened
                self._is_before_wait = True
                yield []
                self._is_before_wait = False
            at, self._at = self._at, None
            self._input = one
            groups = one.groups(at, is_open)
            try:
                yield from groups
            finally:
                groups.close()  # type: ignore[attr-defined]
            is_open = False
            self._read += one.read
            self._skipped += one.skipped
            self._input = None
            self._number += 1
            yield []  # a moment for a checkpoint, for inputs without any group

    @property
    def name(self) -> str:
        """str: the input that is read now, for errors."""
        return self._input.name if self._input is not None else ""

    @property
    def read(self) -> int:
        return self._read + (self._input.read if self._input is not None else 0)

    @property
    def skipped(self) -> int:
        return self._skipped + (self._input.skipped if self._input is not None else 0)

    def stop(self) -> list[Part]:
        """list of parts: what is left of this input if nothing more is read."""
        return self._input.stop() if self._input is not None else []

    @property
    def done(self) -> int:
        """int: inputs that have ended, those before `first` included."""
        return self._number + (self._input is not None and self._input.is_done)

    def position(self) -> dict[str, Any]:
        """dict: where the next group begins."""
        if self._input is None or self._input.is_done:
            return {"input": self.done, "at": self._at}
        return {"input": self._number, "at": self._input.position()}


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest
