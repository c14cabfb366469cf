"""Ids in files: ten formats, written as they come, in shards, and never half there.

u16, u32: little-endian, nothing else. npy: numpy's file of one row. text: decimal, one id a line.
jsonl, parquet, arrow: a row for each document. llmc, megatron, datatrove: the files that these
read. Each says which encoding its ids are of: Parquet and Arrow in their schema, the others in a
sidecar. Nothing here knows an encoding.
"""

from .files import Files
from .flat import About, Sink, fitting_width, format_text
from .formats import (
    FILE_FORMATS,
    FORMATS,
    PIPE_FORMATS,
    READ_FORMATS,
    Family,
    choose_file_format,
    choose_format,
    make_sink,
)
from .locks import Locks
from .outputs import NewFile, Output, PartFile, Pipe, check_output, open_output, write_whole
from .ownership import not_own
from .reading import has_llmc_header, read_ids
from .sidecar import Sidecar, check_sidecar, described, read_sidecar

__all__ = [
    "FILE_FORMATS",
    "FORMATS",
    "PIPE_FORMATS",
    "READ_FORMATS",
    "About",
    "Family",
    "Files",
    "Locks",
    "NewFile",
    "Output",
    "PartFile",
    "Pipe",
    "Sidecar",
    "Sink",
    "check_output",
    "check_sidecar",
    "choose_file_format",
    "choose_format",
    "described",
    "fitting_width",
    "format_text",
    "has_llmc_header",
    "make_sink",
    "not_own",
    "open_output",
    "read_ids",
    "read_sidecar",
    "write_whole",
]
