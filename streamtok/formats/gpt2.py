"""GPT-2's pair of files: merges in order (`vocab.bpe`, `merges.txt`) and ids (`encoder.json`,
`vocab.json`), both in the byte alphabet.

Ids can be in any order. Pre-tokens are not looked up before merging: text never becomes the id of
an entry that no merge makes. The files do not mark special tokens, so the caller names them; the
default is "<|endoftext|>".
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import gather_tokens
from ..errors import VocabularyError
from ..files.part_file import write_whole
from ..patterns.named import find_pattern
from ..vocabulary.byte_alphabet import ALPHABET, to_bytes, to_text
from ..vocabulary.ranks_file import check_lines
from ..vocabulary.table import Vocabulary
from .json_value import JsonValue, parse_json
from .loading import decode_utf8, make_encoding, read_bytes, shown
from .merge_lists import from_merges, from_rows, to_merges
from .tiktoken import plain_rules

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._core.json_tables import TextIds
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
    """The encoding of a file of merges and a file of ids.

    pattern: a name in `formats.PATTERNS`, or a regular expression. special_tokens: entries of the
    file of ids; by default "<|endoftext|>", if it is there. Raises OSError, and VocabularyError
    naming the file and the position.
    """
    source = os.fspath(ids_path)
    entries = JsonValue(parse_json(read_bytes(ids_path), source), source)
    ids = {
        text: JsonValue(value, f"{source}: {shown(text)}").as_int()
        for text, value in entries.as_dict().items()
    }
    if special_tokens is None:
        special_tokens = ["<|endoftext|>"] if "<|endoftext|>" in ids else []
    specials = {}
    for text in special_tokens:
        if text not in ids:
            raise VocabularyError(f"{source}: the special token {text!r} is not in the file")
        specials[text] = ids.pop(text)
    merges = read_merges(read_bytes(merges_path), os.fspath(merges_path))
    return make_encoding(
        source,
        name,
        pat_str=find_pattern(pattern),
        mergeable_ranks=vocabulary_of(ids, merges, ignore_merges=False, source=source),
        special_tokens=specials,
    )


def read_merges(data: bytes, source: str) -> list[tuple[str, str]]:
    """The pairs in a file of merges, one a line. Skips a first line "#version…" and empty lines."""
    text = decode_utf8(data, source)
    check_lines(data, source)
    merges = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line or (number == 1 and line.startswith(_HEADER)):
            continue
        left, space, right = line.partition(" ")
        if not (left and space and right) or " " in right:
            raise VocabularyError(
                f"{source}, line {number}: expected two tokens and a space, found {shown(line)}"
            )
        merges.append((left, right))
    return merges


def vocabulary_of(
    ids: dict[str, int],
    merges: list[tuple[str, str]],
    *,
    ignore_merges: bool,
    source: str,
) -> Vocabulary:
    """A vocabulary of tokens and merges in the byte alphabet. Errors name `source`.

    A token with a character outside of the alphabet can only be decoded, to its own text.
    """
    tokens: dict[bytes, int] = {}
    decode_only: dict[int, bytes] = {}
    for text, number in ids.items():
        token = to_bytes(text)
        if token is None:
            decode_only[number] = text.encode("utf-8", "surrogatepass")
        else:
            tokens[token] = number
    if taken := decode_only.keys() & set(tokens.values()):
        raise VocabularyError(f"{source}: id {min(taken)} is given twice")
    if len(decode_only) + len(tokens) != len(ids):
        raise VocabularyError(f"{source}: an id or a token is given twice")
    pairs = []
    for place, pair in enumerate(merges):
        parts = to_bytes(pair[0]), to_bytes(pair[1])
        if parts[0] is None or parts[1] is None:
            raise VocabularyError(
                f"{source}: merge {place}, of {shown(pair[0])} and {shown(pair[1])}, is not in the "
                "byte alphabet"
            )
        pairs.append((parts[0], parts[1]))
    try:
        return from_merges(tokens, pairs, ignore_merges=ignore_merges, decode_only=decode_only)
    except VocabularyError as error:
        raise VocabularyError(f"{source}: {error}") from None


def vocabulary_of_rows(
    ids: TextIds,
    merges: NDArray[np.uint32],
    kept: NDArray[np.bool_],
    *,
    ignore_merges: bool,
) -> Vocabulary | None:
    """As `vocabulary_of`, of the tables of `parse_tokenizer`; None for tables that it refuses.

    merges: uint32 [m, 3], as in `MergeRows`. kept: which of the ids are entries; those that merges
    take or make are.
    """
    blob, offsets, outside = ids.in_bytes(ALPHABET)
    numbers = ids.arrays()[2]
    others = np.flatnonzero(kept & outside)
    bounds = offsets.tolist() if len(others) else []
    decode_only = {
        int(numbers[row]): blob[bounds[row] : bounds[row + 1]] for row in others.tolist()
    }
    if outside[merges].any() or len(decode_only) < len(others):
        return None
    chosen = np.flatnonzero(kept & ~outside).astype(np.uint32)
    if not (numbers[chosen][1:] > numbers[chosen][:-1]).all():
        chosen = chosen[np.argsort(numbers[chosen], kind="stable")]
    place = np.zeros(len(ids), np.uint32)
    place[chosen] = np.arange(len(chosen), dtype=np.uint32)
    blob, offsets = gather_tokens(blob, offsets, chosen)
    try:
        return from_rows(
            blob, offsets, numbers[chosen], place[merges],
            ignore_merges=ignore_merges, decode_only=decode_only,
        )  # fmt: skip
    except VocabularyError:
        return None


def save_gpt2(encoding: Encoding, merges_path: Path, ids_path: Path) -> None:
    """Write both files. Each appears when it is complete. Neither contains the pattern.

    Raises OSError, and VocabularyError if they cannot express it: tokens that no merges make,
    and text rules beyond the pattern.
    """
    plain_rules(encoding, "GPT-2's pair of files")
    merges, ids = merges_and_ids(encoding, "GPT-2's pair of files")
    lines = "".join(f"{left} {right}\n" for left, right in merges)
    everything: dict[str, Any] = {**ids, **encoding._special_tokens}
    write_whole(merges_path, f"{_HEADER}: 0.2\n{lines}".encode())
    write_whole(ids_path, json.dumps(everything, ensure_ascii=False).encode() + b"\n")


def merges_and_ids(
    encoding: Encoding, format: str, allow_unreachable: bool = False
) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Merges and ids in the byte alphabet, in order of id, with the ids that can only be decoded.

    allow_unreachable: allow tokens that no merges make. Raises VocabularyError, naming `format`.
    """
    vocabulary = encoding._vocabulary
    if vocabulary.byte_ids is not None:
        raise VocabularyError(f"{format} merges bytes, but {encoding.name} merges characters")
    merges = to_merges(vocabulary)
    made = {left + right for left, right in merges}
    tokens = vocabulary.to_list()
    if not allow_unreachable:
        for token, number in zip(tokens, vocabulary.ids.tolist(), strict=True):
            if len(token) > 1 and token not in made:
                raise VocabularyError(
                    f"{format} needs merges for every token: no merges make {shown(token)} of "
                    f"{encoding.name}, id {number}"
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
        raise VocabularyError(f"{format} cannot hold two ids with the same bytes")
    return [(to_text(left), to_text(right)) for left, right in merges], text_of
