"""A process that is one command and nothing else: `streamtok`, and `python -m streamtok`."""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

from .main import main

_GARBAGE = 20_000  # new objects between two looks for cycles; by default 700


def run() -> NoReturn:
    """Run the command in the process's arguments, and end the process with its exit code.

    Modules are full of objects that stay. By default, Python looks through them a hundred times
    while they are imported, and twice more before it ends: 0.02 s in all.
    """
    gc.set_threshold(_GARBAGE)
    code = main()
    gc.freeze()  # what is there now need not be looked through again
    sys.exit(code)
