"""streamtok: exact byte-level BPE of unbounded streams. Public names only."""

from .chunker import StreamDecoder, StreamEncoder
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
    StateError,
    StreamInUseError,
    StreamtokError,
    UnsupportedPatternError,
    UnsupportedStreamError,
    VocabularyError,
)
from .formats import load
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
    "ArchiveError",
    "CheckpointError",
    "DocumentError",
    "Encoding",
    "FormatLimitError",
    "MemoryLimitExceeded",
    "MissingLibraryError",
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
    "UnsupportedStreamError",
    "Vocabulary",
    "VocabularyError",
    "encoding_for_model",
    "encoding_name_for_model",
    "get_encoding",
    "list_encoding_names",
    "load",
]
