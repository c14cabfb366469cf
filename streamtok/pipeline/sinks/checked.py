"""Checks finished outputs: digests, sizes, indexes against the ids, ids against the vocabulary.

Everything is read once, in the memory of a few blocks.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SidecarError
from ...files.part_file import Piece
from ...stores import places
from ..sources.open_blocks import open_blocks
from .finished import BLOCK, DamagedIndex, Finished, find_finished, read_documents
from .format_table import TABLE
from .indexed import metric
from .parquet_sink import read_metadata
from .sidecar import Digests

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Fault:
    """A fault in a file: its path or URL, and the error with its position."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


@dataclass
class Report:
    """What `verify` found.

    files: how many files were read. tokens, documents: in them, as far as the formats tell. faults:
    what is wrong. notes: what could not be checked.
    """

    files: int = 0
    tokens: int = 0
    documents: int = 0
    faults: list[Fault] = field(default_factory=list)
    notes: list[Fault] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        """Whether there are no faults."""
        return not self.faults


class OutputCheck:
    """Checks one output after another; the findings go to a report."""

    def __init__(self, report: Report):
        self._report = report
        self._path = ""

    def check(self, path: str) -> None:
        """Check the output that the file at `path` belongs to. Raises MissingLibraryError."""
        self._path = path
        try:
            one = find_finished(path)
            self._path = one.path
            self._check(one)
        except (SidecarError, ValueError) as error:
            self._fault(str(error).removeprefix(f"{self._path} "))
        except IsADirectoryError:
            self._fault("it is a folder, but not that of a job in parts: name the files in it")
        except OSError as error:
            self._fault(error.strerror or str(error), error.filename)

    def _check_file(self, path: str, recorded: Digests) -> None:
        """Compare the size and the SHA-256 of the pieces of a file."""
        self._report.files += 1
        read = _Reading(path, recorded)
        try:
            for _ in read.blocks():
                pass
        except OSError as error:
            self._fault(error.strerror or str(error), path)
            return
        self._compare(path, read, recorded)

    def _fault(self, what: str, path: object = None) -> None:
        self._report.faults.append(Fault(str(path or self._path), what))

    def _note(self, what: str) -> None:
        self._report.notes.append(Fault(self._path, what))

    def _compare(self, path: str, read: _Reading, recorded: Digests) -> None:
        if read.size != recorded.size:
            self._fault(
                f"it has {read.size:,} bytes, not the {recorded.size:,} that were recorded", path
            )
        elif (place := read.pieces.first_fault()) is not None:
            start, stop, found, expected = place
            self._fault(
                f"the SHA-256 of its bytes {start:,} to {stop:,} is {found[:16]}…, not "
                f"{expected[:16]}…, which was recorded: its contents have changed",
                path,
            )

    def _check(self, one: Finished) -> None:
        about = one.about
        if about is None:
            self._note("it has no sidecar: neither digests nor ids can be compared")
        format = TABLE[one.format]
        recorded = about.digests if about is not None else None
        read = _Reading(one.path, recorded)
        self._report.files += 1
        row = (read_metadata(one.path) or {}).get("pieces", {}) if format.has_schema else {}
        digests = PieceCheck(row.get("ids", ())), PieceCheck(row.get("lengths", ()))  # of a table
        count = documents = open_size = 0
        has_index = True
        try:
            for ids, ends in read_documents(one, blocks=read.blocks()):
                self._check_ids(one, ids, count)
                if format.has_schema:
                    starts = np.concatenate([[-open_size], ends])
                    digests[0].update(ids.astype("<u4").tobytes())
                    digests[1].update(np.diff(starts).astype("<i8").tobytes())
                    open_size = len(ids) - int(starts[-1])
                count, documents = count + len(ids), documents + len(ends)
        except DamagedIndex as error:
            has_index = False
            self._fault(error.what, error.path)
        except ValueError as error:
            self._fault(str(error))
        for _ in read.rest if not format.has_schema else ():  # the digests are of all
            pass
        if not has_index:
            count = read.size // (2 if one.raw_format == "u16" else 4)
        self._report.tokens += count
        if recorded is not None:
            self._compare(self._path, read, recorded)
        if format.has_schema:
            self._report.documents += documents
            if about is not None:
                self._check_schema(one, count, documents, digests)
            return
        if format.header is not None and about is not None:
            width = 2 if about.dtype == "uint16" else 4
            head = places.read_head(one.path, format.header_size)
            if head != format.header(width, count):
                self._fault(f"its header is not that of {count:,} {about.dtype}")
        if about is not None and count != about.tokens:
            self._fault(f"it has {count:,} ids, not the {about.tokens:,} recorded")
        for suffix, recorded_file in (about.files if about is not None else {}).items():
            if suffix in format.further:
                self._check_file(one.further(suffix), recorded_file)
        if one.format == "datatrove":
            self._check_metadata(one, count)
        if about is not None and format.keeps_documents and has_index:
            is_fewer = one.format == "megatron"  # it leaves out documents without ids
            if documents > about.documents or (documents < about.documents and not is_fewer):
                self._fault(f"it has {documents:,} documents, not the {about.documents:,} recorded")
        self._report.documents += documents or (about.documents if about is not None else 0)

    def _check_ids(self, one: Finished, ids: npt.NDArray[Any], before: int) -> None:
        """Report the first id that the vocabulary does not have."""
        most = None if one.about is None else one.about.max_id
        if most is None or not len(ids) or (int(ids.max()) <= most and int(ids.min()) >= 0):
            return
        at = int(np.argmax((ids > most) | (ids < 0)))
        what = f"id {ids[at]} (after {before + at:,} others) is not in {_source(one)} (0 … {most})"
        if not any(one.path == fault.path and "is not in" in fault.what for fault in self._faults):
            self._fault(what)

    @property
    def _faults(self) -> list[Fault]:
        return self._report.faults

    def _check_metadata(self, one: Finished, count: int) -> None:
        path = one.further(".metadata")
        try:
            name, *rows = places.read_head(path, 1 << 12).decode("utf-8", "replace").split("\n")
        except OSError as error:
            self._fault(error.strerror or str(error), path)
            return
        width = 2 if one.raw_format == "u16" else 4
        if not name.endswith(f"|{width}") or rows != [str(count), metric(count)]:
            self._fault(f"it does not say that there are {count:,} ids of {width} bytes", path)

    def _check_schema(
        self,
        one: Finished,
        tokens: int,
        documents: int,
        digests: tuple[PieceCheck, PieceCheck],
    ) -> None:
        """The schema has digests of all ids and of the lengths of the documents."""
        row = read_metadata(one.path) or {}
        for key, found in (("tokens", tokens), ("documents", documents)):
            if row.get(key) != found:
                self._fault(f"it has {found:,} {key}, not the {row.get(key)} recorded")
        for made, what in ((digests[0], "ids"), (digests[1], "lengths of the documents")):
            if made.first_fault() is not None:
                self._fault(f"the SHA-256 of its {what} is not the one recorded in its schema")


