"""The formats of ids: one row says all there is to know of a format. A new one is a new row."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .flat import (
    NPY_HEADER,
    About,
    JsonlSink,
    MaskedNpySink,
    MaskedSink,
    NpySink,
    Sink,
    form_raw,
    form_rows,
    form_text,
)
from .id_reader import read_npy, read_raw, read_rows, read_text_or_rows
from .indexed import MEGATRON_HEADER, DatatroveSink, MegatronSink
from .parquet_sink import ParquetSink

if TYPE_CHECKING:
    from .flat import EndArray, Formed, IdArray
    from .id_reader import Ids

Make: TypeAlias = "Callable[[Sequence[Any], About, int], Sink]"
"""Makes a sink of the files, in the order of `Family.names` without the sidecar; of the facts that
they record; and of the number of the first document."""

Form: TypeAlias = "Callable[[IdArray, EndArray, int, bytes | None], Formed]"
"""The bytes of ids, of which each has so many bytes; and of their mask, if there is one."""

MASK_SUFFIX = ".mask.npy"


@dataclass(frozen=True)
class Format:
    """One format.

    make: the sink; form: makes the bytes that it appends. read: the ids in the blocks of the
    first file; None if `read_ids` cannot read it by itself. suffix: names that end so choose
    the format. required: the suffix that its readers insist on. further: suffixes of the files
    beside the first one; replaces: they are in place of its suffix, not after it. scratch:
    suffixes of temporary files of the sink. width: bytes of an id; None where the ids have no
    type. wide: the type of 4 bytes. header_size: bytes of the header of the first file, which
    is rewritten at the end; index_header: of a further file. keeps_documents: records where
    they end. is_single: the sink needs no more than one output, perhaps a pipe.
    """

    make: Make
    form: Form = form_raw
    read: Callable[[Iterator[bytes | memoryview]], Iterator[Ids]] | None = None
    suffix: str | None = None
    required: str = ""
    further: tuple[str, ...] = ()
    replaces: bool = False
    scratch: tuple[str, ...] = ()
    width: Callable[[About], int] | None = lambda about: about.width
    wide: str = "uint32"
    header_size: int = 0
    index_header: int = 0
    keeps_documents: bool = False
    is_single: bool = False

    def id_width(self, about: About) -> int:
        """Bytes of an id where ids are raw."""
        return 4 if self.width is None else self.width(about)

    def dtype(self, about: About) -> str | None:
        """The type of the ids in the first file; None for text and tables."""
        if self.width is None:
            return None
        return "uint16" if self.width(about) == 2 else self.wide


def _raw(width: int) -> Format:
    return Format(
        Sink,
        read=functools.partial(read_raw, dtype=np.dtype(f"<u{width}")),
        suffix=f".u{8 * width}",
        width=lambda about: width,
        is_single=True,
    )


TABLE: dict[str, Format] = {
    "u16": _raw(2),
    "u32": _raw(4),
    "npy": Format(
        NpySink,
        read=read_npy,
        suffix=".npy",
        header_size=NPY_HEADER,
        is_single=True,
    ),
    "text": Format(
        Sink,
        form_text,
        read_text_or_rows,
        suffix=".txt",
        width=None,
        is_single=True,
    ),
    "jsonl": Format(
        JsonlSink,
        form_rows,
        read_rows,
        suffix=".jsonl",
        width=None,
        keeps_documents=True,
        is_single=True,
    ),
    "megatron": Format(
        MegatronSink,
        index_header=MEGATRON_HEADER,
        required=".bin",
        further=(".idx",),
        replaces=True,
        width=MegatronSink.width,
        wide="int32",
        keeps_documents=True,
    ),
    "datatrove": Format(
        DatatroveSink,
        suffix=".ds",
        required=".ds",
        further=(".index", ".metadata"),
        keeps_documents=True,
    ),
    "parquet": Format(
        ParquetSink,
        suffix=".parquet",
        scratch=(".ids", ".lengths"),
        width=None,
        keeps_documents=True,
    ),
}


def _masked(name: str, make: Make) -> Format:
    mask = {"further": (MASK_SUFFIX,), "index_header": NPY_HEADER, "is_single": False}
    return replace(TABLE[name], make=make, **mask)  # type: ignore[arg-type]


MASKED = {
    "npy": _masked("npy", MaskedNpySink),
    "u16": _masked("u16", MaskedSink),
    "u32": _masked("u32", MaskedSink),
    "jsonl": TABLE["jsonl"],
}
"""The formats that can have the masks of conversations: beside the ids or, jsonl, in each line."""


def read_ids(blocks: Iterable[bytes | memoryview], chosen: str) -> Iterator[Ids]:
    """Yield the ids in the blocks as integer arrays. Block borders may lie anywhere.

    chosen: one of READ_FORMATS. text: decimal ids, separated by white space, line ends, commas or
    brackets; text that begins with { is read as jsonl. jsonl: {"input_ids": [...]} on each line.
    Raises ValueError if the input does not have the format or ends too early.
    """
    read = TABLE[chosen].read
    assert read is not None, chosen
    return read(iter(blocks))
