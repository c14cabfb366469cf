"""A signal handler that raises, at a place that can be repeated."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import streamtok

PACKAGE = os.path.dirname(streamtok.__file__)


class AtInstruction:
    """A signal handler raises before the n-th bytecode instruction of the package's Python.

    Python itself calls handlers at some instructions only, which depend on its version; what can
    stand being left at each of them can stand them all. `is_done`: the call had so many.

    Python 3.10 ends with a segmentation fault if a trace function raises at some instructions of an
    exception handler: there the handler raises before lines instead.

    Generators that are dropped before their end are left out: Python 3.12 runs a few instructions
    of theirs, and what is raised there is lost.
    """

    _event = "opcode" if sys.version_info >= (3, 11) else "line"

    def __init__(self, n: int, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.left = self.n = n
        self.error = error
        self.is_done = False
        self.place = ""

    def __repr__(self) -> str:
        return f"{self.error.__name__} at instruction {self.n} ({self.place})"

    def __call__(self, call: Callable[[], Any]) -> Any:
        before = sys.gettrace()
        sys.settrace(self.trace)
        try:
            return call()
        finally:
            sys.settrace(before)

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not is_ours(frame.f_code):
            return None
        dropped = event == "exception" and arg[0] is GeneratorExit
        frame.f_trace_opcodes = self._event == "opcode" and not dropped
        frame.f_trace_lines = self._event == "line" and not dropped
        if event == self._event and not self.is_done:
            self.left -= 1
            if self.left < 0:
                self.is_done = True
                path = os.path.relpath(frame.f_code.co_filename, PACKAGE)
                self.place = f"{path}:{frame.f_lineno}, byte {frame.f_lasti}"
                raise self.error
        return self.trace


def is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(PACKAGE)
