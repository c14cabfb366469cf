"""The formats by name: which exist, which one a file name selects, and the sink of each."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ...files.part_file import PartFile
from ...stores import places
from ..saved_state import COUNT, Choice
from .arrow import ArrowSink
from .flat import (
    JSONL_BEGIN,
    RAW_WIDTHS,
    About,
    JsonlSink,
    LlmcSink,
    NpySink,
    RawSink,
    Sink,
    TextSink,
    fitting_width,
)
from .indexed import DatatroveSink, MegatronSink
from .outputs import Writable
from .sidecar import SidecarSink, sidecar_path

_T = TypeVar("_T")
FORMATS = ("u16", "u32", "npy", "text")  # a plain sequence of ids
READ_FORMATS = (*FORMATS, "llmc", "jsonl")  # those that `read_ids` reads
PIPE_FORMATS = ("u16", "u32", "text", "jsonl")
FILE_FORMATS = (*FORMATS, "jsonl", "llmc", "megatron", "datatrove", "parquet", "arrow")
_SUFFIXES = {".npy": "npy", ".txt": "text", ".u16": "u16", ".u32": "u32", ".bin": "raw", "": "raw"}
_FILE_SUFFIXES = {".jsonl": "jsonl", ".ds": "datatrove", ".parquet": "parquet", ".arrow": "arrow"}

_REQUIRED_SUFFIX = {"megatron": ".bin", "datatrove": ".ds"}  # the readers of these insist on it
FURTHER: dict[str, tuple[str, ...]] = {
    "megatron": (".idx",),
    "datatrove": (".index", ".metadata"),
}
_SCRATCH = {
    "megatron": (".lengths",),
    "parquet": (".ids", ".lengths"),
    "arrow": (".ids", ".lengths"),
}


@dataclass(frozen=True)
class Family:
    """The files that one output in a format consists of: their names, and how to make their sink.

    has_sidecar: a JSON file beside them describes them; not for Parquet and Arrow, whose schema
    does. The last `scratch` names are temporary files of the sink, removed when it has finished.
    """

    chosen: str
    about: About
    has_sidecar: bool = False

    @property
    def keeps_documents(self) -> bool:
        """Whether the format records where documents end."""
        return self.chosen in ("megatron", "datatrove", "parquet", "arrow", "jsonl")

    @property
    def scratch(self) -> int:
        """How many of the files are temporary."""
        return len(_SCRATCH.get(self.chosen, ()))

    @property
    def header_size(self) -> int:
        """Bytes at the beginning of the first file that are rewritten at the end."""
        return {"npy": NpySink.HEADER_SIZE, "llmc": LlmcSink.HEADER_SIZE}.get(self.chosen, 0)

    def is_hashed(self, number: int) -> bool:
        """Whether the sidecar or the schema holds the digest of file `number` of `names`."""
        if self.chosen in ("parquet", "arrow"):
            return number > 0  # the ids and lengths that the table is made of
        return self.has_sidecar and number <= len(FURTHER.get(self.chosen, ()))

    def in_order(self, files: Sequence[_T]) -> list[_T]:
        """The kept files in the order in which they are published: the sidecar comes first.

        Data without a sidecar would not show whose it is, if the process dies in between.
        """
        return [*files[-1:], *files[:-1]] if self.has_sidecar else list(files)

    @property
    def _width(self) -> int:
        """Bytes of an id, in the formats that let the vocabulary or the name decide."""
        return RAW_WIDTHS.get(self.chosen, self.about.width)

    @property
    def dtype(self) -> str | None:
        """The type of the ids in the first file; None for text, and for files with a schema."""
        if self.chosen in ("text", "jsonl", "parquet", "arrow"):
            return None
        if self.chosen == "megatron":
            return "uint16" if MegatronSink.width(self.about) == 2 else "int32"
        return "uint16" if self._width == 2 else "uint32"

    @property
    def state_shape(self) -> dict[str, Any]:
        """The shape of what the sink's `getstate` gives, for `saved_state.check_shape`."""
        counted: dict[str, Any] = {"tokens": COUNT}
        opened = {"open": COUNT}
        inner: dict[str, Any] = {
            "npy": counted,
            "llmc": counted,
            "datatrove": counted,
            "jsonl": {"before": Choice((JSONL_BEGIN.decode(), ","))},
            "megatron": opened,
            "parquet": opened | {"first": COUNT},
            "arrow": opened | {"first": COUNT},
        }.get(self.chosen, {})
        return counted | {"documents": COUNT, "sink": inner} if self.has_sidecar else inner

    def has_counts(self, sizes: Sequence[int], state: dict[str, Any]) -> bool:
        """Whether files of these sizes can have the ids that a state of the sink counts."""
        inner = state["sink"] if self.has_sidecar else state
        is_table = self.chosen in ("parquet", "arrow")
        width = 4 if is_table or self.dtype in ("uint32", "int32") else 2
        tokens, rest = divmod(sizes[is_table] - self.header_size, width)
        if self.chosen in ("text", "jsonl"):
            return True
        counts = [one["tokens"] for one in (state, inner) if "tokens" in one]
        return not rest and inner.get("open", 0) <= tokens and all(one == tokens for one in counts)

    def names(self, path: str, shard: int | None) -> list[str]:
        """The files of shard number `shard`, or of an output without shards if it is None."""
        stem, suffix = os.path.splitext(path)
        if required := _REQUIRED_SUFFIX.get(self.chosen):
            stem, suffix = (stem if suffix == required else path), required
        if shard is not None:
            stem = f"{stem}_{shard:06d}"
        # Megatron's index replaces the suffix. All other suffixes are appended.
        base = stem if self.chosen == "megatron" else stem + suffix
        return [
            stem + suffix,
            *(base + one for one in FURTHER.get(self.chosen, ())),
            *([sidecar_path(stem + suffix)] if self.has_sidecar else []),
            *(base + one for one in _SCRATCH.get(self.chosen, ())),
        ]

    def kept_names(self, path: str, shard: int | None) -> list[str]:
        """As `names`, without the temporary files."""
        names = self.names(path, shard)
        return names[: len(names) - self.scratch]

    def shards_there(self, path: str) -> list[int]:
        """The numbers of the shards that have files now, in ascending order."""
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

    def make(self, files: Sequence[PartFile], state: dict[str, Any] | None, first: int) -> Sink:
        """Make the sink for `files`, opened in the order of `names`.

        state: what the sink's `getstate` gave, or None. first: the number of the first document.
        """
        if not self.has_sidecar:
            return self._make(files, state, first)
        at = len(files) - self.scratch - 1
        inner = self._make([*files[:at], *files[at + 1 :]], state["sink"] if state else None, first)
        described = dict(zip(("", *FURTHER.get(self.chosen, ())), files[:at], strict=True))
        what = self.chosen, self.dtype
        return SidecarSink(inner, described, files[at], self.about, what, state or {})

    def _make(self, files: Sequence[PartFile], state: dict[str, Any] | None, first: int) -> Sink:
        match self.chosen:
            case "u16" | "u32":
                return RawSink(files[0], self._width)
            case "npy":
                return NpySink(files[0], self._width, state)
            case "llmc":
                return LlmcSink(files[0], self._width, state)
            case "text":
                return TextSink(files[0])
            case "jsonl":
                return JsonlSink(files[0], state)
            case "megatron":
                return MegatronSink(files, self.about, state or {})
            case "datatrove":
                return DatatroveSink(files, self.about, state or {})
        return ArrowSink(files, self.chosen, self.about, state or {}, first)


