"""Files of ids as one sequence of records, each an array that is mapped and not read.

A record is a document where the format has an index of them (Megatron-LM's .bin and .idx,
datatrove's .ds and .ds.index), else a fixed number of ids (.npy, .u16, .u32, .bin).
"""

from __future__ import annotations

import bisect
import itertools
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from ..pipeline import sinks
from ..pipeline.sinks.finished import INDEX_HEADER, read_index_header

if TYPE_CHECKING:
    import numpy.typing as npt

    Ids = npt.NDArray[Any]

_BY_SUFFIX = {".u16": "<u2", ".u32": "<u4"}


class _File(NamedTuple):
    """ids: all of them, mapped. ends: where each record ends in them; None: every `record` ids."""

    ids: Ids
    ends: Ids | None
    records: int


class TokenFiles(Sequence["Ids"]):
    """The records in files of ids, in order: `files[i]` is a read-only array of ids.

    paths: a file, or several in order, as `streamtok encode` writes them: .npy, .u16, .u32, a .bin
    with a sidecar, Megatron-LM's .bin with its .idx beside it, datatrove's .ds with its .ds.index.
    record: the ids of a record where the file has no index of documents; the last one of a file
    may have fewer. To get a record reads that record only, from the system's cache or the disk.
    Can be pickled: another process opens the files again. Raises OSError, and ValueError for a file
    of another format or size, and for one without an index if `record` is not given.
    """

    def __init__(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        record: int | None = None,
    ):
        if isinstance(paths, (str, os.PathLike)):
            paths = [paths]
        if record is not None and (type(record) is not int or record < 1):
            raise ValueError(f"record must be a positive number of ids, not {record!r}")
        self._paths = [os.fspath(path) for path in paths]
        self._record = record
        self._files = [_open(path, record) for path in self._paths]
        self._starts = [0, *itertools.accumulate(one.records for one in self._files)]

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, number: int) -> Ids: ...

    @overload
    def __getitem__(self, number: slice) -> list[Ids]: ...

    def __getitem__(self, number: int | slice) -> Ids | list[Ids]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        place = number + len(self) if number < 0 else number
        if not 0 <= place < len(self):
            raise IndexError(f"there are {len(self)} records; {number} is not one of them")
        which = bisect.bisect_right(self._starts, place) - 1
        ids, ends, _ = self._files[which]
        place -= self._starts[which]
        if ends is None:
            assert self._record is not None
            return ids[place * self._record : (place + 1) * self._record]
        return ids[int(ends[place - 1]) if place else 0 : int(ends[place])]

    def __reduce__(self) -> Any:
        return TokenFiles, (self._paths, self._record)

    def __repr__(self) -> str:
        return f"<TokenFiles of {len(self)} records in {len(self._paths)} files>"


def _open(path: str, record: int | None) -> _File:
    stem, suffix = os.path.splitext(path)
    if suffix == ".npy":
        ids = np.load(path, mmap_mode="r", allow_pickle=False)
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise ValueError(
                f"{path} holds {ids.dtype} of shape {ids.shape}: expected a row of ids"
            )
    elif suffix == ".bin" and os.path.exists(f"{stem}.idx"):
        return _open_megatron(path, f"{stem}.idx")
    elif suffix == ".ds":
        return _open_datatrove(path)
    else:
        ids = _mapped(path, _dtype(path, suffix))
    if record is None:
        raise ValueError(f"{path} does not tell where documents end: give record=, a number of ids")
    return _File(ids, None, -(-len(ids) // record))


def _dtype(path: str, suffix: str) -> str:
    """The type of raw ids, by the sidecar or by the suffix."""
    found = sinks.read_sidecar(path)
    if found is not None and found.format in ("u16", "u32"):
        sinks.check_sidecar(found, path)
        return {"u16": "<u2", "u32": "<u4"}[found.format]
    if found is None and suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    known = "expected .npy, .u16, .u32, .bin with its sidecar or .idx, or .ds"
    raise ValueError(f"{path} is {found.format if found else 'of an unknown format'}: {known}")


def _open_megatron(path: str, index: str) -> _File:
    width, count = read_index_header(index)
    ids = _mapped(path, "<u2" if width == 2 else "<i4")
    lengths = np.zeros(0, "<i4")
    if count:
        lengths = np.memmap(index, "<i4", "r", INDEX_HEADER.size, (count,))
    ends = np.cumsum(lengths, dtype=np.int64)
    _check_end(path, ids, ends)
    return _File(ids, ends, count)


def _open_datatrove(path: str) -> _File:
    ends = _mapped(f"{path}.index", "<u8")
    count = int(ends[-1]) if len(ends) else 0
    width = os.path.getsize(path) // count if count else 2
    if width not in (2, 4):
        raise ValueError(f"{path} does not have the {count} ids of its index")
    ids = _mapped(path, f"<u{width}")
    _check_end(path, ids, ends)
    return _File(ids, ends, len(ends))


def _check_end(path: str, ids: Ids, ends: Ids) -> None:
    if len(ids) != (int(ends[-1]) if len(ends) else 0):
        raise ValueError(f"{path} has {len(ids)} ids, and its index ends at {ends[-1:].tolist()}")


def _mapped(path: str, dtype: str) -> Ids:
    size, width = os.path.getsize(path), np.dtype(dtype).itemsize
    if size % width:
        raise ValueError(f"{path} has {size} bytes, which are not ids of {width} bytes each")
    if not size:  # which cannot be mapped
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, "r")
