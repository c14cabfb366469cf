"""The table of formats for ids. Each row defines one format completely."""

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
"""Makes a sink. Arguments: the files, in the order of `Family.names` without the sidecar; the facts
that they record; and the number of the first document."""

Form: TypeAlias = "Callable[[IdArray, EndArray, int, bytes | None], Formed]"
"""Forms the bytes of ids. Arguments: ids, document ends, bytes per id, and the mask or None."""

MASK_SUFFIX = ".mask.npy"


@dataclass(frozen=True)
class Format:
    """One format.

    make: makes the sink. form: forms the bytes that the sink appends. read: yields the ids in the
    blocks of the first file; None if `read_ids` cannot read it alone. suffix: the suffix of file
    names that selects the format. required: the suffix that its readers insist on. further:
    suffixes of the other files; replaces: whether they replace the first file's suffix instead of
    following it. scratch: suffixes of the sink's temporary files. width: bytes per id; None if ids
    are not binary. wide: the name of the 4-byte type. header_size: bytes of the first file's
    header, which is rewritten at the end; index_header: the same for the other files.
    keeps_documents: whether the format records where documents end. is_single: whether the sink
    writes only one output, which may be a pipe.
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
        """Bytes per raw id."""
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
"""The formats that support masks of conversations: in a second file, or for jsonl in each line."""


def read_ids(blocks: Iterable[bytes | memoryview], chosen: str) -> Iterator[Ids]:
    """Yield the ids in the blocks as integer arrays. Blocks may be cut anywhere.

    chosen: one of READ_FORMATS. text: decimal ids, separated by white space, commas or brackets;
    text that begins with { is read as jsonl. jsonl: {"input_ids": [...]} on each line. Raises
    ValueError if the input is not in this format or is truncated.
    """
    read = TABLE[chosen].read
    assert read is not None, chosen
    return read(iter(blocks))
