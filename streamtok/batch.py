"""Many texts on several threads: spread by size, not one by one.

A task is a run of neighbouring texts of about the same size in all. The core encodes a whole run
without the GIL and then makes its lists, so that threads meet once a run and not once a text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ._core.special import SpecialMatcher
    from .encoding import Encoding, Text

__all__ = ["encode_batch", "map_in_threads"]

SMALLEST_RUN = 1 << 16  # characters or bytes
LARGEST_RUN = 1 << 22
RUNS_PER_THREAD = 4  # so that a slow one is made up for by the others

Item = TypeVar("Item")
Result = TypeVar("Result")


def encode_batch(
    encoding: Encoding,
    texts: Sequence[Text],
    matcher: SpecialMatcher,
    errors: str,
    num_threads: int,
) -> list[list[int]]:
    """list[list[int]]: the ids of each text.

    Raises what encoding them one after the other would raise first.
    """

    def encode_one(text: Text) -> list[int]:
        ids: list[int] = encoding._run(text, matcher, errors, "list")
        return ids

    def encode_run(run: list[Text]) -> list[list[int]]:
        if encoding.pattern is not None and encoding._rules.normalizer is None:
            try:
                result = encoding._encoder.encode_many(run, matcher, errors)
            except (UnicodeError, TypeError):
                result = None  # one by one: some can be repaired, or it is raised for the first
            if isinstance(result, list):
                return result
        return [encode_one(text) for text in run]

    runs = _runs(texts, num_threads)
    return [ids for run in map_in_threads(encode_run, runs, num_threads) for ids in run]


def _runs(texts: Sequence[Text], num_threads: int) -> list[list[Text]]:
    sizes = [len(text) if hasattr(text, "__len__") else 0 for text in texts]
    wanted = sum(sizes) // max(1, num_threads * RUNS_PER_THREAD)
    wanted = min(max(wanted, SMALLEST_RUN), LARGEST_RUN)
    runs: list[list[Text]] = []
    size = wanted
    for text, more in zip(texts, sizes, strict=True):
        if size >= wanted:
            runs.append([])
            size = 0
        runs[-1].append(text)
        size += more
    return runs


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], num_threads: int
) -> list[Result]:
    """list: function(item) for each, in order. Raises what the first that fails raises.

    ValueError if num_threads is not positive.
    """
    if num_threads <= 0:
        raise ValueError(f"num_threads must be positive, not {num_threads}")
    if num_threads == 1 or len(items) < 2:
        return [function(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(num_threads, len(items))) as pool:
        return list(pool.map(function, items))
