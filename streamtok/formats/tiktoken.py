"""OpenAI's `.tiktoken`: on each line a token in base64, a blank and its rank, which is its id.

Neither the split pattern nor special tokens are in the file: they must be given. Where the file is
one of those that come with streamtok, `formats.load` knows them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import VocabularyError
from ..files.part_file import write_whole
from ..patterns.named import find_pattern
from ..vocabulary.ranks_file import dumps_tiktoken, loads_tiktoken
from ..vocabulary.table import Vocabulary
from .loading import check_specials, make_encoding, read_bytes, stem

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
    """Encoding: the ranks of a `.tiktoken` file, with a pattern and special tokens from elsewhere.

    pattern: a name ("gpt2", "cl100k_base", "llama3", …: `formats.PATTERNS`) or a regular
    expression. Raises VocabularyError naming the file and the line.
    """
    source = os.fspath(path)
    vocabulary = loads_tiktoken(read_bytes(path), source)
    return make_encoding(
        source,
        name or stem(path),
        pat_str=find_pattern(pattern),
        mergeable_ranks=vocabulary,
        special_tokens=check_specials(special_tokens or {}, source),
    )


def save_tiktoken(encoding: Encoding, path: Path) -> None:
    """Write the ranks, whole or not at all. The pattern and special tokens are not in the file.

    Raises VocabularyError for an encoding that ranks alone do not express.
    """
    write_whole(path, dumps_tiktoken(rank_table(encoding, ".tiktoken")))


def rank_table(encoding: Encoding, format: str) -> Vocabulary:
    """The plain rank table of an encoding; VocabularyError where it is more than that."""
    if not encoding._vocabulary.is_rank_table:
        raise VocabularyError(
            f"{format} holds ranks, and {encoding.name} has merges of its own: "
            "which pairs merge, and in what order, would be lost"
        )
    plain_rules(encoding, format)
    return encoding._vocabulary


def plain_rules(encoding: Encoding, format: str) -> None:
    """VocabularyError where an encoding does more to text than `format` can say."""
    rules = encoding._rules
    lost = {
        f"the normalizer {rules.normalizer!r}": rules.normalizer,
        f"tokens that are always recognised, like {(rules.added_tokens or [''])[0]}": (
            rules.added_tokens
        ),
    }
    for what, is_there in lost.items():
        if is_there:
            raise VocabularyError(f"{format} cannot say what {encoding.name} has: {what}")
    pattern = encoding.pattern
    if pattern is not None and pattern.is_composed:
        raise VocabularyError(
            f"{format} holds one split pattern, and {encoding.name} has several in turn"
        )
