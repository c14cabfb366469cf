"""Encodings that tests make: of all bytes and a few tokens, or like a bundled one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import streamtok
from streamtok.engines.rules import TextRules
from streamtok.formats.merge_lists import find_merges, from_rows
from streamtok.formats.sentencepiece_normalizer import rules_of
from streamtok.vocabulary.arrays import offsets_of
from streamtok.vocabulary.table import Vocabulary

from .conftest import encoding_of

SINGLES = {bytes([byte]): byte for byte in range(256)}


def make_encoding(
    pattern: Any = r"[\s\S]",
    ranks: Any = SINGLES,
    special: dict[str, int] | None = None,
    name: str = "made",
    **more: Any,
) -> streamtok.Encoding:
    """One of these tokens. more: rules, a template."""
    return streamtok.Encoding(
        name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special or {}, **more
    )


def from_merges(
    ids: Mapping[bytes, int], merges: Iterable[Sequence[bytes]], *, ignore_merges: bool
) -> Vocabulary:
    """A vocabulary of tokens with their ids, and of the pairs that merge, in order of priority."""
    names = [token.decode("latin-1") for token in ids]  # a text for each, with a letter for a byte
    rows = find_merges(names, [[part.decode("latin-1") for part in pair] for pair in merges])
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    numbers = np.array([*ids.values()], np.int64)
    return from_rows(b"".join(ids), offsets_of(lengths), numbers, rows, ignore_merges=ignore_merges)


def space_rules(added: Any = (), space_first: bool = True) -> TextRules:
    """Those of a SentencePiece model that changes spaces only."""
    return rules_of({3: space_first, 4: 0}, dict(added), None, "made")


def like(name: str, /, **changes: Any) -> streamtok.Encoding:
    """A new encoding like a bundled one, with other arguments of `make_encoding`."""
    known = encoding_of(name)
    arguments = {"pattern": known._pat_str, "ranks": known.definition.vocabulary, "name": name}
    return make_encoding(**arguments | {"special": known._special_tokens} | changes)
