"""Whether a file that stands where ids are to be written is one that streamtok made.

Such a file may be replaced, so that the same command can be run again. Anything else is somebody's
data. A file is told by its sidecar, or by what only our sinks write at its beginning.
"""

from __future__ import annotations

import os
import re

from .arrow import has_own_schema
from .by_name import Family
from .flat import LlmcSink, NpySink, llmc_header, npy_header
from .sidecar import described, has_sidecar, sidecar_path

_HEAD = 1 << 12
_TEXT = re.compile(rb"(?:\d{1,10}\n)+\d{0,10}")
_WIDTHS = {"u16": 2, "u32": 4}


def not_own(family: Family, path: str, shard: int | None = None) -> str | None:
    """str | None: the first file that the family would replace, and that is not ours.

    Files without a byte and what is no regular file hold nothing that can be lost.
    """
    names = family.kept_names(path, shard)
    first = names[0]
    if _holds_data(first) and not _is_own(family, first):
        return first
    for name in names[1:]:
        # An index belongs to the file that was found to be ours.
        is_own = has_sidecar(first) if name == sidecar_path(first) else _holds_data(first)
        if _holds_data(name) and not is_own:
            return name
    return None


def _holds_data(path: str) -> bool:
    return os.path.isfile(path) and os.path.getsize(path) > 0


def _is_own(family: Family, path: str) -> bool:
    found = described(path)
    if found is not None:
        # Raw ids of another width are the same command with another encoding.
        return found.format == family.chosen or {found.format, family.chosen} == _WIDTHS.keys()
    try:
        return _looks_own(family, path)
    except (OSError, OverflowError):  # it is gone, or larger than the format's count
        return False


def _looks_own(family: Family, path: str) -> bool:
    """Whether the file at `path` can only be of the format, and of nothing else."""
    chosen, size = family.chosen, os.path.getsize(path)
    if chosen in ("parquet", "arrow"):
        return has_own_schema(path, chosen)
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    match chosen:
        case "u16" | "u32":  # they have nothing but their name
            return path.lower().endswith(f".{chosen}") and size % _WIDTHS[chosen] == 0
        case "npy":
            start = NpySink.HEADER_SIZE
            return any(head[:start] == npy_header(w, (size - start) // w) for w in (2, 4))
        case "llmc":
            start = LlmcSink.HEADER_SIZE
            return any(head[:start] == llmc_header(w, (size - start) // w) for w in (2, 4))
        case "text":
            return _TEXT.fullmatch(head) is not None
        case "jsonl":
            return head.startswith(b'{"input_ids":[')
        case "megatron":
            with open(family.kept_names(path, None)[1], "rb") as file:
                return file.read(9) == b"MMIDIDX\x00\x00"
        case "datatrove":
            with open(f"{path}.metadata", "rb") as file:
                found = re.match(rb"[^\n]*\|([24])\n(\d+)\n", file.read(_HEAD))
            return found is not None and int(found[1]) * int(found[2]) == size
    return False
