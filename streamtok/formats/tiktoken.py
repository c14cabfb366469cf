"""OpenAI's `.tiktoken`: a line holds a token in base64, a space, and the rank, which is its id.

The file contains neither the pattern nor special tokens: the caller passes them, unless the table
is bundled with streamtok. `vocabulary/ranks_file.py` parses the lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import VocabularyError
from ..files import write_whole
from ..patterns.named import find_pattern
from ..registry import get_encoding
from ..vocabulary.ranks_file import dumps_tiktoken, loads_tiktoken
from .loading import make_encoding, stem

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .loading import Path

__all__ = ["HOW", "plain_rules", "read_tiktoken", "save_tiktoken"]

HOW = 'such as FILE@cl100k on the command line and pattern="cl100k" in Python'
_TABLES = ("r50k_base", "p50k_base", "cl100k_base", "o200k_base")


def read_tiktoken(
    data: bytes,
    source: str,
    name: str | None,
    pattern: str | None,
    special_tokens: Mapping[str, int] | None,
) -> Encoding:
    """The encoding in the contents of a `.tiktoken` file.

    pattern: a name in `formats.PATTERNS` ("gpt2", "cl100k_base", "llama3", …), or a regular
    expression; if it is None, the table must be a bundled one, and its pattern and, by default, its
    special tokens are used. Raises PatternError for an unknown name, and VocabularyError naming the
    file and the line.
    """
    vocabulary = loads_tiktoken(data, source)
    if pattern is None:
        known = next(
            (one for one in _TABLES if get_encoding(one).definition.vocabulary == vocabulary), None
        )
        if known is None:
            raise VocabularyError(
                f"{source}: a .tiktoken file has no pre-tokenization pattern, and this table is "
                f"not one of {', '.join(_TABLES)}: give a pattern, {HOW}"
            )
        name, pattern = name or known, known
        if special_tokens is None:
            special_tokens = get_encoding(known).definition.specials.special
    return make_encoding(
        source,
        name or stem(source),
        pat_str=find_pattern(pattern),
        mergeable_ranks=vocabulary,
        special_tokens=special_tokens or {},
    )


def save_tiktoken(encoding: Encoding, path: Path) -> None:
    """Write the ranks, without the pattern and special tokens, to a file that appears only once it
    is complete.

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
        lost = f"tokens that are always recognized, such as {rules.added_tokens[0][0]!r},"
    elif pattern is not None and pattern.is_composed:
        lost = "the sequence of several patterns"
    if lost:
        raise VocabularyError(f"{format} cannot express {lost} of {encoding.name}")
