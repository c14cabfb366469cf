"""Signal handlers that raise, at places that can be repeated."""

from __future__ import annotations

import _thread
import gc
import operator
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType
from typing import Any

import streamtok

PACKAGE = os.path.dirname(streamtok.__file__)


def in_the_core(call: partial[Any]) -> Any:
    """Ctrl-C arrives when the core has the word; nothing of Python runs in between.

    Nor does the collector of garbage: it may call Python (Hypothesis measures it), and what is
    raised there is lost.
    """
    both = [_thread.interrupt_main, call]
    collects = gc.isenabled()
    gc.disable()
    try:
        list(map(operator.methodcaller("__call__"), both))
    finally:
        if collects:
            gc.enable()


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


class AfterTime:
    """A real signal, whose handler raises, so many seconds after the call has begun.

    Where the call is over before that, nothing happens.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __repr__(self) -> str:
        return f"KeyboardInterrupt after {1e6 * self.seconds:.0f} us"

    def __call__(self, call: Callable[[], Any]) -> Any:
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        collects = gc.isenabled()
        gc.disable()  # what a handler raises in a finalizer is lost
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, self.seconds)
                return call()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        finally:
            signal.signal(signal.SIGALRM, before)
            if collects:
                gc.enable()
