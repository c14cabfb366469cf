"""What a trainer has counted, in a file: a NumPy archive of plain arrays, and JSON about them.

Nothing in it is ever unpickled. Not here: what the arrays mean (`trainer.py`).
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from typing import Any, NamedTuple

import numpy as np

from .._core.encode import check_policy
from ..errors import StateError
from ..files.part_file import write_whole
from ..patterns.pattern import Pattern

__all__ = ["SavedCounts", "damaged", "read_counts", "save_counts"]

_FORMAT = "streamtok piece counts 1"
_ARRAYS = {"data": "u1", "sizes": "<u4", "counts": "<u8", "firsts": "<u8"}


class SavedCounts(NamedTuple):
    """What is saved of a trainer."""

    pattern: Pattern
    errors: str
    state: Any  # of its Counting
    notes: dict[str, Any]  # the caller's own


def save_counts(path: str | os.PathLike[str], saved: SavedCounts) -> None:
    """Write a file, whole or not at all."""
    (bytes_in, pending, held), arrays, pruned = saved.state
    about = {
        "format": _FORMAT,
        "pattern": saved.pattern.source,
        "is_composed": saved.pattern.is_composed,
        "errors": saved.errors,
        "bytes_in": bytes_in,
        "pending": pending.hex(),
        "unfinished": held.hex(),
        "pruned": pruned,
        "notes": saved.notes,
    }
    named = {
        name: array.astype(kind)
        for (name, kind), array in zip(_ARRAYS.items(), arrays, strict=True)
    }
    file = io.BytesIO()
    np.savez(file, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **named)
    write_whole(path, file.getvalue())


def read_counts(path: str | os.PathLike[str]) -> SavedCounts:
    """What `save_counts` wrote. Raises OSError, and StateError for another or a damaged file."""
    with open(path, "rb") as file:
        data = file.read()
    # What zipfile, NumPy and json raise for bytes that are not what they should be is not a closed
    # list: whatever goes wrong from here on is the file's fault.
    try:
        return _read(data)
    except Exception as error:
        raise damaged(path, error) from error


def damaged(path: str | os.PathLike[str], error: Exception) -> StateError:
    """The error that says so."""
    what = " ".join(str(error).split()) or type(error).__name__
    return StateError(f"{os.fspath(path)} does not hold saved counts, or is damaged: {what}")


def _read(data: bytes) -> SavedCounts:
    with zipfile.ZipFile(io.BytesIO(data)) as saved:
        members = {name: _array(saved, name) for name in ("about", *_ARRAYS)}
    about = json.loads(members.pop("about").tobytes())
    if about["format"] != _FORMAT:
        raise ValueError(f"its format is {about['format']!r}, not {_FORMAT!r}")
    arrays = list(members.values())
    if [(array.dtype.str.lstrip("|"), array.ndim) for array in arrays] != [
        (dtype, 1) for dtype in _ARRAYS.values()
    ]:
        raise ValueError("its arrays have other types or shapes")
    check_policy(about["errors"])
    place = about["bytes_in"], *(bytes.fromhex(about[key]) for key in ("pending", "unfinished"))
    state = place, arrays, about["pruned"]
    return SavedCounts(_pattern(about), about["errors"], state, dict(about["notes"]))


def _array(saved: zipfile.ZipFile, name: str) -> Any:
    info = saved.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} is compressed, which save_counts never does")
    # Of a member that is read to its end, zipfile compares the checksum.
    return np.load(io.BytesIO(saved.read(info)), allow_pickle=False)


def _pattern(about: dict[str, Any]) -> Pattern:
    if not about.get("is_composed"):
        return Pattern.compile(about["pattern"])
    from ..patterns.sequence import rebuilt_sequence  # a rare case

    return rebuilt_sequence(tuple(json.loads(about["pattern"])))
