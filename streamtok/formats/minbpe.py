"""minbpe's `.model`: a line "minbpe v1", the split pattern, the special tokens, the merges.

A merge is a line of two ids; what it makes gets the next id from 256 on, and ids below 256 are the
bytes. Pieces are not looked up. minbpe's reader strips blanks from both ends of the pattern and
splits a special token from its id at blanks, so neither can be written with them. An empty pattern
is that of its BasicTokenizer: the whole text is one piece. (github.com/karpathy/minbpe, MIT)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..errors import VocabularyError
from ..files.part_file import write_whole
from ..vocabulary.ranks_file import check_lines
from ..vocabulary.table import MAX_TOKEN_BYTES
from .loading import check_specials, make_encoding, read_bytes, shown, stem
from .merge_lists import from_merges, to_merges
from .tiktoken import plain_rules

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .loading import Path

__all__ = ["load_minbpe", "save_minbpe"]

MAGIC = b"minbpe v1"
_MAX_TOTAL = 1 << 25  # bytes of all tokens: a line can double what came before
_WHOLE_TEXT = r"[\s\S]+"


def load_minbpe(path: Path, *, name: str | None = None) -> Encoding:
    """Encoding: pattern, special tokens and merges of a minbpe model.

    Raises VocabularyError naming the file and the line.
    """
    source = os.fspath(path)
    data = read_bytes(path)
    check_lines(data, source)
    lines = data.split(b"\n")
    if lines[0].strip() != MAGIC:
        raise VocabularyError(
            f"{source}, line 1: expected {MAGIC.decode()!r}, got {shown(lines[0])}"
        )
    if lines[-1] == b"":
        lines.pop()
    if len(lines) < 3:
        raise VocabularyError(f"{source}: the file ends before the merges")
    try:
        pattern = lines[1].decode("utf-8").strip()
    except UnicodeDecodeError:
        raise VocabularyError(f"{source}, line 2: the pattern is not UTF-8") from None
    count = _numbers(lines[2], 1, f"{source}, line 3: the number of special tokens")[0]
    if count > len(lines) - 3:
        raise VocabularyError(f"{source}: the file ends before its {count} special tokens do")
    specials: dict[str, int] = {}
    for number, line in enumerate(lines[3 : 3 + count], 4):
        where = f"{source}, line {number}: a special token and its id"
        try:
            text, digits = line.decode("utf-8").split()
        except ValueError:
            raise VocabularyError(f"{where}: got {shown(line)}") from None
        if text in specials:
            raise VocabularyError(f"{where}: {shown(text)} comes a second time")
        specials[text] = _numbers(digits.encode(), 1, where)[0]
    tokens = [bytes([byte]) for byte in range(256)]
    ids = {token: i for i, token in enumerate(tokens)}
    merges = []
    total = 0
    for number, line in enumerate(lines[3 + count :], 4 + count):
        where = f"{source}, line {number}: a merge of two earlier ids"
        left, right = _numbers(line, 2, where)
        if max(left, right) >= len(tokens):
            raise VocabularyError(f"{where}: {max(left, right)} is not made yet")
        token = tokens[left] + tokens[right]
        total += len(token)
        if len(token) > MAX_TOKEN_BYTES or total > _MAX_TOTAL:
            raise VocabularyError(f"{where}: the token has {len(token)} bytes, all have {total}")
        if token in ids:
            raise VocabularyError(
                f"{where}: ids {ids[token]} and {len(tokens)} are both {shown(token)}"
            )
        ids[token] = len(tokens)
        tokens.append(token)
        merges.append((tokens[left], tokens[right]))
    return make_encoding(
        source,
        name or stem(path),
        pat_str=pattern or _WHOLE_TEXT,
        mergeable_ranks=from_merges(ids, merges, whole_pieces=False),
        special_tokens=check_specials(specials, source),
    )


def _numbers(line: bytes, count: int, where: str) -> list[int]:
    fields = line.split()
    if len(fields) != count or not all(field.isdigit() and len(field) < 10 for field in fields):
        raise VocabularyError(f"{where}: got {shown(line)}")
    return [int(field) for field in fields]


def save_minbpe(encoding: Encoding, path: Path) -> None:
    """Write a minbpe model, whole or not at all.

    Raises VocabularyError for what the format cannot express: bytes whose ids are not their values
    (GPT-2's and GPT-4's), ids with holes, tokens that no merge makes, blanks around the pattern.
    """
    plain_rules(encoding, "a minbpe model")
    vocabulary = encoding._vocabulary
    ids = dict(zip(vocabulary.to_list(), vocabulary.ids.tolist(), strict=True))
    lines = [MAGIC.decode(), _pattern_line(encoding), str(len(encoding._special_tokens))]
    for text, number in encoding._special_tokens.items():
        if text.split() != [text]:
            raise VocabularyError(f"a minbpe model cannot hold the blank in {text!r}")
        lines.append(f"{text} {number}")
    for byte in range(256):
        if ids[bytes([byte])] != byte:
            raise VocabularyError(
                f"in a minbpe model byte {byte} has the id {byte}, "
                f"in {encoding.name} it is {ids[bytes([byte])]}"
            )
    for place, (left, right) in enumerate(to_merges(vocabulary), 256):
        if ids[left + right] != place:
            raise VocabularyError(
                f"in a minbpe model ids follow the merges without a hole, but {encoding.name} has "
                f"{ids[left + right]} for {shown(left + right)} instead of {place}"
            )
        if max(ids[left], ids[right]) >= place:
            raise VocabularyError(
                f"in a minbpe model a merge is of what is there, but {shown(left + right)} of "
                f"{encoding.name} is made of a later token"
            )
        lines.append(f"{ids[left]} {ids[right]}")
    if len(lines) - 3 - len(encoding._special_tokens) + 256 != len(ids) or vocabulary.decode_only:
        raise VocabularyError(f"no merge makes some tokens of {encoding.name}")
    write_whole(path, ("\n".join(lines) + "\n").encode())


def _pattern_line(encoding: Encoding) -> str:
    pattern = encoding._pat_str
    if pattern == _WHOLE_TEXT:
        return ""
    if pattern.strip() != pattern or len(pattern.splitlines()) != 1:
        raise VocabularyError(
            f"a minbpe model cannot hold blanks at an end of the pattern: {shown(pattern)}"
        )
    return pattern
