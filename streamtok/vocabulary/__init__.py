"""Vocabularies: the table, and the two forms it is kept in without an encoding."""

from .bundled import (
    PACKED_NAMES,
    dumps_packed,
    load_packed,
    loads_packed,
    packed_path,
    save_packed,
)
from .ranks_file import dumps_tiktoken, load_tiktoken, loads_tiktoken, save_tiktoken
from .table import Vocabulary

__all__ = [
    "PACKED_NAMES",
    "Vocabulary",
    "dumps_packed",
    "dumps_tiktoken",
    "load_packed",
    "load_tiktoken",
    "loads_packed",
    "loads_tiktoken",
    "packed_path",
    "save_packed",
    "save_tiktoken",
]
