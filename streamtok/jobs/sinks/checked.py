"""Checks finished outputs by comparing their files with the digests in the sidecars.

The ids and indexes are not parsed. Every file is read once, block by block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from ...errors import SidecarError
from ..stores import places
from .finished import first_file, further_file
from .format_table import TABLE
from .sidecar import Digests, Sidecar, read_sidecar, sidecar_path

_BLOCK = 1 << 18  # bytes


@dataclass(frozen=True)
class Fault:
    """A fault in a file. path: a path or URL. what: the error, with its position."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


@dataclass
class Report:
    """The result of `verify`.

    files: number of files read. tokens, documents: their totals according to the sidecars. faults:
    all errors. on_read: called with the size of each block read.
    """

    files: int = 0
    tokens: int = 0
    documents: int = 0
    faults: list[Fault] = field(default_factory=list)
    on_read: Callable[[int], None] = field(default=lambda size: None, repr=False, compare=False)

    @property
    def is_ok(self) -> bool:
        return not self.faults

    def add(self, path: str, what: object) -> None:
        """Add a fault. what: an exception or a message."""
        if isinstance(what, OSError):
            path, what = str(what.filename or path), what.strerror or what
        self.faults.append(Fault(path, str(what).removeprefix(f"{path}: ")))


def check_output(path: str, report: Report) -> Sidecar | None:
    """Check the output that the file at `path` belongs to.

    Return its sidecar, or None if the sidecar is missing or cannot be used.
    """
    try:
        first = first_file(path)
        places.read_head(first, 1)  # raises if it cannot be read
        about = read_sidecar(first)
        if about is None:
            what = f"it has no sidecar {sidecar_path(first)}, so its contents cannot be checked"
            report.add(first, what)
            return None
        if about.format not in TABLE:
            report.add(first, f"its sidecar names the format {about.format}, which is not known")
            return None
        report.tokens += about.tokens
        report.documents += about.documents
    except IsADirectoryError:
        report.add(path, "it is a folder, but not of a job in parts: give the files in it instead")
        return None
    except (SidecarError, OSError) as error:
        report.add(path, error)
        return None
    _check_file(first, about.digests, report)
    for suffix in dict.fromkeys([*TABLE[about.format].further, *about.files]):
        if suffix in about.files:
            _check_file(further_file(first, about, suffix), about.files[suffix], report)
        else:
            report.add(first, f"its sidecar does not say what its {suffix} should hold")
    return about


def _check_file(path: str, recorded: Digests, report: Report) -> None:
    """Compare the size of a file and the SHA-256 of its pieces with those recorded."""
    report.files += 1
    try:
        size = places.size_of(path)
        if size != recorded.size:
            report.add(path, f"it has {size:,} bytes, not the {recorded.size:,} that were recorded")
            return
        if size != sum(length for length, _ in recorded.pieces):
            report.add(path, "its sidecar is damaged: its pieces are not the whole file")
            return
        with places.open_binary(path) as file:
            begin = 0
            for length, expected in recorded.pieces:
                digest, left = hashlib.sha256(), length
                while left and (block := file.read(min(_BLOCK, left))):
                    digest.update(block)
                    left -= len(block)
                    report.on_read(len(block))
                if (found := digest.hexdigest()) != expected:
                    report.add(
                        path,
                        f"the SHA-256 of its bytes {begin:,} to {begin + length:,} is "
                        f"{found[:16]}…, not {expected[:16]}…, which was recorded: its contents "
                        "have changed",
                    )
                    return
                begin += length
    except OSError as error:
        report.add(path, error)
