"""streamtok: exact byte-level BPE for unbounded streams. Public names only.

Names other than the errors are imported on first use, so that a program such as the command line
can configure numpy (`cli.main`) before anything imports it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .errors import (
    ArchiveError,
    CheckpointError,
    DisallowedSpecialError,
    DocumentError,
    FormatLimitError,
    MissingLibraryError,
    PatternError,
    PendingLimitExceeded,
    PlanError,
    SidecarError,
    StateError,
    StreamInUseError,
    StreamtokError,
    UnsupportedPatternError,
    UnsupportedPromptError,
    VocabularyError,
)

if TYPE_CHECKING:
    from . import formats as formats
    from ._core.encode import cache_limit, set_cache_limit
    from .answers.counter import Counter
    from .answers.splitting import Chunk
    from .answers.truncation import Truncated
    from .chunker import StreamDecoder, StreamEncoder
    from .encoding import Encoding
    from .formats import load
    from .jobs.parts.commit import commit
    from .jobs.parts.part import run_part
    from .jobs.parts.plan import Plan, plan
    from .jobs.parts.verify import Fault, Report, verify
    from .patterns.pattern import Pattern
    from .prompts import Control, Prompt
    from .registry import (
        encoding_for_model,
        encoding_name_for_model,
        get_encoding,
        list_encoding_names,
    )
    from .training.trainer import Trainer
    from .vocabulary.table import Vocabulary

__version__ = "1.0.0"

__all__ = [
    "ArchiveError",
    "CheckpointError",
    "Chunk",
    "Control",
    "Counter",
    "DisallowedSpecialError",
    "DocumentError",
    "Encoding",
    "Fault",
    "FormatLimitError",
    "MissingLibraryError",
    "Pattern",
    "PatternError",
    "PendingLimitExceeded",
    "Plan",
    "PlanError",
    "Prompt",
    "Report",
    "SidecarError",
    "StateError",
    "StreamDecoder",
    "StreamEncoder",
    "StreamInUseError",
    "StreamtokError",
    "Trainer",
    "Truncated",
    "UnsupportedPatternError",
    "UnsupportedPromptError",
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
    "verify",
]

_LATER = {  # public name -> module
    "Chunk": "answers.splitting",
    "Control": "prompts",
    "Counter": "answers.counter",
    "Encoding": "encoding",
    "Fault": "jobs.parts.verify",
    "Pattern": "patterns.pattern",
    "Plan": "jobs.parts.plan",
    "Prompt": "prompts",
    "Report": "jobs.parts.verify",
    "StreamDecoder": "chunker",
    "StreamEncoder": "chunker",
    "Trainer": "training.trainer",
    "Truncated": "answers.truncation",
    "Vocabulary": "vocabulary.table",
    "cache_limit": "_core.encode",
    "commit": "jobs.parts.commit",
    "encoding_for_model": "registry",
    "encoding_name_for_model": "registry",
    "get_encoding": "registry",
    "list_encoding_names": "registry",
    "plan": "jobs.parts.plan",
    "run_part": "jobs.parts.part",
    "set_cache_limit": "_core.encode",
    "verify": "jobs.parts.verify",
}

_MODULES = {  # modules imported on first use; `load` is a function, see `load.py`
    *("answers", "core", "definition", "encoding", "engines", "formats", "load", "model"),
    *("parallel", "patterns", "registry", "special_tokens", "vocabulary"),
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _LATER:
        value = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_MODULES})
