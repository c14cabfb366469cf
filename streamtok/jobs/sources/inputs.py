"""The kinds of input: files and objects, followed files and Parquet files.

An input yields documents, as groups of parts (see `splitters`). Between two groups, `position`
returns, as JSON, the position where the next group begins, so that another process can continue
there. Positions count decompressed bytes. To continue, a compressed file is decompressed from its
beginning, and standard input must be sent again from its beginning; in both cases the CRC of the
skipped bytes must match.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...errors import ArchiveError, CheckpointError, DocumentError
from ..stores.urls import is_url
from .blocks import (
    Waiting,
    check_file,
    is_compressed,
    is_ready,
    open_blocks,
    skip_known,
)
from .compression import unpack
from .fingerprint import FileWatch
from .follow import Follower
from .parquet_texts import ParquetTexts
from .reading import Reading
from .records import OnBad, Positions
from .splitters import Part, Splitter, Start, together
from .unit_ends import CleanCuts, Divider

if TYPE_CHECKING:
    from .conversations import Conversations


class Input(ABC):
    """One input of a run.

    name: for errors. size: bytes on the disk, None if unknown. read: bytes read so far. is_done:
    whether the last group was yielded. ends_unit: whether a unit ends after the latest group.
    clean: finds the clean cuts at which units may end inside documents. conversations: the chat
    template, for the splitter.
    """

    clean: CleanCuts | None = None
    conversations: Conversations | None = None

    def __init__(self, name: str, size: int | None):
        self.name = name
        self.size = size
        self.read = 0
        self.is_done = False
        self.ends_unit = False

    @property
    @abstractmethod
    def positions(self) -> Positions:
        """The records that the documents of the latest group came from."""

    @property
    def may_wait(self) -> bool:
        """Whether the next group may take a while to arrive."""
        return False

    def fingerprint(self) -> dict[str, Any]:
        """The properties that must be unchanged when a checkpoint is continued, for JSON."""
        return {"name": self.name}

    @abstractmethod
    def groups(self, position: dict[str, Any] | None, is_open: bool) -> Iterator[list[Part]]:
        """Yield groups of parts from `position` on. is_open: the position is inside a document."""

    @abstractmethod
    def position(self) -> dict[str, Any]:
        """The position where the next group begins, for JSON."""

    def stop(self) -> list[Part]:
        """Stop reading; return the remaining parts."""
        return []


class ByteInput(Input):
    """Base class of inputs that are streams of bytes."""

    def __init__(self, name: str, reading: Reading, on_bad: OnBad, size: int | None = None):
        super().__init__(name, size)
        self._reading = reading
        self._on_bad = on_bad
        self._ends = True  # whether the end of the input also ends an undivided document
        self._splitter: Splitter | None = None
        self._divider: Divider | None = None

    @abstractmethod
    def _blocks(self, position: dict[str, Any] | None) -> Iterator[bytes]:
        """Yield the bytes from `position` on, decompressed."""

    def groups(self, position: dict[str, Any] | None, is_open: bool) -> Iterator[list[Part]]:
        start = Start(is_open=is_open)
        if position:
            start = Start(position["at"], position["records"], position["crc"], is_open)
        how: dict[str, Any] = {"on_bad": self._on_bad, "ends": self._ends}
        splitter = self._splitter = self._reading.splitter(self.name, start, **how)
        splitter.conversations = self.conversations
        self._divider = Divider(splitter, self.clean)
        blocks = self._blocks(position)
        try:
            for block in blocks:
                if not block:
                    yield []
                    continue
                yield from self._marked(self._divider.split(block))
            self._check_unchanged()  # before the rest is used as the last line
            yield from self._marked(self._divider.rest())
            last = splitter.finish()
            self.is_done = True
            yield last
        except (ArchiveError, DocumentError):
            self._check_unchanged(False)  # a file truncated meanwhile looks damaged
            raise
        finally:
            # Errors in closing a generator would be lost if the garbage collector closed it.
            blocks.close()  # type: ignore[attr-defined]

    def _check_unchanged(self, is_read: bool = True) -> None:
        """Raise OSError if the input is known to have changed since it was opened.

        is_read: whether all of it should have been read.
        """

    def stop(self) -> list[Part]:
        if self._splitter is None or self._divider is None or not self.read:
            return []
        self.is_done = True
        held = [part for parts, _ in self._divider.rest() for part in parts]
        return held + self._splitter.stop()

    def _marked(self, divided: Iterator[tuple[list[Part], bool]]) -> Iterator[list[Part]]:
        """Yield the groups, and set `ends_unit` for each."""
        for parts, ends_unit in divided:
            self.ends_unit = ends_unit
            yield parts
            self.ends_unit = False

    @property
    def positions(self) -> Positions:
        if self._splitter is None:
            return Positions(lambda number: self.name)
        return self._splitter.positions

    def position(self) -> dict[str, Any]:
        assert self._splitter is not None
        return {
            "at": self._splitter.consumed,
            "records": None if self._splitter.counted_from else self._splitter.records,
            "crc": self._splitter.crc,
        }


class FileInput(ByteInput):
    """A file or an object, plain or compressed, or standard input ("-")."""

    def __init__(
        self,
        path: str,
        name: str,
        reading: Reading,
        *,
        on_bad: OnBad,
        block_size: int,
        waiting: Waiting = contextlib.nullcontext,
        stop: int | None = None,
    ):
        """path: a path, a URL, or "-". stop: the byte of an uncompressed file before which to end.

        Raises OSError if the input cannot be read.
        """
        is_kept = path != "-" and (is_url(path) or check_file(path) is not None)
        # A pipe or a device has no fingerprint: the CRC is compared instead.
        self._watch = FileWatch(path, name) if is_kept else None
        super().__init__(name, reading, on_bad, self._watch.size if self._watch else None)
        self._path = path
        self._block_size = block_size
        self._waiting = waiting
        self._stop = stop
        self._ends = stop is None
        self._fd: int | None = None

    @property
    def may_wait(self) -> bool:
        return self.size is None and (self._fd is None or not is_ready(self._fd))

    def fingerprint(self) -> dict[str, Any]:
        about = {} if self._watch is None else self._watch.fingerprint()._asdict()
        return {"name": self.name, **about}

    def _check_unchanged(self, is_read: bool = True) -> None:
        if self._watch is not None:
            self._watch.check(self.read, self._stop if is_read else 0)

    def _blocks(self, position: dict[str, Any] | None) -> Iterator[bytes]:
        at = position["at"] if position else 0
        if self._watch is not None and self._watch.size > self._block_size:
            self._watch.fingerprint()  # a smaller file is read in one call: no change in between
        if self.size is None or is_compressed(self._path):
            # As above, errors in closing would otherwise be lost.
            with contextlib.closing(self._counted(0)) as blocks:  # type: ignore[type-var]
                texts = unpack(blocks, self.name)
                if position:
                    changed = CheckpointError(
                        f"{self.name} does not begin with the {at} bytes that were read before the "
                        "checkpoint"
                    )
                    texts = skip_known(texts, at, position["crc"], changed)
                yield from texts
            return
        assert self._splitter is not None
        self._splitter.has_crc = False  # `fingerprint` detects changes
        self.read += at
        yield from self._counted(at)

    def _counted(self, start: int) -> Iterator[bytes]:
        about = self._watch.fingerprint() if self._watch and is_url(self._path) else None
        blocks = open_blocks(
            self._path, self.name, start=start, stop=self._stop, size=self._block_size,
            waiting=self._waiting, about=about, on_open=self._opened,
        )  # fmt: skip
        try:
            for block in blocks:
                self.read += len(block)
                yield block
        finally:
            self._fd = None
            blocks.close()  # type: ignore[attr-defined]  # a generator

    def _opened(self, fd: int) -> None:
        self._fd = fd


class FollowInput(ByteInput):
    """A file that another process appends to. It never ends, and yields an empty group before each
    wait.
    """

    def __init__(self, name: str, reading: Reading, on_bad: OnBad, follower: Follower):
        super().__init__(name, reading, on_bad)
        self._follower = follower

    @property
    def may_wait(self) -> bool:
        return True

    def fingerprint(self) -> dict[str, Any]:
        return {"name": self.name, "followed": True}

    def _blocks(self, position: dict[str, Any] | None) -> Iterator[bytes]:
        assert self._splitter is not None
        for block in self._follower.blocks(position):
            self.read += len(block)
            yield block
            self._follower.release(self._splitter.consumed)

    def position(self) -> dict[str, Any]:
        own = super().position()
        return own | self._follower.position(own["at"])


class ParquetInput(Input):
    """The rows of a Parquet file."""

    def __init__(
        self,
        path: str,
        name: str,
        reading: Reading,
        *,
        on_bad: OnBad,
        waiting: Waiting = contextlib.nullcontext,
        stop: int | None = None,
    ):
        """Open the file once, to raise OSError, DocumentError or MissingLibraryError early.

        reading: names the column of texts. on_bad: called with rows without a text, if `reading`
        skips them. stop: the row before which to end; it must be the first row of a row group.
        """
        assert reading.parquet is not None
        if not is_url(path):
            check_file(path)
        self._watch = FileWatch(path, name)
        super().__init__(name, self._watch.size)
        self._path = path
        self._column = reading.parquet
        self._on_bad = on_bad if reading.skip_bad_lines else None
        self._waiting = waiting
        self._stop = stop
        self._texts = self._open(0)
        self._texts.close()

    def _open(self, row: int) -> ParquetTexts:
        return ParquetTexts(self._path, self._column, on_bad=self._on_bad, row=row)

    @property
    def positions(self) -> Positions:
        return self._texts.positions

    def fingerprint(self) -> dict[str, Any]:
        return {"name": self.name, **self._watch.fingerprint()._asdict()}

    def groups(self, position: dict[str, Any] | None, is_open: bool) -> Iterator[list[Part]]:
        self._watch.fingerprint()
        self._texts = self._open(position["at"] if position else 0)
        try:
            for texts in self._texts.texts(self._waiting):
                self.read = int((self.size or 0) * self._texts.row / max(1, self._texts.rows))
                self.ends_unit = self._texts.row in self._texts.unit_ends
                yield together(texts)
                if self._texts.row == self._stop:
                    break
            self._watch.check(0, 0)
            self.is_done = True
        except DocumentError:
            self._watch.check(0, 0)  # as in ByteInput
            raise
        finally:
            self._texts.close()

    def position(self) -> dict[str, Any]:
        return {"at": self._texts.row}
