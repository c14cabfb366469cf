"""What a trainer has counted, in a file: a NumPy archive of plain arrays, and JSON about them.

Nothing in it is ever unpickled. Not here: what the arrays mean (`trainer.py`).
"""

from __future__ import annotations

import errno
import io
import json
import os
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import StateError
from .pattern import Pattern
from .vocabulary import write_atomically

if TYPE_CHECKING:
    from .trainer import Trainer

__all__ = ["load_counts", "save_counts"]

_FORMAT = "streamtok piece counts 1"
_ARRAYS = {"data": "u1", "sizes": "<u4", "counts": "<u8", "firsts": "<u8"}


# What zipfile, NumPy and json raise for bytes that are not what they should be.
_DAMAGE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    OverflowError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def save_counts(trainer: Trainer, state: Any, path: str | os.PathLike[str]) -> None:
    """Write `state` (of its Counting) and the notes of `trainer`, whole or not at all."""
    (bytes_in, pending, unfinished), arrays, pruned = state
    about = {
        "format": _FORMAT,
        "pattern": trainer.pattern.source,
        "errors": trainer.errors,
        "bytes_in": bytes_in,
        "pending": pending.hex(),
        "unfinished": unfinished.hex(),
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
    try:
        about, arrays = _read(path)
        if about["format"] != _FORMAT:
            raise ValueError(f"its format is {about['format']!r}")
        if [(array.dtype.str.lstrip("|"), array.ndim) for array in arrays] != [
            (dtype, 1) for dtype in _ARRAYS.values()
        ]:
            raise ValueError("its arrays have other types or shapes")
        trainer = kind(Pattern.compile(about["pattern"]), errors=about["errors"], **settings)
        place = about["bytes_in"], *(bytes.fromhex(about[k]) for k in ("pending", "unfinished"))
        trainer._counting.setstate((place, arrays, about["pruned"]))
        trainer.notes = dict(about["notes"])
    except _DAMAGE as e:
        raise StateError(f"{os.fspath(path)} has no saved counts: {e}") from e
    return trainer


def _read(path: str | os.PathLike[str]) -> tuple[Any, list[Any]]:
    """(about, arrays) of a file. Raises OSError, or one of _DAMAGE."""
    with open(path, "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as saved:
                return json.loads(saved["about"].tobytes()), [saved[name] for name in _ARRAYS]
        except (MemoryError, RuntimeError) as error:
            # A size that is a lie; a way of compression that there is not, or encryption.
            raise ValueError(f"it cannot be read: {error}") from error
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise ValueError("it points to places before its beginning") from error
