"""Sinks that write one file: raw ids, numpy's npy, text and JSONL.

Ids become bytes in two steps. The first depends on the ids alone, so a worker can do it:
`form_raw`, `form_text` or `form_rows` makes a `Formed`. Then the sink appends the bytes, and adds
whatever depends on the whole file. The sink's state is three numbers, `tokens`, `documents` and
`open`: with these, another process can continue files of known lengths.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .outputs import Output

if TYPE_CHECKING:
    import numpy.typing as npt

    IdArray = npt.NDArray[np.uint32]
    EndArray = npt.NDArray[np.int64]
    Ends = Sequence[int] | EndArray

NPY_HEADER = 128  # bytes
JSONL_BEGIN = b'{"input_ids":['
_ROW_END = b"]}\n"

_MANY = 256  # ids; below this number, str is faster than numpy


@dataclass(frozen=True)
class About:
    """What a file records about its ids: the encoding's name, its digest and its highest id.

    vocabulary: the vocabulary file, if `-e` gave one instead of a built-in name. job: the digest of
    the plan's part (`Plan.part_digest`), if the output belongs to a plan.
    """

    encoding: str
    digest: str
    max_id: int
    vocabulary: str | None = None
    job: str | None = None

    @property
    def width(self) -> int:
        """Bytes of the narrowest type that holds all ids: 2 or 4."""
        return fitting_width(self.max_id)


class Formed(NamedTuple):
    """Ids in the format of a file. data: the bytes of `n_ids` ids. mask: a byte per id, or None.

    ends: the indexes at which documents end, in ascending order; i means before ids[i], and n_ids
    means after the last id. offsets: the offsets of the same ends in `data`.
    """

    data: bytes | memoryview
    n_ids: int
    ends: EndArray
    offsets: EndArray
    mask: bytes | None = None


def form_raw(ids: IdArray, ends: EndArray, width: int, mask: bytes | None = None) -> Formed:
    """Convert ids to little-endian u16 or u32."""
    data = ids.astype(np.dtype(f"<u{width}"), copy=False).view(np.uint8).data
    return Formed(data, len(ids), ends, ends * width, mask)


def form_text(ids: IdArray, ends: EndArray, width: int, mask: bytes | None = None) -> Formed:
    """Convert ids to decimal text, one id per line."""
    data, offsets = format_rows(ids, ends)
    return Formed(data, len(ids), ends, np.array(offsets, np.int64))


def form_rows(ids: IdArray, ends: EndArray, width: int, mask: bytes | None = None) -> Formed:
    """Convert ids to JSON lines. The sink writes the beginning of the first line."""
    if mask is not None:
        return _form_masked_rows(ids, ends, mask)
    text, offsets = format_rows(ids, ends)
    text = text.replace(b"\n", b",")
    parts: list[bytes] = []
    start = 0
    begin = b""
    for offset in offsets:
        parts += (begin, text[start : offset - 1] if offset > start else b"", _ROW_END)
        begin = JSONL_BEGIN
        start = offset
    if start < len(text):
        parts += (begin, text[start:-1])
    sizes = np.maximum(np.diff(offsets, prepend=0) - 1, 0) + len(JSONL_BEGIN) + len(_ROW_END)
    found = np.cumsum(sizes) - len(JSONL_BEGIN)
    return Formed(b"".join(parts), len(ids), ends, found)


def _form_masked_rows(ids: IdArray, ends: EndArray, mask: bytes) -> Formed:
    """Convert ids and masks to JSON lines. The documents must be whole, as conversations are."""
    rows, start = [], 0
    for end in ends:
        in_row = format_text(ids[start:end])[:-1].replace(b"\n", b",")
        marks = ",".join(map(str, mask[start:end])).encode()
        rows.append(b'%s],"assistant_masks":[%s]}\n' % (in_row, marks))
        start = end
    offsets = np.cumsum([len(JSONL_BEGIN) + len(row) for row in rows]) - len(JSONL_BEGIN)
    return Formed(JSONL_BEGIN.join(rows), len(ids), ends, offsets)


def divide(found: Formed, end: int) -> tuple[Formed, Formed]:
    """Split `found` at the document end `ends[end]`; return both parts."""
    n_ends, at, offset = end + 1, int(found.ends[end]), int(found.offsets[end])
    view = memoryview(found.data)
    rest = view[offset:]
    if rest[: len(JSONL_BEGIN)] == JSONL_BEGIN:
        rest = rest[len(JSONL_BEGIN) :]  # as in the result of `form_rows`
    masks = (None, None) if found.mask is None else (found.mask[:at], found.mask[at:])
    begin = bytes(view[:offset]), at, found.ends[:n_ends], found.offsets[:n_ends]
    cut = len(view) - len(rest)
    ends, offsets = found.ends[n_ends:] - at, found.offsets[n_ends:] - cut
    rest_of = bytes(rest), found.n_ids - at, ends, offsets
    return Formed(*begin, masks[0]), Formed(*rest_of, masks[1])


class Sink:
    """Appends formed ids with `write`, and completes the output with `finish`.

    tokens, documents: how many were written. open: how many ids the open document has so far.
    """

    ids_at = 0  # index of the file that holds the ids

    def __init__(self, files: Sequence[Output], about: About, first: int = 0):
        """first: number of the first document."""
        self._files = files
        self._about = about
        self._first = first
        self.tokens = self.documents = self.open = 0

    def begin(self) -> None:
        """Write the headers of new files."""

    def write(self, found: Formed) -> None:
        """Append ids. Raises OSError and FormatLimitError."""
        self._write_index(found)
        if found.n_ids or len(found.ends):
            self._write_ids(found)
        self.tokens += found.n_ids
        self.documents += len(found.ends)
        if len(found.ends):
            self.open = found.n_ids - int(found.ends[-1])
        else:
            self.open += found.n_ids

    def _write_index(self, found: Formed) -> None:
        """Append the entries for these ids to the other files."""

    def _write_ids(self, found: Formed) -> None:
        if found.n_ids:
            self._files[self.ids_at].write(found.data)

    def finish(self) -> None:
        """Write everything that follows the last id, and rewrite headers."""


class NpySink(Sink):
    """Raw ids after a numpy header, which is rewritten when the number of ids is known."""

    def begin(self) -> None:
        self._files[0].write(npy_header(f"<u{self._about.width}", 0))

    def finish(self) -> None:
        self._files[0].patch(npy_header(f"<u{self._about.width}", self.tokens))


class MaskedSink(Sink):
    """Raw ids, and their mask in a second file: a numpy array with a byte per id."""

    def begin(self) -> None:
        super().begin()
        self._files[1].write(npy_header("|u1", 0))

    def _write_index(self, found: Formed) -> None:
        assert found.mask is not None
        self._files[1].write(found.mask)

    def finish(self) -> None:
        super().finish()
        self._files[1].patch(npy_header("|u1", self.tokens))


class MaskedNpySink(MaskedSink, NpySink):
    """As `MaskedSink`, with the ids in numpy's format."""


