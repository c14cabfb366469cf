"""Encodings that tests make: of all bytes and a few tokens, or like a bundled one."""

from __future__ import annotations

from typing import Any

import streamtok
from streamtok.engines.rules import TextRules
from streamtok.formats.sentencepiece_normalizer import rules_of

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


def space_rules(added: Any = (), space_first: bool = True) -> TextRules:
    """Those of a SentencePiece model that changes spaces only."""
    return rules_of({3: space_first, 4: 0}, dict(added), None, "made")


def like(name: str, /, **changes: Any) -> streamtok.Encoding:
    """A new encoding like a bundled one, with other arguments of `make_encoding`."""
    known = encoding_of(name)
    arguments = {"pattern": known._pat_str, "ranks": known.definition.vocabulary, "name": name}
    return make_encoding(**arguments | {"special": known._special_tokens} | changes)
