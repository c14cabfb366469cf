"""The inputs of a run, one after another, as one sequence of documents.

`Feed.position` tells which input comes next and where in it, so that another process can continue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .inputs import Input
from .records import Places
from .splitters import Part


class Feed:
    """The documents of all inputs, in order. `read` counts bytes on the disk, in this process."""

    def __init__(self, inputs: Sequence[Input], at: dict[str, Any] | None = None):
        """at: a position in the first of the inputs."""
        self._inputs = inputs
        self._number = 0
        self._at = at
        self._input: Input | None = None
        self._read = 0
        self._is_before_wait = False

    def begin_at(self, position: dict[str, Any]) -> None:
        """Begin at a saved `position`. Raises ValueError if there is no such input."""
        self._number, self._at = position["input"], position["at"]
        if not 0 <= self._number <= len(self._inputs):
            raise ValueError(f"input {self._number} of {len(self._inputs)}")

    @property
    def may_wait(self) -> bool:
        """Whether the next group may take a while to arrive."""
        return self._is_before_wait or (self._input is not None and self._input.may_wait)

    @property
    def has_opened(self) -> bool:
        """Whether an input that may wait is open: only then its position is known."""
        return not self._is_before_wait

    def groups(self, is_open: bool = False) -> Iterator[list[Part]]:
        """Yield groups of parts; is_open: the position is inside a document."""
        for one in self._inputs[self._number :]:
            if one.may_wait:  # before it is opened
                self._is_before_wait = True
                yield []
                self._is_before_wait = False
            at, self._at = self._at, None
            self._input = one
            groups = one.groups(at, is_open)
            try:
                yield from groups
            finally:
                groups.close()  # type: ignore[attr-defined]
            is_open = False
            self._read += one.read
            self._input = None
            self._number += 1
            yield []  # allows a checkpoint even after an input without any group

    @property
    def name(self) -> str:
        """The input that is being read, for errors."""
        return self._input.name if self._input is not None else ""

    @property
    def places(self) -> Places:
        """Which records the documents of the last group are."""
        return self._input.places if self._input is not None else Places(lambda number: "")

    @property
    def read(self) -> int:
        return self._read + (self._input.read if self._input is not None else 0)

    def stop(self) -> list[Part]:
        """The remaining parts of this input if nothing more is read."""
        return self._input.stop() if self._input is not None else []

    @property
    def done(self) -> int:
        """The number of inputs that have ended, those of earlier processes included."""
        return self._number + (self._input is not None and self._input.is_done)

    def position(self) -> dict[str, Any]:
        """Where the next group begins, for JSON: the number of the input and the position in it."""
        if self._input is None or self._input.is_done:
            return {"input": self.done, "at": self._at}
        return {"input": self._number, "at": self._input.position()}
