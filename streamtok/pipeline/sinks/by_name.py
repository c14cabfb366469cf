"""Formats by name: which there are, which one a file name means, and the sink of each."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...files.part_file import PartFile
from .arrow import ArrowSink
from .flat import About, JsonlSink, LlmcSink, NpySink, RawSink, Sink, TextSink, fitting_width
from .indexed import DatatroveSink, MegatronSink
from .outputs import Writable
from .sidecar import SidecarSink, sidecar_path

FORMATS = ("u16", "u32", "npy", "text")  # of one row of ids
READ_FORMATS = (*FORMATS, "llmc", "jsonl")  # these are read back, too
PIPE_FORMATS = ("u16", "u32", "text", "jsonl")
FILE_FORMATS = (*FORMATS, "jsonl", "llmc", "megatron", "datatrove", "parquet", "arrow")
_SUFFIXES = {".npy": "npy", ".txt": "text", ".u16": "u16", ".u32": "u32", ".bin": "raw", "": "raw"}
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

    has_sidecar: JSON in a file next to them says what they are; not for Parquet and Arrow, which
    say it in their schema. The last `scratch` of the names are for the sink alone and removed when
    it is finished.
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

    @property
    def header_size(self) -> int:
        """int: bytes at the beginning of the first file that are written once more at the end."""
        return {"npy": NpySink.HEADER_SIZE, "llmc": LlmcSink.HEADER_SIZE}.get(self.chosen, 0)

    @property
    def has_digest(self) -> bool:
        """bool: whether the sidecar has the digest of the first file."""
        return self.has_sidecar and self.chosen in _WIDTHS

    @property
    def _dtype(self) -> str | None:
        """str | None: of the ids in the first file, for the sidecar."""
        if self.chosen in ("text", "jsonl"):
            return None
        if self.chosen == "megatron":
            return "uint16" if MegatronSink.width(self.about) == 2 else "int32"
        return "uint16" if _WIDTHS.get(self.chosen, self.about.width) == 2 else "uint32"

    def names(self, path: str, shard: int | None) -> list[str]:
        """list[str]: the files of one shard, or of all if `shard` is None."""
        stem, suffix = os.path.splitext(path)
        if wanted := _FIRST.get(self.chosen):
            stem, suffix = (stem if suffix == wanted else path), wanted
        if shard is not None:
            stem = f"{stem}_{shard:06d}"
        # Megatron's index takes the place of the suffix, all others come behind it.
        base = stem if self.chosen == "megatron" else stem + suffix
        return [
            stem + suffix,
            *(base + one for one in _FURTHER.get(self.chosen, ())),
            *([sidecar_path(stem + suffix)] if self.has_sidecar else []),
            *(base + one for one in _SCRATCH.get(self.chosen, ())),
        ]

    def kept_names(self, path: str, shard: int | None) -> list[str]:
        """list[str]: as `names`, without those that are removed."""
        names = self.names(path, shard)
        return names[: len(names) - self.scratch]

    def shards_there(self, path: str) -> list[int]:
        """list[int]: the shards of which there are files now, in order."""
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
            entries = os.listdir(folder or os.curdir)
        except OSError:
            return []
        return sorted({int(found[1]) for one in entries if (found := pattern.fullmatch(one))})

    def make(self, files: Sequence[PartFile], state: dict[str, Any] | None, first: int) -> Sink:
        """Sink: into the files of `names`; first: the number of the first document there."""
        if not self.has_sidecar:
            return self._make(files, state, first)
        at = len(files) - self.scratch - 1
        inner = self._make([*files[:at], *files[at + 1 :]], state["sink"] if state else None, first)
        what = self.chosen, self._dtype
        return SidecarSink(inner, files[0], files[at], self.about, what, state or {})

    def _make(self, files: Sequence[PartFile], state: dict[str, Any] | None, first: int) -> Sink:
        width = _WIDTHS.get(self.chosen, self.about.width)
        match self.chosen:
            case "u16" | "u32":
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
        return ArrowSink(files, self.chosen, self.about, state or {}, first)


def choose_format(wanted: str | None, path: str, max_id: int) -> str:
    """str: one of READ_FORMATS: the wanted one, else what the path's suffix says.

    "-" is text. `.bin` and no suffix are u16 if the vocabulary fits, else u32. Raises ValueError
    for other suffixes, and for u16 if the vocabulary does not fit.
    """
    return _choose(wanted, path, max_id, _SUFFIXES | {".jsonl": "jsonl"})


def choose_file_format(wanted: str | None, path: str, max_id: int) -> str:
    """str: as `choose_format`, of FILE_FORMATS."""
    return _choose(wanted, path, max_id, _SUFFIXES | _FILE_SUFFIXES)


def _choose(wanted: str | None, path: str, max_id: int, suffixes: dict[str, str]) -> str:
    chosen = wanted
    if chosen is None:
        suffix = os.path.splitext(path)[1]
        chosen = "text" if path == "-" else suffixes.get(suffix.lower())
        if chosen is None:
            known = " ".join(one for one in suffixes if one)
            raise ValueError(
                f"the suffix {suffix!r} of {path} names no format of ids: use --format, or one of "
                f"{known}"
            )
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
