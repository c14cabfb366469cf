"""Ranges of bytes: which input a part belongs to, and where in it a part begins and stops."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..errors import PlanError
from ..pipeline.sources import fingerprint, is_compressed
from ..stores.urls import is_url


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


def cut_inputs(
    inputs: Iterable[InputFile], part_size: int, is_cut: bool, may_be_packed: bool
) -> Iterator[tuple[int, int, int]]:
    """(number of the input, start, stop) of each part, about `part_size` bytes apart.

    is_cut: an input may be cut; else it is one part. may_be_packed: a
    compressed input is one part, too.
    """
    for which, one in enumerate(inputs):
        step = part_size
        if not is_cut or (may_be_packed and one.size > part_size and is_compressed(one.path)):
            step = max(one.size, 1)
        for start in range(0, max(one.size, 1), step):
            yield which, start, min(start + step, one.size)
