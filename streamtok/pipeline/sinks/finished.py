"""Reads finished outputs of every format back: their ids, and where their documents end."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...stores import places
from ..optional_pyarrow import load_pyarrow, open_for_pyarrow
from ..sources.blocks import Waiting
from ..sources.open_blocks import open_blocks
from .by_name import choose_format
from .format_table import TABLE, has_schema, read_ids
from .indexed import MEGATRON_MAGIC
from .parquet_sink import is_parquet
from .sidecar import Sidecar, read_description, sidecar_path

if TYPE_CHECKING:
    import numpy.typing as npt

    Ids = npt.NDArray[Any]
    Ends = npt.NDArray[np.int64]

INDEX_HEADER = struct.Struct("<9sQBQQ")  # of Megatron: magic, version, type, lengths, documents
INDEX_WIDTHS = {8: 2, 4: 4}  # the type of Megatron's index to bytes of an id
BLOCK = 1 << 18  # bytes to read at a time
_HEAD = 1024  # bytes
_ROWS = 1 << 16
_MOST_IN_GROUP = 1 << 28  # bytes; ParquetSink's groups have 1 MiB
_NONE = np.empty(0, np.int64)
_INDEXES = tuple(suffix for one in TABLE.values() for suffix in one.further)


class DamagedIndex(ValueError):
    """An index that does not belong to its ids, and what is wrong in it."""

    def __init__(self, path: str, what: str):
        super().__init__(f"{path}: {what}")
        self.path = path
        self.what = what


@dataclass(frozen=True)
class Finished:
    """A finished output: its first file, what its sidecar or schema says, and its format."""

    path: str
    about: Sidecar | None
    format: str

    @property
    def raw_format(self) -> str:
        """The format of the first file by itself: that of raw ids for Megatron and datatrove."""
        if self.format not in TABLE or not TABLE[self.format].further:
            return self.format
        if self.about is not None and self.about.dtype is not None:
            return "u16" if self.about.dtype == "uint16" else "u32"
        if self.format == "megatron":
            return "u16" if read_index_header(self.further(".idx"))[0] == 2 else "u32"
        return "u16" if b"|2\n" in places.read_head(self.further(".metadata"), _HEAD) else "u32"

    def further(self, suffix: str) -> str:
        """The path of a further file of the output, such as its index."""
        one = TABLE[self.format]
        return (self.path.removesuffix(one.required) if one.replaces else self.path) + suffix


def find_finished(path: str) -> Finished:
    """The finished output that the file at `path` belongs to; it may be its sidecar or its index.

    Raises OSError, SidecarError, ValueError if nothing tells the format.
    """
    first = first_file(path)
    about = read_description(first)
    if about is not None:
        if about.format not in TABLE:
            raise ValueError(f"its sidecar names the format {about.format}, which is not known")
        return Finished(first, about, about.format)
    if is_parquet(first):
        raise ValueError("its schema does not say what it should hold: streamtok did not make it")
    if first.endswith(".bin") and places.exists(first.removesuffix(".bin") + ".idx"):
        return Finished(first, None, "megatron")
    format = choose_format(None, first, 0)
    if format in ("u16", "u32"):
        raise ValueError("it has no sidecar, so nothing tells which ids it should hold")
    return Finished(first, None, format)


def first_file(path: str) -> str:
    """The file of the ids of `path`: perhaps its sidecar, its index or Megatron's prefix."""
    for suffix in (sidecar_path(""), *_INDEXES):
        base = path.removesuffix(suffix)
        if base != path:
            for one in (f"{base}.bin", base) if suffix == ".idx" else (base,):
                if base and places.exists(one):
                    return one
    if not places.exists(path) and all(places.exists(f"{path}{one}") for one in (".bin", ".idx")):
        return f"{path}.bin"
    return path


def describes(name: str) -> bool:
    """Whether a file of this name describes another: a sidecar or an index."""
    return name.endswith((sidecar_path(""), *_INDEXES))


def read_documents(
    one: Finished,
    waiting: Waiting = contextlib.nullcontext,
    blocks: Iterator[bytes] | None = None,
) -> Iterator[tuple[Ids, Ends]]:
    """Yield the ids of an output, and the positions in them at which documents end.

    blocks: those of the first file, if the caller reads it. Formats without documents have no ends.
    Memory is bounded. Raises OSError, ValueError if a file does not have the format or its index is
    another's, MissingLibraryError.
    """
    if has_schema(one.format):
        yield from read_table(one, waiting)
        return
    if blocks is None:
        blocks = open_blocks(one.path, size=BLOCK, waiting=waiting)
    if (lines := TABLE[one.format].read_lines) is not None:
        for ids, is_end in lines(iter(blocks)):
            yield ids, np.array([len(ids)]) if is_end else _NONE
        return
    ids_of = read_ids(blocks, one.raw_format)
    if one.format == "megatron":
        path = one.further(".idx")
        yield from _with_ends(one, ids_of, path, _megatron_ends(path))
    elif one.format == "datatrove":
        path = one.further(".index")
        yield from _with_ends(one, ids_of, path, _ascending(path, read_array(path, "<u8")))
    else:
        yield from ((ids, _NONE) for ids in ids_of)


