"""OpenAI's `.tiktoken`: each line holds a base64 token, a space and its rank, which is its id.

The file contains neither the pattern nor special tokens: the caller gives them. `formats.load`
recognises the tables that are bundled with streamtok. `vocabulary/ranks_file.py` parses the lines.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import VocabularyError
from ..files import write_whole
from ..patterns.named import find_pattern
from ..vocabulary.ranks_file import dumps_tiktoken, loads_tiktoken
from .loading import make_encoding, read_bytes, stem

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .loading import Path

__all__ = ["load_tiktoken", "save_tiktoken"]


def load_tiktoken(
    path: Path,
    *,
    pattern: str,
    special_tokens: Mapping[str, int] | None = None,
    name: str | None = None,
) -> Encoding:
    """The encoding of a `.tiktoken` file with the given pattern and special tokens.

    pattern: a name in `formats.PATTERNS` ("gpt2", "cl100k_base", "llama3", …), or a regular
    expression. Raises OSError, PatternError for an unknown name, and VocabularyError naming the
    file and the line.
    """
    source = os.fspath(path)
    vocabulary = loads_tiktoken(read_bytes(path), source)
    return make_encoding(
        source,
        name or stem(path),
        pat_str=find_pattern(pattern),
        mergeable_ranks=vocabulary,
        special_tokens=special_tokens or {},
    )


def save_tiktoken(encoding: Encoding, path: Path) -> None:
    """Write the ranks, without the pattern and special tokens. The file appears when complete.

    Raises OSError, and VocabularyError for an encoding that ranks alone cannot express.
    """
    vocabulary = encoding.definition.vocabulary
    if not vocabulary.is_rank_table:
        raise VocabularyError(
            f".tiktoken holds ranks, which cannot express the list of merges of {encoding.name}"
        )
    plain_rules(encoding, ".tiktoken")
    write_whole(path, dumps_tiktoken(vocabulary))


def plain_rules(encoding: Encoding, format: str) -> None:
    """Raise VocabularyError if an encoding has text rules that `format` cannot express."""
    rules = encoding.definition.rules
    pattern = encoding.pattern
    lost = None
    if rules.normalizer:
        lost = repr(rules.normalizer)
    elif rules.added_tokens:
        lost = f"tokens that are always recognised, such as {rules.added_tokens[0][0]!r},"
    elif pattern is not None and pattern.is_composed:
        lost = "the sequence of several patterns"
    if lost:
        raise VocabularyError(f"{format} cannot express {lost} of {encoding.name}")
