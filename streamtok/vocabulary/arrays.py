"""Read-only arrays, and the offsets of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import VocabularyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["frozen", "offsets_of"]

MAX_TOTAL_BYTES = 2**32 - 1  # offsets are 32 bits wide


def frozen(array: NDArray[Any], dtype: Any = np.uint32) -> NDArray[Any]:
    """A read-only copy of a flat array of this type, or the array itself if it is immutable.

    Raises TypeError for a different type or shape.
    """
    if array.dtype != dtype or array.ndim != 1:
        kind = np.dtype(dtype)
        raise TypeError(f"expected a flat {kind} array, found {array.dtype} of shape {array.shape}")
    flags = array.flags
    if not flags.writeable and flags.aligned and (flags.owndata or isinstance(array.base, bytes)):
        return array
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


def offsets_of(lengths: NDArray[np.integer[Any]]) -> NDArray[np.uint32]:
    """The n + 1 offsets of n tokens of these lengths. Raises `VocabularyError` above 4 GiB."""
    total = int(lengths.sum(dtype=np.uint64))
    if total > MAX_TOTAL_BYTES:
        raise VocabularyError(f"the tokens have {total} bytes: at most {MAX_TOTAL_BYTES} fit")
    offsets = np.zeros(len(lengths) + 1, np.uint32)
    np.cumsum(lengths, dtype=np.uint32, out=offsets[1:])
    return offsets
