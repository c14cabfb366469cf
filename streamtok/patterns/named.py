"""Pre-tokenization patterns by name: for training, and for files without a pattern."""

from __future__ import annotations

import re

from ..errors import PatternError
from .huggingface_characters import NOT_PUNCTUATION, PUNCTUATION

__all__ = [
    "BERT_PATTERN",
    "DEEPSEEK_V3_PATTERNS",
    "GPT2_PATTERN",
    "PATTERNS",
    "WHOLE_TEXT_PATTERN",
    "find_pattern",
]

R50K_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
O200K_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

# Applied in turn, each with the behavior that Hugging Face calls "isolated".
DEEPSEEK_V3_PATTERNS = (
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
    "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
    "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
)

# Words and punctuation, as BertPreTokenizer splits them; white space is dropped.
BERT_PATTERN = re.sub(
    r"\\x\{(\w+)\}", lambda code: chr(int(code[1], 16)), rf"{PUNCTUATION}|{NOT_PUNCTUATION}+"
)

PATTERNS = {
    **dict.fromkeys(("gpt2", "r50k_base", "p50k_base", "p50k_edit"), R50K_PATTERN),
    **dict.fromkeys(("cl100k_base", "cl100k"), CL100K_PATTERN),
    **dict.fromkeys(("o200k_base", "o200k_harmony", "o200k"), O200K_PATTERN),
    "llama3": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "qwen2": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "bert": BERT_PATTERN,
    "nanochat": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
    ),
}

WHOLE_TEXT_PATTERN = r"[\s\S]+"  # the text is one pre-token


def find_pattern(pattern: str) -> str:
    """The regular expression named `pattern`, or `pattern` itself if it is not a name.

    >>> find_pattern("gpt2")[:12]
    "'(?:[sdmt]|l"
    """
    if pattern in PATTERNS:
        return PATTERNS[pattern]
    if re.fullmatch(r"[\w.-]+", pattern):
        raise PatternError(f"no pattern is named {pattern!r}; known are {', '.join(PATTERNS)}")
    return pattern