class PieceCheck:
    """Compares bytes with the digests of their pieces."""

    def __init__(self, pieces: Sequence[Piece], skipped: int = 0):
        """skipped: bytes before the first piece."""
        self._pieces = iter(pieces)
        self._begin = self._at = 0  # where the piece begins; how many bytes came
        self._left, self._expected = skipped, ""
        self._hash = hashlib.sha256()
        self._fault: tuple[int, int, str, str] | None = None

    def update(self, data: bytes) -> None:
        """Take the next bytes."""
        view = memoryview(data)
        while view:
            while not self._left:
                self._end()
            taken = view[: self._left]
            self._hash.update(taken)
            self._at += len(taken)
            self._left -= len(taken)
            view = view[len(taken) :]

    def _end(self) -> None:
        found = self._hash.hexdigest()
        if self._expected and found != self._expected and self._fault is None:
            self._fault = self._begin, self._at, found, self._expected
        # What comes behind all pieces belongs to none: it cannot be compared.
        self._left, self._expected = next(self._pieces, (sys.maxsize, ""))
        self._begin, self._hash = self._at, hashlib.sha256()

    def first_fault(self) -> tuple[int, int, str, str] | None:
        """(start, stop, digest, the one that was recorded) of the first piece that differs.

        Call it when all bytes came. Pieces that did not come, or came in part, differ.
        """
        if self._left and self._expected and self._fault is None:
            self._fault = self._begin, self._at, self._hash.hexdigest(), self._expected
        elif not self._left:
            self._end()
            if self._left and self._expected:
                return self.first_fault()
        return self._fault


class _Reading:
    """The blocks of a file, and what is known of it after they were read."""

    def __init__(self, path: str, recorded: Digests | None = None):
        self._path = path
        self.size = 0
        header = 0 if recorded is None else recorded.header_size
        self.pieces = PieceCheck(() if recorded is None else recorded.pieces, header)
        self.rest: Iterator[bytes] = iter(())

    def blocks(self) -> Iterator[bytes]:
        self.rest = self._blocks()
        return self.rest

    def _blocks(self) -> Iterator[bytes]:
        blocks = open_blocks(self._path, size=BLOCK)
        with contextlib.closing(blocks):  # type: ignore[type-var]
            for block in blocks:
                self.pieces.update(block)
                self.size += len(block)
                yield block


def _source(one: Finished) -> str:
    return one.about.source if one.about is not None else ""
