"""Reads documents from files and sockets, with positions from which another process can continue.

`blocks`, `follow`, `sockets` and `compression` produce bytes. `splitters`, `json_lines` and
`parquet` turn them into documents, and `make_splitter` chooses among them. `inputs` and
`object_input` combine these for each kind of input, and `feed` runs through all inputs of a
command. This package does not know encodings or files of ids.
"""

from .blocks import BLOCK_SIZE, Waiting, check_file, read_descriptor
from .compression import unpack
from .feed import Feed
from .follow import Follower
from .inputs import (
    FileInput,
    FollowInput,
    Input,
    Opening,
    ParquetInput,
    SocketInput,
)
from .json_lines import JsonLines
from .make_splitter import MakeSplitter, splitter_maker
from .object_input import ObjectInput, open_input
from .sockets import Address, Listener
from .splitters import Delimited, Documents, Part, Splitter, Whole, unescape

__all__ = [
    "BLOCK_SIZE",
    "Address",
    "Delimited",
    "Documents",
    "Feed",
    "FileInput",
    "FollowInput",
    "Follower",
    "Input",
    "JsonLines",
    "Listener",
    "MakeSplitter",
    "ObjectInput",
    "Opening",
    "ParquetInput",
    "Part",
    "SocketInput",
    "Splitter",
    "Waiting",
    "Whole",
    "check_file",
    "open_input",
    "read_descriptor",
    "splitter_maker",
    "unescape",
    "unpack",
]