def choose_format(wanted: str | None, path: str, max_id: int) -> str:
    """The format of READ_FORMATS to read `path` in: `wanted`, else the one its suffix names.

    "-" is text. `.bin` and no suffix are u16 if ids up to `max_id` fit, else u32. Raises ValueError
    for unknown suffixes, and for u16 if the ids do not fit.
    """
    return _choose(wanted, path, max_id, _SUFFIXES | {".jsonl": "jsonl"})


def choose_file_format(wanted: str | None, path: str, max_id: int) -> str:
    """As `choose_format`, for writing: one of FILE_FORMATS."""
    return _choose(wanted, path, max_id, _SUFFIXES | _FILE_SUFFIXES)


def _choose(wanted: str | None, path: str, max_id: int, suffixes: dict[str, str]) -> str:
    chosen = wanted
    if chosen is None:
        suffix = os.path.splitext(path)[1]
        chosen = "text" if path == "-" else suffixes.get(suffix.lower())
        if chosen is None:
            known = " ".join(one for one in suffixes if one)
            raise ValueError(
                f"unknown suffix {suffix!r} of {path}: use --format, or one of {known}"
            )
    if chosen == "raw":
        chosen = "u16" if fitting_width(max_id) == 2 else "u32"
    if chosen == "u16" and fitting_width(max_id) > 2:
        raise ValueError(f"u16 holds ids up to 65535, but this vocabulary has {max_id}: use u32")
    return chosen


def make_sink(output: Writable, chosen: str, max_id: int) -> Sink:
    """Make the sink of a format that writes a single output: one of FORMATS, or jsonl.

    Raises ValueError for formats of several files, and for npy if the header cannot be patched.
    """
    if chosen == "text":
        return TextSink(output)
    if chosen == "jsonl":
        return JsonlSink(output)
    if chosen == "npy":
        if not output.is_file:
            raise ValueError(
                f"npy cannot be written to {output.name}, because its header holds the count: "
                "give a file with -o, or use u16, u32 or text"
            )
        return NpySink(output, fitting_width(max_id))
    if chosen in RAW_WIDTHS:
        return RawSink(output, RAW_WIDTHS[chosen])
    raise ValueError(
        f"{chosen} cannot be written to {output.name}: give a file with -o, or use u16, u32, text "
        "or jsonl"
    )
