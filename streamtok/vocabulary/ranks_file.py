"""OpenAI's text format, `.tiktoken`: on each line a token in base64, a blank and its rank."""

from __future__ import annotations

import binascii
import os

from ..errors import VocabularyError
from .table import MAX_ID, Vocabulary, show_token

MAX_DIGITS = len(str(MAX_ID))
MAX_LINES = 1 << 22  # of a file: twice as many as there are tokens in the largest table


def check_lines(data: bytes, source: str) -> None:
    """VocabularyError for a text of more lines than any vocabulary has tokens or merges."""
    if data.count(b"\n") + data.count(b"\r") > MAX_LINES:
        raise VocabularyError(f"{source}: more than {MAX_LINES} lines are no vocabulary")


def from_base64(field: bytes) -> bytes:
    """The token that `field` is in base64, the way it is written by all; else ValueError.

    Python's own strict mode is there from 3.11 on only.
    """
    token = binascii.a2b_base64(field)
    if binascii.b2a_base64(token, newline=False) != field:
        raise ValueError("not the base64 of any bytes")  # a2b_base64 skips what it does not know
    return token


def loads_tiktoken(data: bytes, source: str = "<bytes>") -> Vocabulary:
    """Read the contents of a `.tiktoken` file; errors name `source` and the line."""
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
                raise ValueError  # int() lets some nonsense pass
            rank = int(digits)
        except ValueError:
            raise VocabularyError(
                f"{source}, line {number}: expected a token in base64, a blank and its rank, "
                f"got {show_token(line)}"
            ) from None
        if token in ranks:
            raise VocabularyError(f"{source}, line {number}: {show_token(token)} comes a second time")
        if rank in lines_by_rank:
            first = lines_by_rank[rank]
            raise VocabularyError(
                f"{source}, line {number}: rank {rank} is already on line {first}"
            )
        ranks[token] = rank
        lines_by_rank[rank] = number
    try:
        return Vocabulary.from_ranks(ranks)
    except VocabularyError as error:
        raise VocabularyError(f"{source}: {error}") from None


def dumps_tiktoken(vocabulary: Vocabulary) -> bytes:
    """Write a vocabulary as the contents of a `.tiktoken` file."""
    return b"".join(
        binascii.b2a_base64(token, newline=False) + b" %d\n" % rank
        for token, rank in vocabulary.to_ranks().items()
    )


def load_tiktoken(path: str | os.PathLike[str]) -> Vocabulary:
    """Read a `.tiktoken` file; a damaged one raises `VocabularyError` with file and line."""
    with open(path, "rb") as file:
        return loads_tiktoken(file.read(), os.fspath(path))


def save_tiktoken(vocabulary: Vocabulary, path: str | os.PathLike[str]) -> None:
    """Write a `.tiktoken` file, whole or not at all."""
    from ..files.part_file import write_whole  # not needed to encode

    write_whole(path, dumps_tiktoken(vocabulary))
