"""The sidecar of a file of ids: JSON in `OUTPUT.json` beside it.

It names the encoding (with the digest of its vocabulary), the format, the type of the ids, the
counts and the size. A reader takes the encoding from it and detects a file that does not belong to
its sidecar. Parquet and Arrow files have no sidecar: their schema holds the same facts.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import SidecarError
from ...files.part_file import PartFile
from ...stores import places
from .outputs import Writable

if TYPE_CHECKING:
    from .flat import About, Ends, IdArray, Sink

_SUFFIX = ".json"
_MOST_BYTES = 1 << 16
_RAW = {"uint16": ("u16", 2), "uint32": ("u32", 4)}


@dataclass(frozen=True)
class Sidecar:
    """The contents of a sidecar. dtype: the type of the ids in the file, None for text."""

    encoding: str
    digest: str
    format: str
    dtype: str | None
    tokens: int
    documents: int
    size: int  # bytes of the file
    sha256: str | None = None

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
            "sha256": self.sha256,
        }
        row = {key: value for key, value in row.items() if value is not None}
        return json.dumps(row, indent=1).encode() + b"\n"


def sidecar_path(path: str) -> str:
    """The path of the sidecar for the ids at `path`: beside the target of a symbolic link."""
    return (os.path.realpath(path) if os.path.islink(path) else path) + _SUFFIX


def read_sidecar(path: str) -> Sidecar | None:
    """Read the sidecar of the ids at `path`. None if there is none, or the JSON is another kind.

    Raises SidecarError if it is damaged, OSError if it cannot be read.
    """
    name = sidecar_path(path)
    try:
        data = places.read_head(name, _MOST_BYTES + 1)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None
    if len(data) > _MOST_BYTES:
        return None  # sidecars are never this large
    try:
        row = json.loads(data)
    except (ValueError, RecursionError):
        raise SidecarError(
            f"{name}: the sidecar of {path} is damaged: it is not JSON; --force ignores it"
        ) from None
    if not isinstance(row, dict) or "vocabulary_sha256" not in row:
        return None
    return _parsed(row, path, name)


def _parsed(row: dict[str, Any], path: str, name: str) -> Sidecar:
    def field(key: str, kind: type, default: Any = None) -> Any:
        value = row.get(key, default)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise SidecarError(
                f"{name}: the sidecar of {path} is damaged: its {key!r} is {value!r}; "
                "--force ignores it"
            )
        return value

    tokens = field("tokens", int)
    dtype = row.get("dtype")
    # Sidecars of version 0.1.0 exist for raw ids only and lack format and size.
    format, width = _RAW.get(str(dtype), (None, 0))
    return Sidecar(
        encoding=field("encoding", str),
        digest=field("vocabulary_sha256", str),
        format=field("format", str, format),
        dtype=None if dtype is None else field("dtype", str),
        tokens=tokens,
        documents=field("documents", int),
        size=field("bytes", int, tokens * width),
        sha256=None if row.get("sha256") is None else field("sha256", str),
    )


def check_sidecar(sidecar: Sidecar, path: str) -> None:
    """Raise SidecarError unless the file at `path` has the size that its sidecar gives."""
    size = places.size_of(path)
    if size != sidecar.size:
        raise SidecarError(
            f"{path} has {size} bytes, but {sidecar_path(path)} describes a file of "
            f"{sidecar.size} bytes: one of them was changed; --force ignores the sidecar"
        )


def matching_sidecar(path: str) -> Sidecar | None:
    """The sidecar of the file at `path`, or None if none can be read or none fits the file."""
    try:
        found = read_sidecar(path)
        if found is not None:
            check_sidecar(found, path)
    except (SidecarError, OSError):
        return None
    return found


def has_sidecar(path: str) -> bool:
    """Whether there is a sidecar beside `path`, even one that describes an older file."""
    with contextlib.suppress(SidecarError, OSError):
        return read_sidecar(path) is not None
    return False


class SidecarSink:
    """Passes ids to another sink and writes the sidecar of its first file."""

    def __init__(
        self,
        sink: Sink,
        output: PartFile,
        sidecar: Writable,
        about: About,
        what: tuple[str, str | None],
        state: dict[str, Any],
    ):
        """output: the file of `sink` that the sidecar describes; what: its format and dtype."""
        self._sink = sink
        self._ids = output
        self._sidecar = sidecar
        self._about = about
        self._what = what
        self._tokens: int = state.get("tokens", 0)
        self._documents: int = state.get("documents", 0)

    def write(self, ids: IdArray, ends: Ends = ()) -> None:
        self._sink.write(ids, ends)
        self._documents += len(ends)
        self._tokens += len(ids)

    def finish(self) -> None:
        self._sink.finish()
        format, dtype = self._what
        made = Sidecar(
            encoding=self._about.encoding,
            digest=self._about.digest,
            format=format,
            dtype=dtype,
            tokens=self._tokens,
            documents=self._documents,
            size=self._ids.size,
            # Only for raw ids does the digest cover the whole file in every run.
            sha256=self._ids.digest() if format in ("u16", "u32") else None,
        )
        self._sidecar.write(made.to_json())

    def getstate(self) -> dict[str, Any]:
        own = {"tokens": self._tokens, "documents": self._documents}
        return own | {"sink": self._sink.getstate()}
