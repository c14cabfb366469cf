"""Checks finished outputs: digests, sizes, indexes against the ids, ids against the vocabulary.

Everything is read once, in the memory of a few blocks.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SidecarError
from ...files.rest_hash import RestHash
from ...stores import places
from ..sources.open_blocks import open_blocks
from .finished import BLOCK, DamagedIndex, Finished, find_finished, read_documents
from .format_table import TABLE
from .indexed import metric
from .parquet_sink import read_metadata
from .sidecar import Sidecar

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


Digests = Mapping[str, tuple[int, str]]  # names of files to sizes and SHA-256


class OutputCheck:
    """Checks one output after another; the findings go to a report."""

    def __init__(self, report: Report):
        self._report = report
        self._path = ""

    def check(self, path: str, recorded: Digests | None = None) -> None:
        """Check the output that the file at `path` belongs to. Raises MissingLibraryError.

        recorded: what a part's record says of the files, by their names without folders.
        """
        self._path = path
        recorded = recorded or {}
        try:
            one = find_finished(path)
            self._path = one.path
            self._check(one, recorded)
        except (SidecarError, ValueError) as error:
            self._fault(str(error).removeprefix(f"{self._path} "))
        except IsADirectoryError:
            self._fault("it is a folder, but not that of a job in parts: name the files in it")
        except OSError as error:
            self._fault(error.strerror or str(error), error.filename)

    def check_file(self, path: str, size: int, sha256: str) -> None:
        """Compare the size and the SHA-256 of a file."""
        self._report.files += 1
        try:
            read = _Reading(path)
            for _ in read.blocks():
                pass
        except OSError as error:
            self._fault(error.strerror or str(error), path)
            return
        self._compare(path, read, size, read.whole, sha256)

    def _fault(self, what: str, path: object = None) -> None:
        self._report.faults.append(Fault(str(path or self._path), what))

    def _note(self, what: str) -> None:
        self._report.notes.append(Fault(self._path, what))

    def _compare(self, path: str, read: _Reading, size: int, digest: Any, expected: str) -> None:
        if read.size != size:
            self._fault(f"it has {read.size:,} bytes, not the {size:,} that were recorded", path)
        elif digest.hexdigest() != expected:
            self._fault(
                f"its SHA-256 is {digest.hexdigest()[:16]}…, not {expected[:16]}…, which was "
                "recorded: its contents have changed",
                path,
            )

    def _check(self, one: Finished, recorded: Digests) -> None:
        about = one.about
        if about is None:
            self._note("it has no sidecar: neither digests nor ids can be compared")
        format = TABLE[one.format]
        read = _Reading(one.path, format.header_size if about is None else about.header_size)
        self._report.files += 1
        digests = hashlib.sha256(), hashlib.sha256()  # of a table: of ids, of lengths of documents
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
        whole = recorded.get(_name(one.path))
        for _ in read.rest if whole or not format.has_schema else ():  # the digest is of all
            pass
        if not has_index:
            count = read.size // (2 if one.raw_format == "u16" else 4)
        self._report.tokens += count
        if whole is not None:
            self._compare(one.path, read, whole[0], read.whole, whole[1])
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
        if about is not None:
            self._check_about(about, read, count)
        for suffix, recorded_file in (about.files if about is not None else {}).items():
            if suffix in format.further:
                self.check_file(one.further(suffix), *recorded_file)
        if one.format == "datatrove":
            self._check_metadata(one, count)
        if about is not None and format.keeps_documents and has_index:
            is_fewer = one.format == "megatron"  # it leaves out documents without ids
            if documents > about.documents or (documents < about.documents and not is_fewer):
                self._fault(f"it has {documents:,} documents, not the {about.documents:,} recorded")
        self._report.documents += documents or (about.documents if about is not None else 0)

    def _check_about(self, about: Sidecar, read: _Reading, count: int) -> None:
        assert about.sha256 is not None  # as of every sidecar
        self._compare(self._path, read, about.size, read.after_header, about.sha256)
        if count != about.tokens:
            self._fault(f"it has {count:,} ids, not the {about.tokens:,} recorded")

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
        self, one: Finished, tokens: int, documents: int, digests: tuple[Any, Any]
    ) -> None:
        """The schema has digests of all ids and of the lengths of the documents."""
        row = read_metadata(one.path) or {}
        for key, found in (("tokens", tokens), ("documents", documents)):
            if row.get(key) != found:
                self._fault(f"it has {found:,} {key}, not the {row.get(key)} recorded")
        for key, made, what in (
            ("ids_sha256", digests[0], "ids"),
            ("lengths_sha256", digests[1], "lengths of the documents"),
        ):
            if row.get(key) != made.hexdigest():
                self._fault(f"the SHA-256 of its {what} is not the one recorded in its schema")


class _Reading:
    """The blocks of a file, and what is known of it after they were read."""

    def __init__(self, path: str, header_size: int = 0):
        self._path = path
        self.size = 0
        self.whole = hashlib.sha256()
        self.after_header = RestHash(header_size) if header_size else self.whole
        self.rest: Iterator[bytes] = iter(())

    def blocks(self) -> Iterator[bytes]:
        self.rest = self._blocks()
        return self.rest

    def _blocks(self) -> Iterator[bytes]:
        blocks = open_blocks(self._path, size=BLOCK)
        with contextlib.closing(blocks):  # type: ignore[type-var]
            for block in blocks:
                self.whole.update(block)
                if self.after_header is not self.whole:
                    self.after_header.update(block)
                self.size += len(block)
                yield block


def _source(one: Finished) -> str:
    return one.about.source if one.about is not None else ""


def _name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
