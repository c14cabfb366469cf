"""p50k_base, made from r50k_base: the same tokens, and runs of 2 to 25 spaces after them.

A test compares the result, as a `.tiktoken` file, with the SHA-256 that OpenAI publishes.
"""

from __future__ import annotations

import numpy as np

from .bundled import load_bundled
from .table import Vocabulary

_FIRST_ID = 50257  # r50k_base ends at 50255; 50256 is <|endoftext|>
_LENGTHS = range(2, 26)


def load_p50k() -> Vocabulary:
    """The vocabulary of p50k_base and p50k_edit. Raises `VocabularyError`, as `load_bundled`."""
    base = load_bundled("r50k_base")
    runs = [b" " * length for length in _LENGTHS]
    ends = len(base.tokens) + np.cumsum(_LENGTHS)
    return Vocabulary(
        base.tokens + b"".join(runs),
        np.concatenate([base.offsets, ends]).astype(np.uint32),
        np.concatenate([base.ids, np.arange(len(runs)) + _FIRST_ID]).astype(np.uint32),
    )
