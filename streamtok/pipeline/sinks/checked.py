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
from ...registry import get_encoding, list_encoding_names
from ...stores import places
from .finished import (
    INDEX_HEADER,
    Finished,
    find_finished,
    read_array,
    read_documents,
    read_index_header,
)
from .format_table import TABLE, has_schema, read_ids
from .indexed import metric
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
        if has_schema(one.format):
            self._check_table(one)
            if (whole := recorded.get(_name(one.path))) is not None:
                self.check_file(one.path, *whole)
                self._report.files -= 1
            return
        format = TABLE[one.format]
        read = _Reading(one.path, format.header_size if about is None else about.header_size)
        self._report.files += 1
        count = 0
        try:
            for ids in read_ids(read.blocks(), one.raw_format):
                self._check_ids(one, ids, count)
                count += len(ids)
        except ValueError as error:
            self._fault(str(error))
            for _ in read.rest:  # the digest is of all
                pass
        self._report.tokens += count
        if (whole := recorded.get(_name(one.path))) is not None:
            self._compare(one.path, read, *whole[:1], read.whole, whole[1])
        if format.header is not None and about is not None:
            width = 2 if about.dtype == "uint16" else 4
            head = places.read_head(one.path, format.header_size)
            if head != format.header(width, count):
                self._fault(f"its header is not that of {count:,} {about.dtype}")
        if about is not None:
            self._check_about(about, read, count)
        documents = self._check_index(one, count)
        if documents is None and format.read_lines is not None:
            documents = read.lines
        if about is not None and documents is not None:
            is_fewer = one.format == "megatron"  # it leaves out documents without ids
            if documents > about.documents or (documents < about.documents and not is_fewer):
                self._fault(f"it has {documents:,} documents, not the {about.documents:,} recorded")
        self._report.documents += documents or (about.documents if about is not None else 0)

    def _check_about(self, about: Sidecar, read: _Reading, count: int) -> None:
        if about.sha256 is None:
            self._note("its sidecar has no SHA-256: an earlier version wrote it")
            if read.size != about.size:
                self._fault(f"it has {read.size:,} bytes, not the {about.size:,} recorded")
        else:
            self._compare(self._path, read, about.size, read.after_header, about.sha256)
        if count != about.tokens:
            self._fault(f"it has {count:,} ids, not the {about.tokens:,} recorded")

    def _check_ids(self, one: Finished, ids: npt.NDArray[Any], before: int) -> None:
        """Report the first id that the vocabulary does not have."""
        most = _max_id(one.about)
        if most is None or not len(ids) or (int(ids.max()) <= most and int(ids.min()) >= 0):
            return
        at = int(np.argmax((ids > most) | (ids < 0)))
        what = f"id {ids[at]} (after {before + at:,} others) is not in {_source(one)} (0 … {most})"
        if not any(one.path == fault.path and "is not in" in fault.what for fault in self._faults):
            self._fault(what)

    @property
    def _faults(self) -> list[Fault]:
        return self._report.faults

    def _check_index(self, one: Finished, count: int) -> int | None:
        """Check the further files; return the number of documents in the index, if there is one."""
        for suffix in TABLE[one.format].further:
            if one.about is not None and suffix in one.about.files:
                self.check_file(one.further(suffix), *one.about.files[suffix])
        if one.format == "megatron":
            return self._check_megatron(one, count)
        if one.format == "datatrove":
            return self._check_datatrove(one, count)
        return None

    def _check_megatron(self, one: Finished, count: int) -> int | None:
        path = one.further(".idx")
        try:
            width, documents = read_index_header(path)
            start = INDEX_HEADER.size
            at = number = 0
            pointers = read_array(path, "<i8", start + 4 * documents, documents)
            for lengths, found in zip(
                read_array(path, "<i4", start, documents), pointers, strict=True
            ):
                ends = at + np.cumsum(lengths, dtype=np.int64) * width
                expected = np.concatenate([[at], ends[:-1]])
                wrong = np.flatnonzero((found != expected) | (lengths < 0))
                if len(wrong):
                    which = int(wrong[0])
                    self._fault(
                        f"document {number + which} begins at byte {found[which]}; after the "
                        f"documents before it, {expected[which]} is right",
                        path,
                    )
                    return documents
                at, number = int(ends[-1]), number + len(lengths)
            if at != count * width:
                self._fault(
                    f"its {documents:,} documents have {at:,} bytes, but {one.path} has "
                    f"{count * width:,}",
                    path,
                )
            number = 0
            for found in read_array(path, "<i8", start + 12 * documents, documents + 1):
                if (found != np.arange(number, number + len(found))).any():
                    self._fault(f"its list of documents is damaged after document {number}", path)
                    return documents
                number += len(found)
        except (ValueError, OSError) as error:
            self._fault(_said(error, path), path)
            return None
        return documents

    def _check_datatrove(self, one: Finished, count: int) -> int | None:
        path = one.further(".index")
        documents, at = 0, 0
        try:
            for ends in read_array(path, "<u8"):
                steps = np.diff(ends.astype(np.int64), prepend=at)
                if (steps < 0).any():
                    number = documents + int(np.argmax(steps < 0))
                    self._fault(f"document {number} ends before it begins", path)
                    return None
                documents, at = documents + len(ends), int(ends[-1])
            if at != count:
                self._fault(f"its documents have {at:,} ids, but {one.path} has {count:,}", path)
            path = one.further(".metadata")
            name, *rows = places.read_head(path, 1 << 12).decode("utf-8", "replace").split("\n")
            width = 2 if one.raw_format == "u16" else 4
            if not name.endswith(f"|{width}") or rows != [str(count), metric(count)]:
                self._fault(f"it does not say that there are {count:,} ids of {width} bytes", path)
        except (ValueError, OSError) as error:
            self._fault(_said(error, path), path)
            return None
        return documents

    def _check_table(self, one: Finished) -> None:
        """The schema has digests of all ids and of the lengths of the documents."""
        from .arrow import read_schema

        self._report.files += 1
        row = read_schema(one.path) or {}
        digest, lengths_digest = hashlib.sha256(), hashlib.sha256()
        tokens = documents = open_size = 0
        for ids, ends in read_documents(one):
            self._check_ids(one, ids, tokens)
            digest.update(ids.astype("<u4").tobytes())
            places_of = np.concatenate([[-open_size], ends])
            lengths_digest.update(np.diff(places_of).astype("<i8").tobytes())
            open_size = len(ids) - int(places_of[-1])
            tokens, documents = tokens + len(ids), documents + len(ends)
        self._report.tokens += tokens
        self._report.documents += documents
        if one.about is None:
            return
        if "ids_sha256" not in row:
            self._note("its schema has no SHA-256: an earlier version wrote it")
            return
        for key, found in (("tokens", tokens), ("documents", documents)):
            if row.get(key) != found:
                self._fault(f"it has {found:,} {key}, not the {row.get(key)} recorded")
        for key, made, what in (
            ("ids_sha256", digest, "ids"),
            ("lengths_sha256", lengths_digest, "lengths of the documents"),
        ):
            if row.get(key) != made.hexdigest():
                self._fault(f"the SHA-256 of its {what} is not the one recorded in its schema")


