"""Tells whether a run may replace what is at its output path.

It may if the same job made it, so that the same command can be run again: its sidecar has the
digest of the job. Anything else is somebody's work: a file of another
kind, ids of other inputs or settings, ids without a sidecar. Shards are removed, too, where a run
writes fewer of them, if they have sidecars.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ..stores import places
from ..stores.urls import is_url
from .by_name import Family
from .sidecar import Sidecar, has_sidecar, matching_sidecar, sidecar_path

_OTHER_KIND = "exists and is not an earlier output of this command"


class Foreign(NamedTuple):
    """A file that a run must not replace, and why, as the end of a sentence about it."""

    path: str
    why: str


def find_foreign(family: Family, path: str, shard: int | None = None) -> Foreign | None:
    """The first file that the family would replace and that another job made, or None.

    Empty files hold nothing that could be lost, nor does a sidecar without its file.
    """
    first, *further = family.kept_names(path, shard)
    why = _why_foreign(family, first)
    if _is_there(first) and why is not None:
        return Foreign(first, why)
    for name in further:
        # An index belongs to the first file, which is ours, with ids or without.
        is_own = has_sidecar(first) if name == sidecar_path(first) else why is None
        if _is_there(name) and not (is_own and _is_file(name)):
            return Foreign(name, _OTHER_KIND if _is_file(name) else "is not a regular file")
    return None


def left_shards(family: Family, path: str, first: int) -> list[int]:
    """The numbers, from `first` on, of the shards there that have sidecars."""
    return [
        shard
        for shard in family.shards_there(path)
        if shard >= first and has_sidecar(family.names(path, shard)[0])
    ]


def _is_there(path: str) -> bool:
    if is_url(path):
        return places.exists(path) and places.size_of(path) > 0
    return os.path.exists(path) and not (_is_file(path) and os.path.getsize(path) == 0)


def _is_file(path: str) -> bool:
    return is_url(path) or os.path.isfile(path)


def _why_foreign(family: Family, path: str) -> str | None:
    if not _is_file(path):
        return "is not a regular file"
    found = matching_sidecar(path)
    if found is None:
        return _OTHER_KIND
    if found.job is not None and found.job == family.about.job:
        return None
    if family.about.job is None:
        return f"{_finished(found)}, and this input cannot be compared with the one of that job"
    return f"{_finished(found)} of other inputs or settings"


def _finished(found: Sidecar) -> str:
    return f"is a finished output ({found.format}, {found.tokens:,} tokens of {found.source})"
