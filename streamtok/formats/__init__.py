"""Vocabulary files of other programs: `load` reads all formats, `save_…` functions write some.

The `Encoding` that `load` returns produces the same ids as the format's own program, for whole
texts and for streams. A damaged file or an unsupported feature raises a `VocabularyError` that
names the problem and its position. `docs/formats.md` lists what is supported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..patterns.named import PATTERNS
    from .detection import load
    from .gpt2 import save_gpt2
    from .huggingface_writing import save_huggingface
    from .packed import save_packed
    from .tiktoken import save_tiktoken

_MODULES = {
    "PATTERNS": "..patterns.named",
    "load": ".detection",
    "save_gpt2": ".gpt2",
    "save_huggingface": ".huggingface_writing",
    "save_packed": ".packed",
    "save_tiktoken": ".tiktoken",
}

__all__ = ["PATTERNS", "load", "save_gpt2", "save_huggingface", "save_packed", "save_tiktoken"]


class Written(NamedTuple):
    """A format that `streamtok convert` and `train` write.

    files: its usual file names; a pair of files is written to a folder. lost: what the format
    cannot store.
    """

    files: tuple[str, ...]
    lost: str = ""


WRITTEN = {
    "tiktoken": Written(("x.tiktoken",), "the pattern and special tokens"),
    "gpt2": Written(("vocab.bpe", "encoder.json"), "the pattern and which tokens are special"),
    "huggingface": Written(("tokenizer.json",)),
    "streamtok": Written(("x.streamtok",)),
}
"""Formats by name, as `--to` takes them."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