class JsonlSink(Sink):
    """A line {"input_ids":[…]} for each document, written as its ids arrive."""

    def _write_ids(self, found: Formed) -> None:
        # A line is begun with the document's first id, or at its end if it has no ids.
        has_ids = int(found.ends[0]) if len(found.ends) else found.n_ids
        if has_ids or not self.open:
            self._files[0].write(b"," if self.open else JSONL_BEGIN)
        self._files[0].write(found.data)


def npy_header(dtype: str, count: int) -> bytes:
    """The header of numpy's format 1.0 for an array of `count` numbers of this type."""
    shape = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({count},)}}"
    size = NPY_HEADER - 10
    return (
        b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + shape.encode().ljust(size - 1) + b"\n"
    )


def format_text(ids: IdArray) -> bytes:
    """Convert ids to decimal text, each followed by a line end."""
    return format_rows(ids, ())[0]


def format_rows(ids: IdArray, ends: Ends) -> tuple[bytes, list[int]]:
    """The text of `format_text`, and for each of `ends` the offset of ids[end] in that text."""
    if len(ids) < _MANY:
        lines = [f"{one}\n" for one in ids.tolist()]
        sizes = [0, *itertools.accumulate(map(len, lines))] if len(ends) else []
        return "".join(lines).encode(), [sizes[end] for end in ends]
    # A table of digits with a row per id, from which the leading zeros are dropped. This is 6 times
    # as fast as calling str() for each id.
    width = len(str(ids.max()))
    digits = np.empty((len(ids), width + 1), np.uint8)
    digits[:, width] = ord("\n")
    rest = ids
    for place in reversed(range(width)):
        tens = rest // 10
        digits[:, place] = rest - tens * 10 + ord("0")
        rest = tens
    is_shown = np.ones(digits.shape, np.bool_)
    for place in range(width - 1):
        is_shown[:, place] = ids >= 10 ** (width - 1 - place)
    data = digits[is_shown].tobytes()
    if not len(ends):
        return data, []
    sizes_before = np.concatenate([[0], np.cumsum(np.count_nonzero(is_shown, axis=1))])
    offsets: list[int] = sizes_before[np.asarray(ends, np.intp)].tolist()
    return data, offsets


def fitting_width(max_id: int) -> int:
    """Bytes of the narrowest type that holds `max_id`: 2 or 4."""
    return 2 if max_id <= 0xFFFF else 4
