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
from .sidecar import has_sidecar, matching_sidecar, sidecar_path


class Foreign(NamedTuple):
    """A file that a run must not replace, and why, as the end of a sentence about it."""

    path: str
    why: str


def find_foreign(family: Family, path: str, shard: int | None = None) -> Foreign | None:
    """The first file that the family would replace and that another job made, or None.

    Empty files hold nothing that could be lost, nor does a sidecar without its file.
    """
    first, *further = family.kept_names(path, shard)
    about = matching_sidecar(first)
    is_ours = about is not None and about.job is not None and about.job == family.about.job
    for name in (first, *further):
        if not _is_there(name):
            continue
        if not _is_file(name):
            return Foreign(name, "is not a regular file")
        is_left = name == sidecar_path(first) and has_sidecar(first)
        if is_ours or is_left:
            continue
        if about is None or name != first:
            return Foreign(name, "exists and is not an earlier output of this command")
        what = f"{about.format}, {about.tokens:,} tokens of {about.source}"
        return Foreign(name, f"is a finished output ({what}) of other inputs or settings")
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
