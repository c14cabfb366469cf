"""Allocations that fail, where the core was built for it (`STREAMTOK_TESTING=1`)."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

try:
    from streamtok._core import _failing
except ImportError:
    _failing: Any = None  # type: ignore[no-redef]

CAN_STARVE = _failing is not None
LOST = ("without setting an exception", "without exception set")
_attached: set[str] = set()


def attach() -> None:
    """Let the modules of the core that are loaded by now count their allocations."""
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if name.startswith("streamtok._core.") and name not in _attached and path:
            _attached.add(name)
            if not name.endswith("._failing") and not path.endswith(".py"):
                _failing.attach(path)


def arm(rng: random.Random) -> bool:
    """An allocation fails soon, of the core's or of Python's. Without the build none does.

    Returns whether it is one of Python's.
    """
    if _failing is None:
        return False
    attach()
    fail = rng.choice([_failing.fail_core, _failing.fail_core, _failing.fail_python])
    n, keeps_failing = 1 + int(rng.expovariate(1 / rng.choice([1, 4, 12]))), rng.random() < 0.2
    # Not Python's again and again: CPython 3.11 asks for memory, to unwind its stack, until it gets
    # some.
    fail(n, keeps_failing and fail is _failing.fail_core)
    return fail is _failing.fail_python


def starved(call: Callable[[], Any], rng: random.Random | None) -> Any:
    """What `call` gives, with `rng` while memory is short. Nothing but the call runs meanwhile."""
    if rng is None:
        return call()
    is_pythons = arm(rng)
    try:
        return call()
    except SystemError as error:
        # CPython 3.11 loses an exception that passes through a Python function while there is no
        # memory for that function's frame object (so it does without any of our code).
        if is_pythons and str(error).endswith(LOST):
            raise MemoryError from error
        raise
    finally:
        if _failing is not None:
            _failing.calm()
