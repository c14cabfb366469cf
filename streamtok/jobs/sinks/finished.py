"""Finds finished outputs, and reads their ids back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..optional_pyarrow import load_pyarrow, open_for_pyarrow
from ..sources.blocks import Waiting
from ..stores import places
from .format_table import MASK_SUFFIX, TABLE
from .sidecar import Sidecar, sidecar_path

if TYPE_CHECKING:
    import numpy.typing as npt

_ROWS = 1 << 16
_MOST_IN_GROUP = 1 << 28  # bytes; ParquetSink's groups have 1 MiB
_INDEXES = (MASK_SUFFIX, *(suffix for one in TABLE.values() for suffix in one.further))


def first_file(path: str) -> str:
    """Find the file of ids for `path`, which may be a sidecar, an index or Megatron's prefix."""
    for suffix in (sidecar_path(""), *_INDEXES):
        base = path.removesuffix(suffix)
        if base != path:
            for one in (f"{base}.bin", base) if suffix == ".idx" else (base,):
                if base and places.exists(one):
                    return one
    if not places.exists(path) and all(places.exists(f"{path}{one}") for one in (".bin", ".idx")):
        return f"{path}.bin"
    return path


def further_file(path: str, about: Sidecar, suffix: str) -> str:
    """The path of another file of the output at `path`, such as its index."""
    one = TABLE[about.format]
    return (path.removesuffix(one.required) if one.replaces else path) + suffix


def raw_format(about: Sidecar) -> str:
    """The format of the first file alone: u16 or u32 if the output has several files."""
    if about.format not in TABLE or not TABLE[about.format].further:
        return about.format
    return "u16" if about.dtype == "uint16" else "u32"


def read_table(path: str, waiting: Waiting = contextlib.nullcontext) -> Iterator[npt.NDArray[Any]]:
    """Yield the ids of a Parquet file. Raises OSError, ValueError and MissingLibraryError."""
    pa = load_pyarrow()
    from pyarrow.parquet import ParquetFile

    try:
        with open_for_pyarrow(path) as file:
            table = ParquetFile(file)
            if "input_ids" not in table.schema_arrow.names:
                raise ValueError("the table has no column input_ids")
            for number in range(table.num_row_groups):
                size = table.metadata.row_group(number).total_byte_size
                if size > _MOST_IN_GROUP:
                    raise ValueError(
                        f"row group {number} has {size} bytes, at most {_MOST_IN_GROUP}"
                    )
                with waiting():
                    pass
                for batch in table.iter_batches(_ROWS, row_groups=[number], columns=["input_ids"]):
                    yield batch.column(0).flatten().to_numpy(zero_copy_only=False)
    except pa.ArrowException as error:
        raise ValueError(str(error).partition("\n")[0]) from None
