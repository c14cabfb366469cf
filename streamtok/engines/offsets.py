"""The way back from a changed text to the text before: how many of its bytes the end stands for.

A stream must say how many bytes of its input wait, and what waits is the end of a changed text. So
only the last *runs* are known, and only as far back as something waits: tuples (characters, bytes
of each one now, bytes of each one before). Bytes that did not change count as characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._core.encode import runs_behind, utf8_size
from ..normalizers.compiled import Changed

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "Block",
    "Run",
    "Runs",
    "is_identity",
    "runs_from_json",
    "runs_of_end",
    "sources",
    "total",
]

Run: TypeAlias = "tuple[int, int, int]"
Runs: TypeAlias = "tuple[Run, ...]"
_NO_ROWS = np.empty((0, 3), np.int64)
# As normalizers or their tables give it; or the bytes that an added token takes.
Block: TypeAlias = "tuple[str, str] | Changed | int"


def runs_of_end(runs: Runs, blocks: list[Block], waiting: int) -> tuple[Runs, int]:
    """The runs of the last `waiting` bytes, and the bytes that these were before.

    Args: the runs that were known; the blocks that have come since. Costs O(runs) and O(what
    waits).
    """
    rows = [_NO_ROWS]
    size = 0
    for block in reversed(blocks):
        if size >= waiting:
            break
        rows.append(_rows_of(block, waiting))
        size += int((rows[-1][:, 0] * rows[-1][:, 1]).sum())
    return runs_behind(runs, np.concatenate(rows[::-1]).ravel(), waiting)


def _rows_of(block: Block, waiting: int) -> npt.NDArray[np.int64]:
    """The rows of a block, as far as `waiting` bytes of it go."""
    if isinstance(block, Changed):
        return block.rows
    if isinstance(block, int):
        return np.array([(1, block, block)])
    text, source = block
    if text is source or text == source:
        return np.array([(utf8_size(text), 1, 1)])
    if len(text) != len(source):
        return np.array([(1, utf8_size(text), utf8_size(source))])
    # Character by character; each one has a byte.
    pairs = zip(text[-waiting:], source[-waiting:], strict=True)
    return np.array([(1, utf8_size(x), utf8_size(y)) for x, y in pairs])


def runs_from_json(value: Any) -> Runs:
    """Runs that were saved as JSON. Raises ValueError if they are none."""
    runs = tuple(map(tuple, value))
    for run in runs:
        if [type(part) for part in run] != [int, int, int] or min(run) < 0 or not run[0]:
            raise ValueError("expected runs of a number of characters and their sizes")
    return runs


def total(runs: Runs) -> tuple[int, int]:
    """The bytes of all runs, now and before."""
    return sum([n * now for n, now, _ in runs]), sum([n * before for n, _, before in runs])


def is_identity(runs: Runs) -> bool:
    """Whether each byte stands for one."""
    return all([run[1:] == (1, 1) for run in runs])


def sources(blocks: list[Any]) -> int:
    """The bytes that a normalizer's blocks stand for."""
    return sum([x.size if isinstance(x, Changed) else utf8_size(x[1]) for x in blocks])
