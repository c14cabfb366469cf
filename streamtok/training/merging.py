"""From counted pieces to merges: the arguments and results of `_core/merge_loop.pxi`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .._core.train import MergeLoop
from ..errors import VocabularyError
from ..vocabulary.table import MAX_TOKEN_BYTES

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["TIES", "Progress", "check_merging", "merge_pairs", "tokens_of"]

Progress: TypeAlias = Callable[[int, int], None]

TIES = ("raw", "hf", "first")

_EFFORT = 1 << 20  # places that the merge loop looks at in some 10 ms


def check_specials(texts: list[str]) -> None:
    """Raise ValueError for special tokens that cannot be added."""
    for text in texts:
        if not isinstance(text, str) or not text:
            raise ValueError(f"a special token is a str with at least one character, not {text!r}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"the special token {text!r} cannot be encoded: {error}") from None
    if len(set(texts)) < len(texts):
        raise ValueError("special tokens must be different")


def check_merging(vocab_size: int, min_frequency: int, tie: str) -> None:
    """Raise ValueError or TypeError for arguments that make no sense."""
    operator.index(vocab_size)
    operator.index(min_frequency)
    if tie not in TIES:
        raise ValueError(f"tie must be one of {', '.join(TIES)}, not {tie!r}")
    if not 256 <= vocab_size <= 0x7FFFFFFF:
        raise ValueError(
            f"{vocab_size} tokens beside the special ones are wanted: there are 256 bytes, and "
            "no more than 2147483647 can be numbered"
        )
    if not 0 <= min_frequency < 1 << 63:
        raise ValueError(f"min_frequency is a number of times, not {min_frequency}")


def merge_pairs(
    data: npt.NDArray[np.uint8],
    sizes: npt.NDArray[np.uint32],
    counts: npt.NDArray[np.uint64],
    vocab_size: int,
    *,
    min_frequency: int,
    tie: str,
    progress: Progress | None,
) -> tuple[list[int], list[int]]:
    """(left ids, right ids) of the merges; merge i makes id 256 + i, bytes have their values.

    data, sizes, counts: the pieces in a row, in the order of their first occurrence for the tie
    rule "first"; progress: gets (merges done, merges wanted) after some 10 ms each. Between two
    calls of it signals are handled, so that Ctrl-C is heard.
    """
    order = np.arange(256, dtype=np.uint32)
    if tie == "hf":
        from ..reference.bpe_training import (
            byte_level_order,  # imports `regex`, which takes a while
        )

        order = np.array(byte_level_order(), np.uint32)
    loop = MergeLoop(data, sizes, counts, order, vocab_size - 256, min_frequency, tie == "first")
    while loop.run(_EFFORT):
        if progress:
            progress(loop.n_merges, loop.most)
    lefts, rights = loop.merges()
    if progress:
        progress(loop.n_merges, loop.n_merges)
    byte_of = np.argsort(order).astype(np.uint32)
    for ids in lefts, rights:
        ids[ids < 256] = byte_of[ids[ids < 256]]
    return lefts.tolist(), rights.tolist()


def tokens_of(lefts: list[int], rights: list[int]) -> list[bytes]:
    """All tokens in the order of their ids; VocabularyError if one is too long.

    No two are equal: the first merge that touches the inside of some bytes touches it in the same
    way wherever they stand and no token reaches across their ends, and so does the next.
    """
    tokens = [bytes([byte]) for byte in range(256)]
    for left, right in zip(lefts, rights, strict=True):
        tokens.append(tokens[left] + tokens[right])
        if len(tokens[-1]) > MAX_TOKEN_BYTES:
            raise VocabularyError(
                f"the token of id {len(tokens) - 1} would have {len(tokens[-1])} bytes, more than "
                f"{MAX_TOKEN_BYTES}: train fewer tokens, or with a pattern that makes shorter "
                "pieces"
            )
    return tokens
