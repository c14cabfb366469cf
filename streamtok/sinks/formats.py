"""Formats by name: which there are, which one a file name means, and the sink of each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .arrow import ArrowSink
from .flat import (
    About,
    JsonlSink,
    LlmcSink,
    NpySink,
    RawSink,
    SidecarSink,
    Sink,
    TextSink,
    fitting_width,
)
from .indexed import DatatroveSink, MegatronSink
from .outputs import PartFile, Writable

FORMATS = ("u16", "u32", "npy", "text")  # of one row of ids
READ_FORMATS = (*FORMATS, "jsonl")  # these are read back, too
PIPE_FORMATS = ("u16", "u32", "text", "jsonl")
FILE_FORMATS = (*FORMATS, "jsonl", "llmc", "megatron", "datatrove", "parquet", "arrow")
_SUFFIXES = {".npy": "npy", ".txt": "text", ".u16": "u16", ".u32": "u32"}
_FILE_SUFFIXES = {".jsonl": "jsonl", ".ds": "datatrove", ".parquet": "parquet", ".arrow": "arrow"}


_WIDTHS = {"u16": 2, "u32": 4}
_FIRST = {"megatron": ".bin", "datatrove": ".ds"}  # suffixes that the readers insist on
_FURTHER = {"megatron": (".idx",), "datatrove": (".index", ".metadata")}
_TABLE = (".ids", ".lengths")
_SCRATCH = {
    "megatron": (".lengths",),
    "parquet": (".ids", ".lengths"),
    "arrow": (".ids", ".lengths"),
}


@dataclass(frozen=True)
class Family:
    """The files of one format: their names, and how their sink is made.

    has_sidecar: for raw ids, JSON in a file next to them. The last `scratch` of the names are for
    the sink alone and removed when it is finished.
    """

    chosen: str
    about: About
    has_sidecar: bool = False

    @property
    def keeps_documents(self) -> bool:
        """bool: whether the format says where documents end."""
        return self.chosen in ("megatron", "datatrove", "parquet", "arrow", "jsonl")

    @property
    def scratch(self) -> int:
        """int: how many files are not for keeping."""
        return len(_SCRATCH.get(self.chosen, ()))

    def names(self, path: str, shard: int | None) -> list[str]:
        """list[str]: the files of one shard, or of all if `shard` is None."""
        stem, suffix = os.path.splitext(path)
        if wanted := _FIRST.get(self.chosen):
            stem, suffix = (stem if suffix == wanted else path), wanted
        if shard is not None:
            stem = f"{stem}_{shard:06d}"
        further = (".json",) if self.has_sidecar else _FURTHER.get(self.chosen, ())
        # Megatron's index takes the place of the suffix, all others come behind it.
        base = stem if self.chosen == "megatron" else stem + suffix
        return [stem + suffix, *(base + one for one in further + _SCRATCH.get(self.chosen, ()))]

    def make(self, files: Sequence[PartFile], state: dict[str, Any] | None, first: int) -> Sink:
        """Sink: into the files of `names`; first: the number of the first document there."""
        width = _WIDTHS.get(self.chosen, self.about.width)
        match self.chosen:
            case "u16" | "u32":
                if self.has_sidecar:
                    return SidecarSink(files[0], files[1], self.about, width, state or {})
                return RawSink(files[0], width)
            case "npy":
                return NpySink(files[0], width, state)
            case "llmc":
                return LlmcSink(files[0], width, state)
            case "text":
                return TextSink(files[0])
            case "jsonl":
                return JsonlSink(files[0], state)
            case "megatron":
                return MegatronSink(files, self.about, state or {})
            case "datatrove":
                return DatatroveSink(files, self.about, state or {})
        return ArrowSink(files, self.chosen, state or {}, first)


def choose_format(wanted: str | None, path: str, max_id: int, default: str = "raw") -> str:
    """str: one of READ_FORMATS: the wanted one, else what the path's suffix says, else `default`.

    "-" is text. "raw" is u16 if the vocabulary fits, else u32. Raises ValueError for u16 if it
    does not fit.
    """
    return _choose(wanted, path, max_id, default, _SUFFIXES | {".jsonl": "jsonl"})


def choose_file_format(wanted: str | None, path: str, max_id: int) -> str:
    """str: as `choose_format`, of FILE_FORMATS."""
    return _choose(wanted, path, max_id, "raw", _SUFFIXES | _FILE_SUFFIXES)


def _choose(
    wanted: str | None, path: str, max_id: int, default: str, suffixes: dict[str, str]
) -> str:
    by_name = "text" if path == "-" else suffixes.get(os.path.splitext(path)[1].lower(), default)
    chosen = wanted or by_name
    if chosen == "raw":
        chosen = "u16" if fitting_width(max_id) == 2 else "u32"
    if chosen == "u16" and fitting_width(max_id) > 2:
        raise ValueError(
            f"u16 does not hold this vocabulary, whose highest id is {max_id}: use u32"
        )
    return chosen


def make_sink(output: Writable, chosen: str, max_id: int) -> Sink:
    """Sink: of one of FORMATS or jsonl, in one output.

    Raises ValueError for npy where the header cannot be patched, and for formats of several files.
    """
    if chosen == "text":
        return TextSink(output)
    if chosen == "jsonl":
        return JsonlSink(output)
    if chosen == "npy":
        if not output.is_file:
            raise ValueError(
                f"npy has its count in front and cannot go to {output.name}: "
                "give a file with -o, or use u16, u32 or text"
            )
        return NpySink(output, fitting_width(max_id))
    if chosen in ("u16", "u32"):
        return RawSink(output, 2 if chosen == "u16" else 4)
    raise ValueError(
        f"{chosen} cannot go to {output.name}: give a file with -o, or use u16, u32, text or jsonl"
    )
