"""Writes ids to files in eight formats, incrementally and in shards, and reads them back.

u16, u32: little-endian ids and nothing else. npy: a one-dimensional numpy array. text: decimal, one
id a line. jsonl, parquet: one row for each document. megatron, datatrove: the files that these
programs read. The sidecar of each output records the encoding of its ids. This package does not
encode or decode.
"""

from .by_name import (
    FILE_FORMATS,
    FILE_SUFFIXES,
    READ_FORMATS,
    Family,
    choose_format,
    make_sink,
)
from .finished import first_file, further_file, raw_format, read_table
from .flat import About, Sink, format_text
from .format_table import TABLE, read_ids
from .locks import Locks
from .outputs import Pipe, check_output, open_output
from .shards import Files
from .sidecar import (
    Digests,
    Sidecar,
    check_sidecar,
    matching_sidecar,
    read_sidecar,
    skip_log_path,
)

__all__ = [
    "FILE_FORMATS",
    "FILE_SUFFIXES",
    "READ_FORMATS",
    "TABLE",
    "About",
    "Digests",
    "Family",
    "Files",
    "Locks",
    "Pipe",
    "Sidecar",
    "Sink",
    "check_output",
    "check_sidecar",
    "choose_format",
    "first_file",
    "format_text",
    "further_file",
    "make_sink",
    "matching_sidecar",
    "open_output",
    "raw_format",
    "read_ids",
    "read_sidecar",
    "read_table",
    "skip_log_path",
]