def _with_ends(
    one: Finished, ids_of: Iterable[Ids], index: str, blocks: Iterator[Ends]
) -> Iterator[tuple[Ids, Ends]]:
    """Put ids and the positions of the ends in all ids together."""
    at = last = 0
    ends = _NONE
    for ids in ids_of:
        stop = at + len(ids)
        found = []
        while True:
            inside = int(np.searchsorted(ends, stop, "right"))
            found.append(ends[:inside])
            last = int(ends[inside - 1]) if inside else last
            ends = ends[inside:]
            if len(ends) or (ends := next(blocks, _NONE)) is _NONE:
                break
        yield ids, (np.concatenate(found) - at).astype(np.int64)
        at = stop
    rest = np.concatenate([ends, *blocks])
    if len(rest):
        if int(rest[-1]) != at or int(rest[0]) != at:
            raise DamagedIndex(
                index, f"its documents have {rest[-1]:,} ids, but {one.path} has {at:,}"
            )
        yield _NONE, np.zeros(len(rest), np.int64)
        last = int(rest[-1])
    if last != at:
        raise DamagedIndex(index, f"its documents have {last:,} ids, but {one.path} has {at:,}")


def _ascending(path: str, ends_of: Iterable[Ends]) -> Iterator[Ends]:
    last, document = 0, 0
    for ends in ends_of:
        steps = np.diff(ends.astype(np.int64), prepend=last)
        if (steps < 0).any():
            document += int(np.argmax(steps < 0))
            raise DamagedIndex(path, f"document {document} ends before it begins")
        last, document = int(ends[-1]), document + len(ends)
        yield ends


def read_index_header(path: str) -> tuple[int, int]:
    """(bytes of an id, documents) of Megatron's index. Raises OSError, ValueError."""
    head = places.read_head(path, INDEX_HEADER.size)
    if len(head) < INDEX_HEADER.size or not head.startswith(MEGATRON_MAGIC):
        raise ValueError(f"{path} is not an index of Megatron")
    _, version, code, lengths, documents = INDEX_HEADER.unpack(head)
    if version != 1 or code not in INDEX_WIDTHS or documents != lengths + 1:
        raise ValueError(f"{path} is an index of another kind than streamtok writes")
    size, expected = places.size_of(path), INDEX_HEADER.size + 20 * lengths + 8
    if size != expected:
        raise ValueError(f"{path} has {size} bytes; for {lengths} documents {expected} are needed")
    return INDEX_WIDTHS[code], lengths


def _megatron_ends(path: str) -> Iterator[Ends]:
    width, count = read_index_header(path)
    start = INDEX_HEADER.size
    at = document = 0
    pointers = read_array(path, "<i8", start + 4 * count, count)
    for lengths, found in zip(read_array(path, "<i4", start, count), pointers, strict=True):
        ends = at + np.cumsum(lengths, dtype=np.int64)
        wrong = np.flatnonzero((found != (ends - lengths) * width) | (lengths < 0))
        if len(wrong):
            which = int(wrong[0])
            right = (int(ends[which]) - int(lengths[which])) * width
            raise DamagedIndex(
                path,
                f"document {document + which} begins at byte {found[which]}; after the documents "
                f"before it, {right} is right",
            )
        at, document = int(ends[-1]), document + len(lengths)
        yield ends
    document = 0
    for found in read_array(path, "<i8", start + 12 * count, count + 1):
        if (found != np.arange(document, document + len(found))).any():
            raise DamagedIndex(path, f"its list of documents is damaged after document {document}")
        document += len(found)


def read_array(
    path: str, dtype: str, start: int = 0, count: int | None = None
) -> Iterator[npt.NDArray[Any]]:
    """Yield the numbers in a file, from a byte on, as arrays. Raises OSError, ValueError."""
    width = np.dtype(dtype).itemsize
    if count is None:
        count, rest = divmod(places.size_of(path) - start, width)
        if rest:
            raise ValueError(f"{path} ends inside a number of {width} bytes")
    with places.open_binary(path) as file:
        file.seek(start)
        while count:
            data = file.read(min(count, _ROWS) * width)
            if len(data) < min(count, _ROWS) * width:
                raise ValueError(f"{path} ends too early")
            count -= len(data) // width
            yield np.frombuffer(data, dtype)


def read_table(
    one: Finished, waiting: Waiting = contextlib.nullcontext
) -> Iterator[tuple[Ids, Ends]]:
    """`read_documents` of Parquet: a row with `part` 0 begins a document."""
    pa = load_pyarrow()
    is_begun = False
    try:
        with open_for_pyarrow(one.path) as file:
            for batch in _batches(file, waiting):
                if "input_ids" not in batch.schema.names:
                    raise ValueError("the table has no column input_ids")
                lists = batch.column("input_ids")
                ids = lists.flatten().to_numpy(zero_copy_only=False)
                sizes = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
                starts = np.cumsum(sizes, dtype=np.int64) - sizes
                if "part" in batch.schema.names:
                    starts = starts[batch.column("part").to_numpy(zero_copy_only=False) == 0]
                ends = starts if is_begun else starts[1:]
                is_begun = is_begun or len(starts) > 0
                yield ids, ends.astype(np.int64)
    except pa.ArrowException as error:
        raise ValueError(str(error).partition("\n")[0]) from None
    if is_begun:
        yield _NONE, np.zeros(1, np.int64)


def _batches(file: Any, waiting: Waiting) -> Iterator[Any]:
    from pyarrow.parquet import ParquetFile

    table = ParquetFile(file)
    for number in range(table.num_row_groups):
        size = table.metadata.row_group(number).total_byte_size
        if size > _MOST_IN_GROUP:
            raise ValueError(f"row group {number} has {size} bytes, at most {_MOST_IN_GROUP}")
        with waiting():
            pass
        yield from table.iter_batches(_ROWS, row_groups=[number])
