"""Writes ids to files in eight formats, incrementally and in shards, and reads them back.

u16, u32: little-endian ids and nothing else. npy: a one-dimensional numpy array. text: decimal, one
id a line. jsonl, parquet: one row for each document. megatron, datatrove: the files that these
programs read. Each output records the encoding of its ids: Parquet in its schema, the others in a
sidecar. This package does not encode or decode.
"""

from .by_name import (
    FILE_FORMATS,
    FILE_SUFFIXES,
    READ_FORMATS,
    Family,
    choose_format,
    make_sink,
)
from .flat import About, Sink, format_text
from .format_table import TABLE, has_schema, read_ids
from .locks import Locks
from .outputs import Pipe, check_output, open_output
from .ownership import find_foreign
from .shards import Files
from .sidecar import (
    Digests,
    Sidecar,
    check_sidecar,
    matching_sidecar,
    read_description,
    read_sidecar,
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
    "find_foreign",
    "format_text",
    "has_schema",
    "make_sink",
    "matching_sidecar",
    "open_output",
    "read_description",
    "read_ids",
    "read_sidecar",
]
