"""minbpe's `.model`: a line "minbpe v1", the pattern, the special tokens, and the merges.

A merge is a line of two ids. Ids below 256 are the bytes, and each merge makes the token with the
next id. Pre-tokens are not looked up before merging. An empty pattern, as minbpe's BasicTokenizer
writes it, makes the whole text one pre-token. (github.com/karpathy/minbpe, MIT)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import VocabularyError
from ..patterns.named import WHOLE_TEXT_PATTERN
from ..vocabulary.arrays import offsets_of
from ..vocabulary.ranks_file import check_lines
from ..vocabulary.table import MAX_TOKEN_BYTES
from .loading import make_encoding, shown
from .merge_lists import from_rows

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["MAGIC", "read_minbpe"]

MAGIC = b"minbpe v1"
_MAX_TOTAL = 1 << 25  # bytes of all tokens: each line can make a token twice as long


def read_minbpe(data: bytes, source: str, name: str) -> Encoding:
    """The encoding in the contents of a model file, whose first line is `MAGIC`.

    Raises VocabularyError naming the file and the line.
    """
    check_lines(data, source)
    lines = data.removesuffix(b"\n").split(b"\n")
    if len(lines) < 3:
        raise VocabularyError(f"{source}: the file ends before the merges")
    try:
        pattern = lines[1].decode("utf-8").strip()
    except UnicodeDecodeError:
        raise VocabularyError(f"{source}, line 2: the pattern is not UTF-8") from None
    count = _numbers(lines[2], 1, f"{source}, line 3: expected the number of special tokens")[0]
    if count > len(lines) - 3:
        raise VocabularyError(
            f"{source}: line 3 promises {count} special tokens, but the file ends before the last"
        )
    specials: dict[str, int] = {}
    for number, line in enumerate(lines[3 : 3 + count], 4):
        where = f"{source}, line {number}"
        expected = f"{where}: expected a special token and its id"
        try:
            text, digits = line.decode("utf-8").split()
        except ValueError:
            raise VocabularyError(f"{expected}, found {shown(line)}") from None
        if text in specials:
            raise VocabularyError(f"{where}: the special token {shown(text)} is given twice")
        specials[text] = _numbers(digits.encode(), 1, expected)[0]
    ids = {bytes([byte]): byte for byte in range(256)}
    tokens = [*ids]
    rows = []
    total = 0
    for number, line in enumerate(lines[3 + count :], 4 + count):
        where = f"{source}, line {number}"
        left, right = _numbers(line, 2, f"{where}: expected the ids of two tokens to merge")
        if max(left, right) >= len(tokens):
            raise VocabularyError(
                f"{where}: id {max(left, right)} is not defined yet: "
                f"expected ids below {len(tokens)}"
            )
        token = tokens[left] + tokens[right]
        total += len(token)
        if len(token) > MAX_TOKEN_BYTES or total > _MAX_TOTAL:
            raise VocabularyError(
                f"{where}: the token has {len(token)} bytes (at most {MAX_TOKEN_BYTES} are "
                f"possible), all tokens have {total} (at most {_MAX_TOTAL})"
            )
        if token in ids:
            raise VocabularyError(
                f"{where}: ids {ids[token]} and {len(tokens)} are both {shown(token)}"
            )
        ids[token] = len(tokens)
        tokens.append(token)
        rows.append((left, right, ids[token]))
    vocabulary = from_rows(
        b"".join(tokens),
        offsets_of(np.fromiter(map(len, tokens), np.int64, len(tokens))),
        np.arange(len(tokens)),
        np.array(rows, np.uint32).reshape(-1, 3),
        ignore_merges=False,
    )
    return make_encoding(
        source,
        name,
        pat_str=pattern or WHOLE_TEXT_PATTERN,
        mergeable_ranks=vocabulary,
        special_tokens=specials,
    )


def _numbers(line: bytes, count: int, expected: str) -> list[int]:
    """The `count` numbers in a line; `expected` begins the error message."""
    fields = line.split()
    if len(fields) != count or not all(field.isdigit() and len(field) < 10 for field in fields):
        raise VocabularyError(f"{expected}, found {shown(line)}")
    return [int(field) for field in fields]
