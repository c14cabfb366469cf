"""Vocabulary files of other programs: one `load_x` / `save_x` pair each, and `load` for any.

Each loader gives an `Encoding` with the ids of the format's own program, for whole texts and for
streams. Unsupported features and damaged files raise a `VocabularyError` that names them and the
place. `docs/formats.md` says what is supported.
"""

from ..patterns.named import PATTERNS
from .detection import load
from .gpt2 import load_gpt2, save_gpt2
from .huggingface import load_huggingface, save_huggingface
from .minbpe import load_minbpe, save_minbpe
from .nanochat import from_rustbpe, load_nanochat, save_nanochat
from .packed import load_packed, save_packed
from .sentencepiece import load_sentencepiece, save_sentencepiece
from .tekken import load_tekken, save_tekken
from .tiktoken import load_tiktoken, save_tiktoken

__all__ = [
    "PATTERNS",
    "from_rustbpe",
    "load",
    "load_gpt2",
    "load_huggingface",
    "load_minbpe",
    "load_nanochat",
    "load_packed",
    "load_sentencepiece",
    "load_tekken",
    "load_tiktoken",
    "save_gpt2",
    "save_huggingface",
    "save_minbpe",
    "save_nanochat",
    "save_packed",
    "save_sentencepiece",
    "save_tekken",
    "save_tiktoken",
]
