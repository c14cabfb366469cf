"""Reads documents from files and sockets, with positions from which another process can continue.

`blocks`, `follow`, `sockets`, `compression` and `frames` produce bytes, `read_ahead` does so in a
thread. `splitters`, `json_lines` and `parquet` turn them into documents, and `make_splitter`
chooses among them. `inputs`, `object_input` and `frames_input` combine these for each kind of
input, `fingerprint` tells whether one has changed, and `feed` runs through all inputs of a command.
This package does not know encodings or files of ids.
"""

from .blocks import BLOCK_SIZE, Waiting, check_file, read_descriptor
from .compression import unpack
from .feed import Feed
from .fingerprint import Fingerprint, fingerprint
from .follow import Follower, check_regular
from .frames import frame_starts, is_compressed
from .frames_input import FramesInput, Stretch, text_behind
from .inputs import (
    FileInput,
    FollowInput,
    Input,
    Opening,
    ParquetInput,
    SocketInput,
)
from .json_lines import MAX_LINE, JsonLines
from .make_splitter import MakeSplitter, Reading, splitter_maker
from .object_input import ObjectInput, open_input
from .parquet import ParquetTexts
from .records import BadRecord, OnBad, Places
from .replaced_bytes import ReplacedBytes
from .sockets import Address, Listener
from .splitters import Delimited, Documents, Part, Splitter, Whole, unescape

__all__ = [
    "BLOCK_SIZE",
    "MAX_LINE",
    "Address",
    "BadRecord",
    "Delimited",
    "Documents",
    "Feed",
    "FileInput",
    "Fingerprint",
    "FollowInput",
    "Follower",
    "FramesInput",
    "Input",
    "JsonLines",
    "Listener",
    "MakeSplitter",
    "ObjectInput",
    "OnBad",
    "Opening",
    "ParquetInput",
    "ParquetTexts",
    "Part",
    "Places",
    "Reading",
    "ReplacedBytes",
    "SocketInput",
    "Splitter",
    "Stretch",
    "Waiting",
    "Whole",
    "check_file",
    "check_regular",
    "fingerprint",
    "frame_starts",
    "is_compressed",
    "open_input",
    "read_descriptor",
    "splitter_maker",
    "text_behind",
    "unescape",
    "unpack",
]
