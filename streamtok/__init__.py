"""streamtok: exact byte-level BPE of unbounded streams. Public names only."""

from .chunker import StreamDecoder, StreamEncoder
from .encoding import Encoding
from .errors import (
    MemoryLimitExceeded,
    PatternError,
    PendingLimitExceeded,
    StateError,
    StreamInUseError,
    StreamtokError,
    UnsupportedPatternError,
    VocabularyError,
)
from .pattern import Pattern
from .registry import (
    encoding_for_model,
    encoding_name_for_model,
    get_encoding,
    list_encoding_names,
)
from .trainer import Trainer
from .vocabulary import Vocabulary

__version__ = "0.1.0"

__all__ = [
    "Encoding",
    "MemoryLimitExceeded",
    "Pattern",
    "PatternError",
    "PendingLimitExceeded",
    "StateError",
    "StreamDecoder",
    "StreamEncoder",
    "StreamInUseError",
    "StreamtokError",
    "Trainer",
    "UnsupportedPatternError",
    "Vocabulary",
    "VocabularyError",
    "encoding_for_model",
    "encoding_name_for_model",
    "get_encoding",
    "list_encoding_names",
]
