"""The way back from a changed text to the text before: how many of its bytes the end stands for.

A stream must say how many bytes of its input wait, and what waits is the end of a changed text. So
only the last *runs* are known, and only as far back as something waits: tuples (characters, bytes
of each one now, bytes of each one before). Bytes that did not change count as characters.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from .._core.encode import utf8_size
from ..normalizers.compiled import Changed

__all__ = [
    "Block",
    "Run",
    "Runs",
    "is_identity",
    "runs_behind",
    "runs_from_json",
    "sources",
    "total",
]

Run: TypeAlias = "tuple[int, int, int]"
Runs: TypeAlias = "tuple[Run, ...]"
Block: TypeAlias = "tuple[str, str] | Changed"  # as normalizers or their tables give it


def runs_behind(
    runs: Runs, blocks: list[Block], waiting: int, has_escapes: bool
) -> tuple[Runs, int]:
    """The runs of the last `waiting` bytes, and the bytes that these were before.

    Args: the runs that were known; the blocks that have come since;
    has_escapes as for `utf8_size`. Costs O(runs) and O(what waits).
    """
    kept: list[Run] = []  # the last one first
    source = 0
    for block in reversed(blocks):
        if not waiting:
            break
        for run in _runs_of(block, waiting, has_escapes):
            if not waiting:
                break
            waiting, source = _keep(kept, run, waiting, source)
    for run in reversed(runs):
        if not waiting:
            break
        waiting, source = _keep(kept, run, waiting, source)
    return tuple(reversed(kept)), source


def _keep(kept: list[Run], run: Run, waiting: int, source: int) -> tuple[int, int]:
    """Put a run, or its end that waits, before those that are kept."""
    count, now, before = run
    if count * now <= waiting:
        rest = 0
    elif not waiting:
        return 0, source
    else:
        count, rest = divmod(waiting, now)
    if kept and kept[-1][1:] == (now, before):
        kept[-1] = (kept[-1][0] + count, now, before)
    elif count:
        kept.append((count, now, before))
    if rest:  # the end of a character, which still stands for all of it
        kept.append((1, rest, before))
    return waiting - count * now - rest, source + (count + bool(rest)) * before


def _runs_of(block: Block, waiting: int, has_escapes: bool) -> Iterable[Run]:
    """The runs of a block, the last one first, as far as `waiting` bytes of it go."""
    if isinstance(block, Changed):
        for row in reversed(block.rows):
            count, now, before = row.tolist()
            yield count, now, before
        return
    text, source = block
    if text is source or text == source:
        yield utf8_size(text, has_escapes), 1, 1
    elif len(text) != len(source):
        yield 1, utf8_size(text, has_escapes), utf8_size(source, has_escapes)
    else:  # character by character; each one has a byte
        for now, before in zip(text[: -waiting - 1 : -1], source[: -waiting - 1 : -1], strict=True):
            yield 1, utf8_size(now, has_escapes), utf8_size(before, has_escapes)


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


def sources(blocks: list[Block], has_escapes: bool) -> int:
    """The bytes that the blocks stand for."""
    return sum([x.size if isinstance(x, Changed) else utf8_size(x[1], has_escapes) for x in blocks])
