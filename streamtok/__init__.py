"""streamtok: exact byte-level BPE of unbounded streams. Public names only."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._core.encode import cache_limit, set_cache_limit
from .encoding import Encoding
from .errors import (
    ArchiveError,
    CheckpointError,
    DocumentError,
    FormatLimitError,
    MemoryLimitExceeded,
    MissingLibraryError,
    PatternError,
    PendingLimitExceeded,
    PlanError,
    SidecarError,
    StateError,
    StreamInUseError,
    StreamtokError,
    UnsupportedPatternError,
    UnsupportedStreamError,
    VocabularyError,
)
from .patterns.pattern import Pattern
from .registry import encoding_for_model, encoding_name_for_model, get_encoding, list_encoding_names
from .vocabulary.table import Vocabulary

if TYPE_CHECKING:
    from . import formats as formats
    from .answers.counter import Counter
    from .answers.splitting import Chunk
    from .answers.truncation import Truncated
    from .chunker import StreamDecoder, StreamEncoder
    from .columns.column_encoder import ColumnEncoder
    from .formats import load
    from .parts.commit import commit
    from .parts.part import run_part
    from .parts.plan import Plan, plan
    from .training.trainer import Trainer

__version__ = "0.1.0"

__all__ = [
    "ArchiveError",
    "CheckpointError",
    "Chunk",
    "ColumnEncoder",
    "Counter",
    "DocumentError",
    "Encoding",
    "FormatLimitError",
    "MemoryLimitExceeded",
    "MissingLibraryError",
    "Pattern",
    "PatternError",
    "PendingLimitExceeded",
    "Plan",
    "PlanError",
    "SidecarError",
    "StateError",
    "StreamDecoder",
    "StreamEncoder",
    "StreamInUseError",
    "StreamtokError",
    "Trainer",
    "Truncated",
    "UnsupportedPatternError",
    "UnsupportedStreamError",
    "Vocabulary",
    "VocabularyError",
    "cache_limit",
    "commit",
    "encoding_for_model",
    "encoding_name_for_model",
    "get_encoding",
    "list_encoding_names",
    "load",
    "plan",
    "run_part",
    "set_cache_limit",
]

_LATER = {  # not needed to encode: imported when asked for
    "Chunk": "answers.splitting",
    "ColumnEncoder": "columns.column_encoder",
    "Counter": "answers.counter",
    "Plan": "parts.plan",
    "StreamDecoder": "chunker",
    "StreamEncoder": "chunker",
    "Trainer": "training.trainer",
    "Truncated": "answers.truncation",
    "commit": "parts.commit",
    "load": "formats",
    "plan": "parts.plan",
    "run_part": "parts.part",
}


def __getattr__(name: str) -> Any:
    if name == "formats":
        return importlib.import_module(".formats", __name__)
    if name in _LATER:
        value = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, "formats"})
