"""Ranges of bytes: which input a part belongs to, and where in it a part begins and stops."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import NamedTuple

from ..errors import PlanError
from ..pipeline.sources import fingerprint, frame_starts
from ..stores.urls import is_url

__all__ = ["InputFile", "Part", "input_now", "part_starts"]


class InputFile(NamedTuple):
    """What a plan knows of an input: it must still be so when a part of it runs.

    tag: what else stays the same as long as the contents do, as in `Fingerprint`.
    """

    path: str
    size: int
    tag: str


class Part(NamedTuple):
    """Part `number`: what lies between the cuts for bytes `start` and `stop` of an input."""

    number: int
    input: InputFile
    start: int
    stop: int

    @property
    def is_last(self) -> bool:
        """Whether the input ends in this part."""
        return self.stop == self.input.size


def input_now(path: str) -> InputFile:
    """An input as it is now. Raises OSError, and PlanError if its size is not known."""
    if not is_url(path) and not os.path.isfile(path):
        os.stat(path)  # raises if there is nothing
        raise PlanError(f"{path} is not a regular file: only those can be read in parts")
    size, tag = fingerprint(path)
    if size is None:
        raise PlanError(f"{path} cannot be read in parts: the store does not tell its size")
    return InputFile(path, size, tag)


def part_starts(one: InputFile, step: int, is_packed: bool) -> Iterator[int]:
    """Where the parts of an input begin, about `step` bytes apart. is_packed: by compression."""
    if is_packed:
        return itertools.chain([0], frame_starts(one.path, one.size, step))
    return iter(range(0, max(one.size, 1), step))
