"""Texts from files and sockets: bytes, then documents, with positions to go on from.

blocks, follow, sockets, compression give bytes; documents and parquet cut them into documents;
inputs puts them in order. Nothing here knows encodings or files of ids.
"""

from .blocks import BLOCK_SIZE, Waiting, check_file, read_descriptor
from .compression import unpack
from .follow import Follower
from .inputs import (
    Feed,
    FileInput,
    FollowInput,
    Input,
    MakeSplitter,
    Opening,
    ParquetInput,
    SocketInput,
)
from .records import Delimited, Documents, JsonLines, Part, Splitter, Whole, unescape
from .sockets import Address, Listener

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
    "Opening",
    "ParquetInput",
    "Part",
    "SocketInput",
    "Splitter",
    "Waiting",
    "Whole",
    "check_file",
    "read_descriptor",
    "unescape",
    "unpack",
]
