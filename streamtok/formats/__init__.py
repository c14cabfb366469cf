"""Vocabulary files of other programs: a `load_x` for each, some `save_x`, and `load` for any.

Each loader gives an `Encoding` with the ids of the format's own program, for whole texts and for
streams. Unsupported features and damaged files raise a `VocabularyError` that names them and the
place. `docs/formats.md` says what is supported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..patterns.named import PATTERNS
    from .detection import load
    from .gpt2 import load_gpt2, save_gpt2
    from .huggingface import load_huggingface, save_huggingface
    from .minbpe import load_minbpe
    from .nanochat import from_rustbpe, load_nanochat
    from .packed import load_packed, save_packed
    from .sentencepiece import load_sentencepiece
    from .tekken import load_tekken
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
    "save_packed",
    "save_tiktoken",
]


class Written(NamedTuple):
    """A format that `streamtok convert` and `train` write.

    of: the x of its load_x and save_x. files: its usual names; several are written into a folder.
    lost: what it has no room for.
    """

    of: str
    files: tuple[str, ...]
    lost: str = ""


WRITTEN = {
    "tiktoken": Written("tiktoken", ("x.tiktoken",), "the pattern and special tokens"),
    "gpt2": Written(
        "gpt2", ("vocab.bpe", "encoder.json"), "the pattern and which tokens are special"
    ),
    "huggingface": Written("huggingface", ("tokenizer.json",)),
    "streamtok": Written("packed", ("x.streamtok",)),
}
"""By name, for --to."""

_MODULES = {  # the others are load_x or save_x of x
    "PATTERNS": "..patterns.named", "from_rustbpe": ".nanochat", "load": ".detection",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES.get(name) or f".{name.partition('_')[2]}"
    value = getattr(importlib.import_module(module, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
