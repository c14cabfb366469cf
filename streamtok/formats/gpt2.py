"""GPT-2's pair of files: merges in order (`vocab.bpe`, `merges.txt`) and ids (`encoder.json`,
`vocab.json`), both in the byte alphabet.

Ids can be in any order. Pre-tokens are not looked up before merging, so text never becomes the id
of an entry that no merge makes. The files do not mark special tokens, so the caller names them; the
default is "<|endoftext|>".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import VocabularyError
from ..files import write_whole
from ..patterns.named import find_pattern
from ..registry import get_encoding
from ..vocabulary.byte_alphabet import all_to_bytes, to_text
from ..vocabulary.ranks_file import check_lines
from ..vocabulary.table import Vocabulary
from .json_value import JsonValue, parse_json
from .loading import decode_utf8, errors_at, make_encoding, read_bytes, shown
from .merge_lists import find_merges, from_rows, to_merges
from .tiktoken import HOW, plain_rules

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..encoding import Encoding
    from .loading import Path

    Numbers = NDArray[np.uint32]

__all__ = ["byte_vocabulary", "merges_and_ids", "read_gpt2", "read_merges", "save_gpt2"]

_HEADER = "#version"


def read_gpt2(
    merges_path: str,
    ids_path: str,
    name: str | None,
    pattern: str | None,
    special_tokens: Mapping[str, int] | None,
) -> Encoding:
    """The encoding of a file of merges and a file of ids.

    pattern: a name in `formats.PATTERNS`, or a regular expression; None: GPT-2's, which is allowed
    only for GPT-2's own merges. special_tokens: entries of the file of ids; None: "<|endoftext|>",
    if the file contains it. Raises OSError, and VocabularyError naming the file and the position.
    """
    ids = dict(JsonValue(parse_json(read_bytes(ids_path), ids_path), ids_path).as_ids())
    if special_tokens is None:
        special_tokens = {text: ids[text] for text in ("<|endoftext|>",) if text in ids}
    for text, number in special_tokens.items():
        if ids.pop(text, None) != number:
            raise VocabularyError(
                f"{ids_path}: the special token {text!r} with id {number} is not in the file"
            )
    merges = read_merges(read_bytes(merges_path), merges_path)
    with errors_at(ids_path):
        rows = find_merges([*ids], merges)
        vocabulary = byte_vocabulary(ids, rows, ignore_merges=False)
    if pattern is None and vocabulary != get_encoding("r50k_base").definition.vocabulary:
        raise VocabularyError(
            f"{merges_path}: files of merges have no pre-tokenization pattern, and these merges "
            f"are not GPT-2's: give a pattern, {HOW}"
        )
    return make_encoding(
        ids_path,
        name or "gpt2",
        pat_str=find_pattern(pattern or "gpt2"),
        mergeable_ranks=vocabulary,
        special_tokens=special_tokens,
    )


def read_merges(data: bytes, source: str) -> list[str]:
    """The lines of a file of merges: each holds two tokens, separated by a space.

    A first line "#version…" and empty lines are skipped.
    """
    text = decode_utf8(data, source)
    check_lines(data, source)
    merges = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line or (number == 1 and line.startswith(_HEADER)):
            continue
        if line.count(" ") != 1 or line[0] == " " or line[-1] == " ":
            raise VocabularyError(
                f"{source}, line {number}: expected two tokens and a space, found {shown(line)}"
            )
        merges.append(line)
    return merges


def byte_vocabulary(ids: Mapping[str, int], rows: Numbers, *, ignore_merges: bool) -> Vocabulary:
    """A vocabulary of tokens in the byte alphabet. rows: merges, as from `find_merges([*ids], …)`.

    A token with a character outside the alphabet can only be decoded, to its own text: it never
    takes part in a merge.
    """
    blob, offsets, has_bytes = all_to_bytes(ids)
    decode_only: dict[int, bytes] = {}
    if not has_bytes.all():
        for (text, number), is_token in zip(ids.items(), has_bytes.tolist(), strict=True):
            if not is_token:
                if number in decode_only:
                    raise VocabularyError(f"id {number} is given twice")
                decode_only[number] = text.encode()
    return from_rows(
        blob, offsets, np.fromiter(ids.values(), np.int64, len(ids)), rows,
        ignore_merges=ignore_merges, chosen=has_bytes, decode_only=decode_only,
    )  # fmt: skip


def save_gpt2(encoding: Encoding, merges_path: Path, ids_path: Path) -> None:
    """Write both files. Each appears only once it is complete. Neither contains the pattern.

    Raises OSError, and VocabularyError if they cannot express the encoding's tokens or text rules.
    """
    plain_rules(encoding, "GPT-2's pair of files")
    merges, ids = merges_and_ids(encoding, "GPT-2's pair of files")
    lines = "".join(f"{left} {right}\n" for left, right in merges)
    everything: dict[str, Any] = {**ids, **encoding.definition.specials.special}
    write_whole(merges_path, f"{_HEADER}: 0.2\n{lines}".encode())
    write_whole(ids_path, json.dumps(everything, ensure_ascii=False).encode() + b"\n")


def merges_and_ids(
    encoding: Encoding, format: str, allow_unreachable: bool = False
) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """(merges, ids): the merges in order, and ids by text in order of id, both in the byte
    alphabet.

    `ids` includes tokens that can only be decoded, but no special or added tokens.
    allow_unreachable: allow tokens that no merges make. Raises a VocabularyError that names
    `format`.
    """
    vocabulary = encoding.definition.vocabulary
    if vocabulary.byte_ids is not None:
        raise VocabularyError(f"{format} merges bytes, but {encoding.name} merges characters")
    merges = to_merges(vocabulary)
    made = {left + right for left, right in merges}
    tokens = [*zip(vocabulary.ids.tolist(), vocabulary.to_list(), strict=True)]
    if not allow_unreachable:
        for number, token in tokens:
            if len(token) > 1 and token not in made:
                raise VocabularyError(
                    f"{format} needs merges for every token: no merges make {shown(token)} of "
                    f"{encoding.name}, id {number}"
                )
    specials = set(encoding.definition.specials.special.values()) | {
        i for _, i in encoding.definition.rules.added_tokens
    }
    tokens += [row for row in vocabulary.decode_only.items() if row[0] not in specials]
    ids = {to_text(token): number for number, token in sorted(tokens)}
    if len(ids) != len(tokens):
        raise VocabularyError(f"{format} cannot hold two ids with the same bytes")
    return [(to_text(left), to_text(right)) for left, right in merges], ids
