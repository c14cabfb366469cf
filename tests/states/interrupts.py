"""Ctrl-C at places that can be repeated."""

from __future__ import annotations

import _thread
import gc
import operator
import os
import sys
from functools import partial
from types import FrameType
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


class AtLine:
    """Ctrl-C arrives before the n-th line of the package's Python."""

    def __init__(self, n: int) -> None:
        self.left = self.n = n

    def __repr__(self) -> str:
        return f"Ctrl-C at line {self.n}"

    def __call__(self, call: partial[Any]) -> Any:
        before = sys.gettrace()
        sys.settrace(self.trace)
        try:
            return call()
        finally:
            sys.settrace(before)

    def trace(self, frame: FrameType, event: str, arg: object) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        return self.trace
