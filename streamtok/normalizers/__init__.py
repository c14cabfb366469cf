"""Normalizers: what changes a text before the pattern cuts it.

Read `step.py` first: it says what a step is. `normalizer.py` joins steps to a sequence, and
`elements.py` is what the core learns one table of a sequence from; that changes all texts, whole
and in streams. The rest of the files has the steps. The results are those of Hugging
Face's `tokenizers`, those of `LongestMap`, `JoinedSpaces` and `UnknownRuns` SentencePiece's;
`docs/normalizers.md` says which Unicode version decides.
"""

from .characters import (
    BertAccents,
    BertChinese,
    BertClean,
    ByteLetters,
    Lowercase,
    Nmt,
    StripAccents,
)
from .edges import PREFIX_SPACE, JoinedSpaces, MetaspaceText, Prepend, Strip
from .forms import Form
from .longest_map import LongestMap
from .normalizer import Normalizer
from .precompiled import Precompiled
from .replace import Replace, ReplaceRuns, UnknownRuns
from .step import Step

__all__ = [
    "PREFIX_SPACE",
    "BertAccents",
    "BertChinese",
    "BertClean",
    "ByteLetters",
    "Form",
    "JoinedSpaces",
    "LongestMap",
    "Lowercase",
    "MetaspaceText",
    "Nmt",
    "Normalizer",
    "Precompiled",
    "Prepend",
    "Replace",
    "ReplaceRuns",
    "Step",
    "Strip",
    "StripAccents",
    "UnknownRuns",
]
