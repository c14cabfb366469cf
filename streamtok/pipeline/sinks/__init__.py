"""Ids in files: ten formats, written as they come, in shards, and never half there.

u16, u32: little-endian, nothing else. npy: numpy's file of one row. text: decimal, one id a line.
jsonl, parquet, arrow: a row for each document. llmc, megatron, datatrove: the files that these
read. Each says which encoding its ids are of: Parquet and Arrow in their schema, the others in a
sidecar. Nothing here knows an encoding.
"""

from ...files.part_file import NewFile, PartFile, write_whole
from .by_name import (
    FILE_FORMATS,
    FORMATS,
    PIPE_FORMATS,
    READ_FORMATS,
    Family,
    choose_file_format,
    choose_format,
    make_sink,
)
from .flat import About, Sink, fitting_width, format_text
from .id_reader import has_llmc_header, read_ids
from .locks import Locks
from .outputs import Output, Pipe, check_output, open_output
from .ownership import not_own
from .shards import Files
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
