"""Ids in files: ten formats, written as they come, in shards, and never half there.

u16, u32: little-endian, nothing else, but JSON next to a `.bin`. npy: numpy's file of one row.
text: decimal, one id a line. jsonl, parquet, arrow: a row for each document. llmc, megatron,
datatrove: the files that these read. Nothing here knows an encoding.
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
from .outputs import NewFile, Output, PartFile, Pipe, check_output, open_output, write_whole
from .reading import read_ids

__all__ = [
    "FILE_FORMATS",
    "FORMATS",
    "PIPE_FORMATS",
    "READ_FORMATS",
    "About",
    "Family",
    "Files",
    "NewFile",
    "Output",
    "PartFile",
    "Pipe",
    "Sink",
    "check_output",
    "choose_file_format",
    "choose_format",
    "fitting_width",
    "format_text",
    "make_sink",
    "open_output",
    "read_ids",
    "write_whole",
]
