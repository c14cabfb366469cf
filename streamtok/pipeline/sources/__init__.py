"""Reads documents from files and pipes, with positions from which another process can continue.

`open_blocks` reads the bytes of a place, with `blocks`; `follow` has its own; `compression` and
`frames` unpack them. `splitters`, `json_lines` and `parquet` turn them into documents, and
`make_splitter` chooses among them. `inputs` and `frames_input` combine these for each kind of
input, `fingerprint` tells whether one has changed, and `feed` runs through all inputs of a command.
This package does not know encodings or files of ids.
"""

from .blocks import BLOCK_SIZE, Waiting, check_file, read_descriptor
from .compression import unpack, unpacked_name
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
)
from .json_lines import MAX_LINE, JsonLines
from .make_splitter import MakeSplitter, Reading
from .open_blocks import open_blocks
from .records import BadRecord, OnBad, Places
from .replaced_bytes import BadBytes, ReplacedBytes
from .splitters import Delimited, Documents, Part, Splitter, Whole, unescape

__all__ = [
    "BLOCK_SIZE",
    "MAX_LINE",
    "BadBytes",
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
    "MakeSplitter",
    "OnBad",
    "Opening",
    "ParquetInput",
    "Part",
    "Places",
    "Reading",
    "ReplacedBytes",
    "Splitter",
    "Stretch",
    "Waiting",
    "Whole",
    "check_file",
    "check_regular",
    "fingerprint",
    "frame_starts",
    "is_compressed",
    "open_blocks",
    "read_descriptor",
    "text_behind",
    "unescape",
    "unpack",
    "unpacked_name",
]
