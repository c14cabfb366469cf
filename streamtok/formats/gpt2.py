"""GPT-2's pair of files: merges in order (`vocab.bpe`, `merges.txt`) and ids (`encoder.json`,
`vocab.json`), both in the byte alphabet.

The order of lines is the order of merges, and ids may be in any other. Pieces are not looked up:
an entry of the JSON file that no merge makes is never the id of text. Special tokens are entries
that only the user can tell from others, so they are named; by default "<|endoftext|>" is one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..errors import VocabularyError
from ..files.part_file import write_whole
from ..patterns.named import find_pattern
from ..vocabulary.ranks_file import check_lines
from ..vocabulary.table import Vocabulary
from ..vocabulary.byte_alphabet import to_bytes, to_text
from .loading import Reader, make_encoding, parse_json, read_bytes, shown
from .merge_lists import from_merges, to_merges
from .tiktoken import plain_rules

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .loading import Path

__all__ = ["load_gpt2", "save_gpt2"]

_HEADER = "#version"


def load_gpt2(
    merges_path: Path,
    ids_path: Path,
    *,
    pattern: str = "gpt2",
    special_tokens: Iterable[str] | None = None,
    name: str = "gpt2",
) -> Encoding:
    """Encoding: merges from one file and ids from the other.

    special_tokens: texts that are in the second file; by default "<|endoftext|>" if it is there.
    pattern: a name or a regular expression. Raises VocabularyError naming file and place.
    """
    source = os.fspath(ids_path)
    entries = Reader(parse_json(read_bytes(ids_path), source), source)
    ids = {
        text: Reader(value, f"{source}: {shown(text)}").as_int()
        for text, value in entries.as_dict().items()
    }
    if special_tokens is None:
        special_tokens = ["<|endoftext|>"] if "<|endoftext|>" in ids else []
    specials = {}
    for text in special_tokens:
        if text not in ids:
            raise VocabularyError(f"{source}: the special token {text!r} is not there")
        specials[text] = ids.pop(text)
    merges = read_merges(read_bytes(merges_path), os.fspath(merges_path))
    return make_encoding(
        source,
        name,
        pat_str=find_pattern(pattern),
        mergeable_ranks=vocabulary_of(ids, merges, False, source),
        special_tokens=specials,
    )


def read_merges(data: bytes, source: str) -> list[tuple[str, str]]:
    """The pairs of a file of merges, a line each, but a first line "#version…" and blank ones."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise VocabularyError(f"{source}, byte {error.start}: not UTF-8") from None
    check_lines(data, source)
    merges = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line or (number == 1 and line.startswith(_HEADER)):
            continue
        left, blank, right = line.partition(" ")
        if not (left and blank and right) or " " in right:
            raise VocabularyError(
                f"{source}, line {number}: expected two tokens and a blank, got {shown(line)}"
            )
        merges.append((left, right))
    return merges


def vocabulary_of(
    ids: dict[str, int],
    merges: list[tuple[str, str]],
    whole_pieces: bool,
    source: str,
) -> Vocabulary:
    """A vocabulary from tokens and merges in the byte alphabet.

    A token with a character that is not in the alphabet can only be decoded, as its own text.
    """
    tokens: dict[bytes, int] = {}
    others: dict[int, bytes] = {}
    for text, number in ids.items():
        token = to_bytes(text)
        if token is None:
            others[number] = text.encode("utf-8", "surrogatepass")
        else:
            tokens[token] = number
    if taken := others.keys() & set(tokens.values()):
        raise VocabularyError(f"{source}: id {min(taken)} is given twice")
    if len(others) + len(tokens) != len(ids):
        raise VocabularyError(f"{source}: an id is given twice, or a token is")
    pairs = []
    for place, pair in enumerate(merges):
        parts = to_bytes(pair[0]), to_bytes(pair[1])
        if parts[0] is None or parts[1] is None:
            raise VocabularyError(
                f"{source}: merge {place} of {pair[0]!r} and {pair[1]!r} "
                "is not in the byte alphabet"
            )
        pairs.append((parts[0], parts[1]))
    try:
        return from_merges(tokens, pairs, whole_pieces=whole_pieces, decode_only=others)
    except VocabularyError as error:
        raise VocabularyError(f"{source}: {error}") from None


def save_gpt2(encoding: Encoding, merges_path: Path, ids_path: Path) -> None:
    """Write both files, each whole or not at all. The split pattern is in neither.

    Raises VocabularyError for what they cannot express: tokens that only a whole-piece look-up
    finds, and text rules beyond the pattern.
    """
    plain_rules(encoding, "GPT-2's pair of files")
    merges, ids = merges_and_ids(encoding, "GPT-2's pair of files")
    lines = "".join(f"{left} {right}\n" for left, right in merges)
    everything: dict[str, Any] = {**ids, **encoding._special_tokens}
    write_whole(merges_path, f"{_HEADER}: 0.2\n{lines}".encode())
    write_whole(ids_path, json.dumps(everything, ensure_ascii=False).encode() + b"\n")


def merges_and_ids(
    encoding: Encoding, format: str, allow_lost: bool = False
) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Merges and ids in the byte alphabet, by rising id; what only decodes is among the ids.

    allow_lost: whether there may be tokens that only a whole-piece look-up finds.
    """
    vocabulary = encoding._vocabulary
    if vocabulary.byte_ids is not None:
        raise VocabularyError(
            f"{format} knows bytes, and {encoding.name} has tokens made of characters"
        )
    merges = to_merges(vocabulary)
    made = {left + right for left, right in merges}
    tokens = vocabulary.to_list()
    if not allow_lost:
        for token, number in zip(tokens, vocabulary.ids.tolist(), strict=True):
            if len(token) > 1 and token not in made:
                raise VocabularyError(
                    f"{format} does not look whole pieces up, but nothing else finds "
                    f"{shown(token)} of {encoding.name}, id {number}"
                )
    ids = [
        (number, to_text(token))
        for token, number in zip(tokens, vocabulary.ids.tolist(), strict=True)
    ]
    specials = set(encoding._special_tokens.values()) | {i for _, i in encoding._rules.added_tokens}
    for number, token in vocabulary.decode_only.items():
        if number not in specials:
            ids.append((number, to_text(token)))
    text_of = {text: number for number, text in sorted(ids)}
    if len(text_of) != len(ids):
        raise VocabularyError(f"{format} cannot hold two ids of the same bytes")
    return [(to_text(left), to_text(right)) for left, right in merges], text_of
