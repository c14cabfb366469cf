"""Reads documents from files and pipes, with positions from which another process can continue.

`open_blocks` reads the bytes of a place, with `blocks`; `follow` has its own; `compression`
unpacks them. `splitters`, `json_lines` and `parquet` turn them into documents, and
`reading` chooses among them. `inputs` combines these for each kind of input, `fingerprint`
tells whether one has changed, and `unit_ends` where units of a text end. This package does not
know files of ids.
"""

from .blocks import Waiting, check_file
from .compression import unpack, unpacked_name
from .fingerprint import fingerprint
from .follow import Follower, check_regular
from .inputs import (
    FileInput,
    FollowInput,
    Input,
    Look,
    MakeSplitter,
    ParquetInput,
)
from .json_lines import MAX_LINE, JsonLines
from .open_blocks import is_compressed, open_blocks
from .reading import LiveReading, Reading
from .records import BadRecord, OnBad, Places
from .splitters import Delimited, Documents, Part, Splitter, Start, Whole, unescape

__all__ = [
    "MAX_LINE",
    "BadRecord",
    "Delimited",
    "Documents",
    "FileInput",
    "FollowInput",
    "Follower",
    "Input",
    "JsonLines",
    "LiveReading",
    "Look",
    "MakeSplitter",
    "OnBad",
    "ParquetInput",
    "Part",
    "Places",
    "Reading",
    "Splitter",
    "Start",
    "Waiting",
    "Whole",
    "check_file",
    "check_regular",
    "fingerprint",
    "is_compressed",
    "open_blocks",
    "unescape",
    "unpack",
    "unpacked_name",
]
