"""Vocabularies: the table of tokens, its file forms, the published tables, the byte alphabet."""

from .bundled import (
    BUNDLED_NAMES,
    bundled_path,
    load_bundled,
    loads_bundled,
)
from .ranks_file import dumps_tiktoken, load_tiktoken, loads_tiktoken, save_tiktoken
from .table import Vocabulary

__all__ = [
    "BUNDLED_NAMES",
    "Vocabulary",
    "bundled_path",
    "dumps_tiktoken",
    "load_bundled",
    "load_tiktoken",
    "loads_bundled",
    "loads_tiktoken",
    "save_tiktoken",
]