class _Reading:
    """The blocks of a file, and what is known of it after they were read."""

    def __init__(self, path: str, header_size: int = 0):
        self._path = path
        self._header_size = header_size
        self.size = 0
        self.lines = 0
        self.whole = hashlib.sha256()
        self.after_header = hashlib.sha256() if header_size else self.whole
        self.rest: Iterator[bytes] = iter(())

    def blocks(self) -> Iterator[bytes]:
        self.rest = self._blocks()
        return self.rest

    def _blocks(self) -> Iterator[bytes]:
        with contextlib.closing(places.blocks_of(self._path)) as blocks:  # type: ignore[type-var]
            for block in blocks:
                self.whole.update(block)
                if self._header_size:
                    self.after_header.update(block[max(0, self._header_size - self.size) :])
                self.size += len(block)
                self.lines += block.count(b"\n")
                yield block


def _max_id(about: Sidecar | None) -> int | None:
    if about is None:
        return None
    if about.max_id is None and about.encoding in list_encoding_names():
        encoding = get_encoding(about.encoding)
        return encoding.max_token_value if encoding.digest == about.digest else None
    return about.max_id


def _source(one: Finished) -> str:
    return one.about.source if one.about is not None else ""


def _name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _said(error: Exception, path: str) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error).removeprefix(f"{path} ")
