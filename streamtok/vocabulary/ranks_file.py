"""OpenAI's text format, `.tiktoken`: each line has a base64 token, a space and a rank.

This module reads and writes rank tables. `formats/tiktoken.py` makes them into an `Encoding`.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping

from ..errors import VocabularyError
from .table import MAX_ID, Vocabulary, show_token

MAX_DIGITS = len(str(MAX_ID))
MAX_LINES = 1 << 22  # of a file: twice the number of tokens in the largest table


def check_lines(data: bytes, source: str) -> None:
    """Raise VocabularyError if a text has more lines than any vocabulary has tokens or merges."""
    if data.count(b"\n") + data.count(b"\r") > MAX_LINES:
        raise VocabularyError(f"{source}: the file must have at most {MAX_LINES} lines")


def from_base64(field: bytes) -> bytes:
    """Decode canonical base64. Raises ValueError for any other spelling.

    The strict mode of `binascii` would do this, but it needs Python 3.11.
    """
    token = binascii.a2b_base64(field)
    if binascii.b2a_base64(token, newline=False) != field:
        raise ValueError("not canonical base64")  # a2b_base64 skips unknown characters
    return token


def loads_tiktoken(data: bytes, source: str = "<bytes>") -> Vocabulary:
    """Read the contents of a `.tiktoken` file.

    Raises a `VocabularyError` naming `source` and any bad line. Costs O(n log n) for n tokens.
    """
    ranks = ranks_in(data, source)
    try:
        return Vocabulary.from_ranks(ranks)
    except VocabularyError as error:
        raise VocabularyError(f"{source}: {error}") from None


def ranks_in(data: bytes, source: str) -> dict[bytes, int]:
    """The tokens and their ranks, in the order of the file; single bytes may be missing.

    Raises a `VocabularyError` naming `source` and any bad line.
    """
    check_lines(data, source)
    ranks: dict[bytes, int] = {}
    lines_by_rank: dict[int, int] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line:
            continue
        try:
            field, digits = line.split()
            token = from_base64(field)
            if not digits.isdigit() or len(digits) > MAX_DIGITS:
                raise ValueError  # int() also takes signs, underscores and other digits
            rank = int(digits)
        except ValueError:
            raise VocabularyError(
                f"{source}, line {number}: expected a token in base64, a space and its rank, "
                f"found {show_token(line)}"
            ) from None
        if token in ranks:
            first = lines_by_rank[ranks[token]]
            raise VocabularyError(
                f"{source}, line {number}: the token {show_token(token)} is already on line {first}"
            )
        if rank in lines_by_rank:
            first = lines_by_rank[rank]
            raise VocabularyError(
                f"{source}, line {number}: rank {rank} is already on line {first}"
            )
        ranks[token] = rank
        lines_by_rank[rank] = number
    return ranks


def dumps_tiktoken(vocabulary: Vocabulary) -> bytes:
    """The contents of a `.tiktoken` file, in order of rank.

    Raises `VocabularyError` if `vocabulary` is not a rank table.
    """
    return lines_of(vocabulary.to_ranks())


def lines_of(ranks: Mapping[bytes, int]) -> bytes:
    """The lines of a `.tiktoken` file, in order of rank."""
    return b"".join(
        binascii.b2a_base64(token, newline=False) + b" %d\n" % rank
        for token, rank in sorted(ranks.items(), key=lambda item: item[1])
    )
