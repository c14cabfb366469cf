"""Split patterns by name: for training, and for files that do not say how text is split."""

from __future__ import annotations

import re

from .. import registry
from ..errors import PatternError

__all__ = ["GPT2_PATTERN", "PATTERNS", "WHOLE_TEXT_PATTERN", "find_pattern"]

GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

PATTERNS = {
    **{name: spec.pat_str for name, spec in registry._SPECS.items()},
    "cl100k": registry._CL100K_PATTERN,
    "o200k": registry._O200K_PATTERN,
    "llama3": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "qwen2": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "nanochat": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
    ),
}

WHOLE_TEXT_PATTERN = r"[\s\S]+"  # the text is one pre-token


def find_pattern(pattern: str) -> str:
    """The regular expression that `pattern` names or is.

    >>> find_pattern("gpt2")[:12]
    "'(?:[sdmt]|l"
    """
    if pattern in PATTERNS:
        return PATTERNS[pattern]
    if re.fullmatch(r"[\w.-]+", pattern):
        raise PatternError(f"no pattern is named {pattern!r}: there are {', '.join(PATTERNS)}")
    return pattern
