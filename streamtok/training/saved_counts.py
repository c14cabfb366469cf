"""A trainer's counts in a file. `Counting.pretokens` describes the arrays."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import msgspec
import numpy as np

from .._core.encode import check_policy
from ..errors import StateError
from ..files import write_whole
from ..patterns.pattern import Pattern
from ..patterns.sequence import SplitSequence, rebuilt_sequence
from ..vocabulary.sealed import seal, unseal

_MAGIC = b"streamtok piece counts 1\n"
Array: TypeAlias = np.ndarray


class SavedCounts(msgspec.Struct, forbid_unknown_fields=True):
    """The saved state of a trainer."""

    source: str  # of the pattern
    sequence: tuple[tuple[tuple[str, str], ...], bool] | None  # arguments of `rebuilt_sequence`
    errors: str
    place: tuple[int, bytes, bytes]  # (bytes_in, pending bytes, held bytes)
    arrays: tuple[Array, Array, Array, Array]

    @property
    def pattern(self) -> Pattern:
        """The compiled pattern. Raises PatternError."""
        if self.sequence is None:
            return Pattern.compile(self.source)
        return rebuilt_sequence(*self.sequence)


def save_counts(
    path: str | os.PathLike[str], pattern: Pattern, errors: str, state: tuple[Any, Any]
) -> None:
    """Write a file, which appears only when complete. state: from `Counting.getstate`.

    Raises OSError.
    """
    sequence = pattern.__reduce__()[1] if isinstance(pattern, SplitSequence) else None
    write_whole(path, seal(_MAGIC, SavedCounts(pattern.source, sequence, errors, *state)))


def read_counts(path: str | os.PathLike[str]) -> SavedCounts:
    """Read a file of `save_counts`. Raises OSError, and StateError for an invalid file."""
    with open(os.fspath(path), "rb") as file:
        data = file.read()
    try:
        saved = unseal(_MAGIC, data, SavedCounts)
        check_policy(saved.errors)
    except ValueError as error:
        raise damaged(path, error) from error
    return saved


def damaged(path: str | os.PathLike[str], error: Exception) -> StateError:
    """The error for a file that is damaged or does not hold saved counts."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return StateError(f"{os.fspath(path)} is not a file of saved counts, or is damaged: {reason}")


def check_counts(sizes: Any, counts: Any, firsts: Any, bytes_in: int, counted: int) -> None:
    """Raise ValueError for counts that a text of `bytes_in` bytes cannot have.

    counted: number of bytes that are not pending, some of which the pattern may have skipped.
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
