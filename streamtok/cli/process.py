"""The entry point of processes that run one command: `streamtok` and `python -m streamtok`."""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

from .main import main

_GARBAGE = 20_000  # new objects between two garbage collections; Python's default is 700


def run() -> NoReturn:
    """Run the command in the process's arguments, and exit with its exit code.

    Most objects of imported modules live until the process exits. By default, Python's garbage
    collector scans them a hundred times during imports and twice at exit: 0.02 s in all.
    """
    gc.set_threshold(_GARBAGE)
    code = main()
    gc.freeze()  # the collections at exit skip all present objects
    sys.exit(code)
