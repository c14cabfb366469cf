"""Names of an output's files, the format that a file name selects, and sinks for single files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ..stores import places
from .flat import About, Sink, fitting_width
from .format_table import MASKED, TABLE, Format
from .outputs import Output
from .sidecar import sidecar_path

if TYPE_CHECKING:
    from .flat import EndArray, Formed, IdArray

_T = TypeVar("_T")
FILE_FORMATS = tuple(TABLE)
READ_FORMATS = tuple(name for name, one in TABLE.items() if one.read is not None)
FILE_SUFFIXES = tuple(one.suffix for one in TABLE.values() if one.suffix is not None)
_RAW_SUFFIXES = (".bin", "")  # u16 or u32, depending on the vocabulary


@dataclass(frozen=True)
class Family:
    """The files that make up one output in some format: their names and properties.

    A sidecar describes them. The last `scratch` files are temporary, and are removed when the
    output is complete. has_mask: whether the output includes masks of conversations, for formats in
    MASKED.
    """

    chosen: str
    about: About
    has_mask: bool = False

    @property
    def format(self) -> Format:
        return (MASKED if self.has_mask else TABLE)[self.chosen]

    @property
    def scratch(self) -> int:
        return len(self.format.scratch)

    def hashed_from(self, number: int, is_kept: bool) -> int | None:
        """The offset from which file `number` (not counting the sidecar) is hashed, or None.

        is_kept: whether the record of a run needs the digests of temporary files, too.
        """
        if number > len(self.format.further):
            return 0 if is_kept else None  # temporary
        return self.format.index_header if number else self.format.header_size

    def form(self, ids: IdArray, ends: EndArray, mask: bytes | None = None) -> Formed:
        """Convert the ids, and their mask if there is one, to the bytes of the files."""
        return self.format.form(ids, ends, self.format.id_width(self.about), mask)

    def in_order(self, files: Sequence[_T]) -> list[_T]:
        """The permanent files in the order of publication: the sidecar comes first.

        If ids came first, a process that died in between would leave ids of an unknown encoding.
        """
        return [*files[-1:], *files[:-1]]

    @property
    def dtype(self) -> str | None:
        """The type of the ids in the first file; None for text and tables."""
        return self.format.dtype(self.about)

    def names(self, path: str, shard: int | None) -> list[str]:
        """The files of shard number `shard`, or of an output without shards if `shard` is None."""
        stem, suffix = os.path.splitext(path)
        if required := self.format.required:
            stem, suffix = (stem if suffix == required else path), required
        if shard is not None:
            stem = f"{stem}_{shard:06d}"
        base = stem if self.format.replaces else stem + suffix
        return [
            stem + suffix,
            *(base + one for one in self.format.further),
            sidecar_path(stem + suffix),
            *(base + one for one in self.format.scratch),
        ]

    def kept_names(self, path: str, shard: int | None) -> list[str]:
        """`names` without the temporary files."""
        names = self.names(path, shard)
        return names[: len(names) - self.scratch]

    def shards_there(self, path: str) -> list[int]:
        """The numbers of the shards that have any files, in ascending order."""
        mark = "_000000"
        folder, first = os.path.split(self.names(path, 0)[0])
        begin = first[: first.rindex(mark) + 1]
        tails = [
            os.path.basename(name)[len(begin) + len(mark) - 1 :]
            for name in self.kept_names(path, 0)
        ]
        pattern = re.compile(
            rf"{re.escape(begin)}(0\d{{5}}|[1-9]\d{{5,}})(?:{'|'.join(map(re.escape, tails))})"
        )
        try:
            entries = places.names_in(folder or os.curdir)
        except OSError:
            return []
        return sorted({int(found[1]) for one in entries if (found := pattern.fullmatch(one))})


def choose_format(
    wanted: str | None, path: str, max_id: int, names: Sequence[str] = FILE_FORMATS
) -> str:
    """Choose the format for the file `path`: `wanted`, or else the one in `names` with its suffix.

    For "-" it is text; for `.bin` and for no suffix, u16 if ids up to `max_id` fit, else u32.
    Raises ValueError for unknown suffixes, and for u16 if the ids do not fit.
    """
    chosen = wanted
    if chosen is None:
        suffixes = {TABLE[name].suffix: name for name in names if TABLE[name].suffix is not None}
        suffix = os.path.splitext(path)[1].lower()
        if path == "-":
            chosen = "text"
        elif suffix in _RAW_SUFFIXES:
            chosen = "u16" if fitting_width(max_id) == 2 else "u32"
        elif suffix in suffixes:
            chosen = suffixes[suffix]
        else:
            known = " ".join(one for one in (*suffixes, *_RAW_SUFFIXES) if one)
            raise ValueError(
                f"unknown suffix {os.path.splitext(path)[1]!r} of {path}: use --format, or one of "
                f"{known}"
            )
    if chosen == "u16" and fitting_width(max_id) > 2:
        raise ValueError(f"u16 holds ids up to 65535, but this vocabulary has {max_id}: use u32")
    return chosen


def make_sink(output: Output, chosen: str, max_id: int) -> Sink:
    """Make the sink of a format for a single output.

    Raises ValueError for formats with several files, and for npy unless `output` is a file, because
    its header is rewritten.
    """
    one = TABLE[chosen]
    if one.is_single and one.header_size and not output.is_file:
        raise ValueError(
            f"{chosen} cannot be written to {output.name}, because its header holds the count: "
            "give a file with -o, or use u16, u32 or text"
        )
    if not one.is_single:
        *others, last = (
            name for name, one in TABLE.items() if one.is_single and not one.header_size
        )
        raise ValueError(
            f"{chosen} cannot be written to {output.name}: give a file with -o, or use "
            f"{', '.join(others)} or {last}"
        )
    made = one.make([output], About("", "", max_id), 0)
    made.begin()
    return made
