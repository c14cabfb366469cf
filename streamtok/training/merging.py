"""Merges counted pre-tokens: the arguments and results of the core's merge loop."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from .._core.encode import check_special_size
from .._core.train import MergeLoop
from ..errors import VocabularyError
from ..vocabulary.byte_alphabet import BYTES_IN_ORDER
from ..vocabulary.table import MAX_TOKEN_BYTES, NO_ID

if TYPE_CHECKING:
    import numpy.typing as npt

Progress: TypeAlias = Callable[[int, int], None]

Tie: TypeAlias = Literal["raw", "hf", "first"]
TIES = get_args(Tie)

SINGLE_BYTES = tuple(bytes([byte]) for byte in range(256))
_EFFORT = 1 << 20  # positions that the merge loop visits in about 10 ms


def check_specials(special_tokens: Iterable[str]) -> list[str]:
    """The special tokens. Raises ValueError for those that cannot be added, naming the first."""
    if isinstance(special_tokens, str):
        raise TypeError("special_tokens must be a sequence of str, not one str")
    texts = [*special_tokens]
    for text in texts:
        if not isinstance(text, str) or not text:
            raise ValueError(f"special tokens must be non-empty strings, not {text!r}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"the special token {text!r} is not valid Unicode: {error}") from None
        check_special_size(text.encode())
    if len(set(texts)) < len(texts):
        twice = next(text for i, text in enumerate(texts) if text in texts[:i])
        raise ValueError(f"the special tokens must be different, but {twice!r} is given twice")
    return texts


def check_apart(specials: Iterable[str], tokens: Iterable[bytes]) -> None:
    """Raise VocabularyError if a special token is also a trained token.

    It would have two ids; if they were one, users' text could become the special token.
    """
    for text in {*specials}.intersection(token.decode("utf-8", "replace") for token in tokens):
        raise VocabularyError(
            f"the special token {text!r} is a token of the text, too, and would have two ids: "
            f"choose another text, such as {f'<|{text}|>'!r}"
        )


def check_merging(
    vocab_size: int, min_frequency: int, tie: str, max_token_length: int | None = None
) -> None:
    """Raise TypeError or ValueError for arguments of `merge_pairs` that are out of range."""
    operator.index(vocab_size)
    operator.index(min_frequency)
    if tie not in TIES:
        raise ValueError(f"tie must be one of {', '.join(TIES)}, not {tie!r}")
    if not 256 <= vocab_size <= 0x7FFFFFFF:
        raise ValueError(
            "vocab_size without the special tokens must be at least 256, for the bytes, and at "
            f"most 2147483647: it is {vocab_size}"
        )
    if not 0 <= min_frequency < 1 << 63:
        raise ValueError(f"min_frequency must be in 0 … 2**63 - 1, not {min_frequency}")
    if max_token_length is not None and operator.index(max_token_length) < 2:
        raise ValueError(
            f"max_token_length must be at least 2, or None for no limit, not {max_token_length}"
        )


def merge_pairs(
    data: npt.NDArray[np.uint8],
    sizes: npt.NDArray[np.uint32],
    counts: npt.NDArray[np.uint64],
    vocab_size: int,
    *,
    min_frequency: int,
    tie: str,
    max_token_length: int | None,
    progress: Progress | None,
) -> tuple[list[int], list[int]]:
    """(left ids, right ids) of the merges. Merge i makes the id 256 + i; bytes are their own ids.

    data, sizes, counts: the bytes of the pre-tokens end to end, and the size and count of each, in
    the order of their first occurrence if `tie` is "first". progress: called about every 10 ms with
    (merges done, merges requested). Signals are handled equally often.
    """
    byte_of = np.array(BYTES_IN_ORDER if tie == "hf" else range(256), np.uint32)
    order = np.argsort(byte_of).astype(np.uint32)
    # No token is NO_ID bytes long, so NO_ID means no limit.
    limit = NO_ID if max_token_length is None else min(max_token_length, NO_ID)
    loop = MergeLoop(
        data, sizes, counts, order, vocab_size - 256, min_frequency, tie == "first", limit
    )
    lefts, rights = run_loop(loop, progress)
    for ids in lefts, rights:
        ids[ids < 256] = byte_of[ids[ids < 256]]
    return lefts.tolist(), rights.tolist()


def run_loop(
    loop: MergeLoop, progress: Progress | None
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Make all merges of a loop; return (left ids, right ids). progress: as for `merge_pairs`."""
    while loop.run(_EFFORT):
        if progress:
            progress(loop.n_merges, loop.most)
    if progress:
        progress(loop.n_merges, loop.n_merges)
    return loop.merges()


def tokens_of(
    lefts: list[int], rights: list[int], first: Sequence[bytes] = SINGLE_BYTES
) -> list[bytes]:
    """All tokens, in order of id. first: the tokens before any merge.

    Raises VocabularyError if a token is too long. No two tokens are equal: if the same bytes occur
    twice, and no token crosses their ends, then every merge in one occurrence is made in both.
    """
    tokens = [*first]
    for left, right in zip(lefts, rights, strict=True):
        tokens.append(tokens[left] + tokens[right])
        if len(tokens[-1]) > MAX_TOKEN_BYTES:
            raise VocabularyError(
                f"token {len(tokens) - 1} would have {len(tokens[-1])} bytes, more than "
                f"{MAX_TOKEN_BYTES}: train fewer tokens, or use a pattern that makes shorter "
                "pre-tokens"
            )
    return tokens
