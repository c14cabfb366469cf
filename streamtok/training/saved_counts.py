"""A trainer's counts in a file: a NumPy archive of plain arrays, and JSON that describes them.

Nothing in the file is ever unpickled. `Counting.getstate` says what the arrays mean.
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
from ..files import write_whole
from ..patterns.pattern import Pattern

_FORMAT = "streamtok piece counts 1"
_ARRAYS = {"data": "u1", "sizes": "<u4", "counts": "<u8", "firsts": "<u8"}


class SavedCounts(NamedTuple):
    """What is saved of a trainer."""

    pattern: Pattern
    errors: str
    state: Any  # of its Counting


def save_counts(path: str | os.PathLike[str], saved: SavedCounts) -> None:
    """Write a file, which appears when it is complete. Raises OSError."""
    (bytes_in, pending, held), arrays = saved.state
    about = {
        "format": _FORMAT,
        "pattern": saved.pattern.source,
        "is_composed": saved.pattern.is_composed,
        "errors": saved.errors,
        "bytes_in": bytes_in,
        "pending": pending.hex(),
        "unfinished": held.hex(),
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
    with open(os.fspath(path), "rb") as file:
        data = file.read()
    # zipfile, NumPy and json raise many kinds of exceptions for damaged bytes. So every exception
    # from here on is the file's fault.
    try:
        return _read(data)
    except Exception as error:
        raise damaged(path, error) from error


def damaged(path: str | os.PathLike[str], error: Exception) -> StateError:
    """The error that says so."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return StateError(f"{os.fspath(path)} is not a file of saved counts, or is damaged: {reason}")


def check_counts(sizes: Any, counts: Any, firsts: Any, bytes_in: int, counted: int) -> None:
    """Raise ValueError for counts that `bytes_in` bytes of text cannot have.

    counted: how many of the bytes are not pending. A pattern may leave some out.
    """
    if not 0 <= counted <= bytes_in < 1 << 63:
        raise ValueError(f"{counted} of {bytes_in} bytes were counted")
    if not len(sizes):
        return
    if len(sizes) != len(counts) or len(sizes) != len(firsts):
        raise ValueError("sizes, counts and firsts must have the same length")
    if int(counts.max()) > bytes_in or int(firsts.max()) >= bytes_in:
        raise ValueError(f"a pre-token has a count or an offset past the {bytes_in} bytes of text")
    # In floats first, because they cannot overflow.
    total = float(np.dot(sizes.astype(np.float64), counts.astype(np.float64)))
    if total > 1.001 * counted + 1 or int(np.dot(sizes.astype(np.uint64), counts)) > counted:
        raise ValueError(f"the pre-tokens have more bytes than the {counted} that were counted")


def _read(data: bytes) -> SavedCounts:
    with zipfile.ZipFile(io.BytesIO(data)) as saved:
        members = {name: _array(saved, name) for name in ("about", *_ARRAYS)}
    about = json.loads(members.pop("about").tobytes())
    if about["format"] != _FORMAT:
        raise ValueError(f"expected the format {_FORMAT!r}, found {about['format']!r}")
    arrays = list(members.values())
    if [(array.dtype.str.lstrip("|"), array.ndim) for array in arrays] != [
        (dtype, 1) for dtype in _ARRAYS.values()
    ]:
        raise ValueError(f"expected flat arrays of the types {', '.join(_ARRAYS.values())}")
    check_policy(about["errors"])
    place = about["bytes_in"], *(bytes.fromhex(about[key]) for key in ("pending", "unfinished"))
    return SavedCounts(_pattern(about), about["errors"], (place, arrays))


def _array(saved: zipfile.ZipFile, name: str) -> Any:
    info = saved.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} must not be compressed")  # a small file could fill the memory
    # zipfile compares the checksum of a member that is read to its end.
    return np.load(io.BytesIO(saved.read(info)), allow_pickle=False)


def _pattern(about: dict[str, Any]) -> Pattern:
    if not about.get("is_composed"):
        return Pattern.compile(about["pattern"])
    from ..patterns.sequence import rebuilt_sequence  # a rare case

    return rebuilt_sequence(tuple(json.loads(about["pattern"])))
