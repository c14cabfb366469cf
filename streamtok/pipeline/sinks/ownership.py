"""Tells whether a file at an output path was made by streamtok.

Such a file may be replaced, so that the same command can be run again. Any other file is somebody's
data. A file is recognised by its sidecar, or by a beginning that only our sinks write.
"""

from __future__ import annotations

import os
import re

from ...stores import places
from ...stores.urls import is_url
from .arrow import has_own_schema
from .by_name import Family
from .flat import JSONL_BEGIN, RAW_WIDTHS, LlmcSink, NpySink, llmc_header, npy_header
from .indexed import MEGATRON_MAGIC
from .sidecar import has_sidecar, matching_sidecar, sidecar_path

_HEAD = 1 << 12  # bytes
_TEXT = re.compile(rb"(?:\d{1,10}\n)+\d{0,10}")


def find_foreign(family: Family, path: str, shard: int | None = None) -> str | None:
    """The first file that the family would replace and that streamtok did not make, or None.

    Empty files and anything but regular files hold no data that could be lost.
    """
    names = family.kept_names(path, shard)
    first = names[0]
    if _holds_data(first) and not _is_own(family, first):
        return first
    for name in names[1:]:
        # An index belongs to the first file, which is ours or empty.
        is_own = has_sidecar(first) if name == sidecar_path(first) else _holds_data(first)
        if _holds_data(name) and not is_own:
            return name
    return None


def _holds_data(path: str) -> bool:
    if not is_url(path):
        return os.path.isfile(path) and os.path.getsize(path) > 0
    return places.exists(path) and places.size_of(path) > 0


def _is_own(family: Family, path: str) -> bool:
    found = matching_sidecar(path)
    if found is not None:
        # Raw ids of the other width come from the same command with another encoding.
        return found.format == family.chosen or {found.format, family.chosen} == RAW_WIDTHS.keys()
    try:
        return _looks_own(family, path)
    except (OSError, OverflowError):  # removed meanwhile, or larger than the format can count
        return False


def _looks_own(family: Family, path: str) -> bool:
    """Whether the content of the file at `path` shows that it has the format of the family."""
    chosen, size = family.chosen, places.size_of(path)
    if chosen in ("parquet", "arrow"):
        return has_own_schema(path, chosen)
    head = places.read_head(path, _HEAD)
    match chosen:
        case "u16" | "u32":  # raw ids have no header: only the name and the size can tell
            return path.lower().endswith(f".{chosen}") and size % RAW_WIDTHS[chosen] == 0
        case "npy":
            start = NpySink.HEADER_SIZE
            return any(head[:start] == npy_header(w, (size - start) // w) for w in (2, 4))
        case "llmc":
            start = LlmcSink.HEADER_SIZE
            return any(head[:start] == llmc_header(w, (size - start) // w) for w in (2, 4))
        case "text":
            return _TEXT.fullmatch(head) is not None
        case "jsonl":
            return head.startswith(JSONL_BEGIN)
        case "megatron":
            index = family.kept_names(path, None)[1]
            return places.read_head(index, len(MEGATRON_MAGIC)) == MEGATRON_MAGIC
        case "datatrove":
            about = places.read_head(f"{path}.metadata", _HEAD)
            found = re.match(rb"[^\n]*\|([24])\n(\d+)\n", about)
            return found is not None and int(found[1]) * int(found[2]) == size
    return False
