"""What a trainer has counted, in a file: a NumPy archive of plain arrays, and JSON about them.

Nothing in it is ever unpickled. Not here: what the arrays mean (`trainer.py`).
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from ._core.encode import check_policy
from .errors import MemoryLimitExceeded, StateError
from .pattern import Pattern
from .vocabulary import write_atomically

if TYPE_CHECKING:
    from .trainer import Trainer

__all__ = ["load_counts", "save_counts"]

_FORMAT = "streamtok piece counts 1"
_ARRAYS = {"data": "u1", "sizes": "<u4", "counts": "<u8", "firsts": "<u8"}


def save_counts(trainer: Trainer, state: Any, path: str | os.PathLike[str]) -> None:
    """Write `state` (of its Counting) and the notes of `trainer`, whole or not at all."""
    (bytes_in, pending, held), arrays, pruned = state
    about = {
        "format": _FORMAT,
        "pattern": trainer.pattern.source,
        "is_composed": trainer.pattern.is_composed,
        "errors": trainer.errors,
        "bytes_in": bytes_in,
        "pending": pending.hex(),
        "unfinished": held.hex(),
        "pruned": pruned,
        "notes": trainer.notes,
    }
    named = {
        name: array.astype(kind)
        for (name, kind), array in zip(_ARRAYS.items(), arrays, strict=True)
    }
    file = io.BytesIO()
    np.savez(file, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **named)
    write_atomically(path, file.getvalue())


def load_counts(kind: type[Trainer], path: str | os.PathLike[str], settings: Any) -> Trainer:
    """A trainer in the state that was saved; StateError for a file that has none."""
    with open(path, "rb") as file:
        data = file.read()
    # What zipfile, NumPy and json raise for bytes that are not what they should be is no closed
    # list: whatever can go wrong from here on is the file's fault, but for the settings.
    try:
        pattern, errors, state, notes = _read(data)
    except Exception as error:
        raise _damaged(path, error) from error
    trainer = kind(pattern, errors=errors, **settings)
    try:
        trainer._counting.setstate(state)
    except (MemoryLimitExceeded, MemoryError):
        raise
    except Exception as error:
        raise _damaged(path, error) from error
    trainer.notes = notes
    return trainer


def _damaged(path: str | os.PathLike[str], error: Exception) -> StateError:
    what = " ".join(str(error).split()) or type(error).__name__
    return StateError(f"{os.fspath(path)} does not hold saved counts, or is damaged: {what}")


def _read(data: bytes) -> tuple[Pattern, str, Any, dict[str, Any]]:
    """(pattern, errors, state of Counting, notes) in the bytes of a file."""
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
    return _pattern(about), about["errors"], (place, arrays, about["pruned"]), dict(about["notes"])


def _array(saved: zipfile.ZipFile, name: str) -> Any:
    info = saved.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} is compressed, which save_counts never does")
    # Of a member that is read to its end, zipfile compares the checksum.
    return np.load(io.BytesIO(saved.read(info)), allow_pickle=False)


def _pattern(about: dict[str, Any]) -> Pattern:
    if not about.get("is_composed"):
        return Pattern.compile(about["pattern"])
    from .splits import rebuilt_sequence  # a rare case

    return rebuilt_sequence(tuple(json.loads(about["pattern"])))
