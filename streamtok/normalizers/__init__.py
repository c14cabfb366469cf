"""Normalizers: steps that change a text before the pattern cuts it.

Read `step.py` first: it defines a step. `normalizer.py` combines steps into a sequence. From
`elements.py`, the core learns one table for the whole sequence, which then changes all texts, whole
and in streams. The other files contain the steps. Results are those of Hugging Face's `tokenizers`
or, for `LongestMap`, `JoinedSpaces` and `UnknownRuns`, of SentencePiece. `docs/normalizers.md`
lists the Unicode versions.
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
