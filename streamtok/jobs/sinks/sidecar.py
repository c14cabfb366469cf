"""The sidecar of a file of ids: JSON in `OUTPUT.json` beside it.

The sidecar holds the encoding (with the digest of its vocabulary), the format, the type of the ids,
the counts, and the sizes and digests of the file and of its indexes. Readers take the encoding from
it, and reject a file whose size differs; `streamtok verify` compares the digests.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import SidecarError
from ...files import Piece
from ..stores import places

_SUFFIX = ".json"
_BEGIN = b'{\n "encoding": '
_MOST_BYTES = 1 << 16  # maximum size of a sidecar, unless it has many digests


class Digests(NamedTuple):
    """What a sidecar records about a file: its size in bytes, and the digests of its pieces."""

    size: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Sidecar:
    """The contents of a sidecar. dtype: the type of the ids in the file, None for text and tables.

    pieces: the digests of the file. files: the other files, by suffix, such as ".idx". vocabulary:
    the vocabulary file, if one was used. job: the digest of the plan's part. text_bytes, skipped:
    the bytes of text, and the number of skipped records by reason; only for outputs without shards.
    """

    encoding: str
    digest: str
    format: str
    dtype: str | None
    tokens: int
    documents: int
    size: int  # bytes of the file
    pieces: tuple[Piece, ...]
    files: Mapping[str, Digests] = field(default_factory=dict)
    vocabulary: str | None = None
    job: str | None = None
    text_bytes: int | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The encoding as a user gives it: the vocabulary file, or else the name."""
        return self.vocabulary or self.encoding

    @property
    def digests(self) -> Digests:
        """The digests of the first file."""
        return Digests(self.size, self.pieces)

    def to_json(self) -> bytes:
        """The bytes of the sidecar file."""
        row = {
            "encoding": self.encoding,
            "vocabulary_sha256": self.digest,
            "format": self.format,
            "dtype": self.dtype,
            "byteorder": self.dtype and "little",
            "tokens": self.tokens,
            "documents": self.documents,
            "bytes": self.size,
            "vocabulary": self.vocabulary,
            "job": self.job,
            "text_bytes": self.text_bytes,
            "skipped": self.skipped or None,
            "pieces": self.pieces,
            "files": {
                name: {"bytes": one.size, "pieces": one.pieces} for name, one in self.files.items()
            }
            or None,
        }
        row = {key: value for key, value in row.items() if value is not None}
        text = json.dumps(row, indent=1).encode() + b"\n"
        # Put each piece on one line.
        return re.sub(rb"\[\s+(\d+),\s+(\"[0-9a-f]{64}\")\s+\]", rb"[\1, \2]", text)


def sidecar_path(path: str) -> str:
    """The path of the sidecar for the ids at `path`; for a symbolic link, beside its target."""
    return (os.path.realpath(path) if os.path.islink(path) else path) + _SUFFIX


def skip_log_path(output: str) -> str:
    """The path of the log of skipped records: JSON lines with file, position and reason."""
    return f"{output}.skipped.jsonl"


def read_sidecar(path: str) -> Sidecar | None:
    """Read the sidecar of the ids at `path`; return None if it is missing or is unrelated JSON.

    Raises SidecarError if it is damaged, and OSError if it cannot be read.
    """
    name = sidecar_path(path)
    try:
        data = places.read_head(name, _MOST_BYTES + 1)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None
    if len(data) > _MOST_BYTES:
        if not data.startswith(_BEGIN):
            return None
        data = places.read_whole(name)

    def damaged(what: str) -> SidecarError:
        return SidecarError(
            f"{name}: the sidecar of {path} is damaged: {what}; remove it to decode without it"
        )

    try:
        row = json.loads(data)
    except (ValueError, RecursionError):
        raise damaged("it is not JSON") from None
    if not isinstance(row, dict) or "vocabulary_sha256" not in row:
        return None
    import msgspec  # slow to import

    try:
        files = {
            one: Digests(about["bytes"], about["pieces"])
            for one, about in row.get("files", {}).items()
        }
        named = {"digest": row["vocabulary_sha256"], "size": row["bytes"], "files": files}
        return msgspec.convert({"dtype": None} | row | named, Sidecar)
    except KeyError as error:
        raise damaged(f"it has no {error}") from None
    except (msgspec.ValidationError, TypeError, AttributeError) as error:
        raise damaged(str(error)) from None


def check_sidecar(sidecar: Sidecar, path: str) -> None:
    """Raise SidecarError unless the file at `path` has the size in its sidecar."""
    size = places.size_of(path)
    if size != sidecar.size:
        raise SidecarError(
            f"{path} has {size} bytes, but {sidecar_path(path)} describes a file of "
            f"{sidecar.size} bytes: one of them was changed; remove the sidecar to decode "
            "without it"
        )


def matching_sidecar(path: str) -> Sidecar | None:
    """The sidecar of the file at `path`; None if it cannot be read or does not fit the file."""
    try:
        found = read_sidecar(path)
        if found is not None:
            check_sidecar(found, path)
    except (SidecarError, OSError):
        return None
    return found
