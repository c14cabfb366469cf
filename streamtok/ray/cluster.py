"""The connection to a Ray cluster, and what all jobs on it have in common."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from ..errors import MissingLibraryError

RETRIES = 3  # of a part whose worker or node was lost, or whose storage failed


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """The library, connected. A connection that is there already is used, and stays.

    address: as for `ray.init`. Raises MissingLibraryError, and what `ray.init` raises.
    """
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns at each start
    try:
        import ray
    except ImportError as error:
        raise MissingLibraryError("jobs on Ray", "ray", "ray", error) from None
    is_ours = not ray.is_initialized()
    if is_ours:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    try:
        yield ray
    finally:
        if is_ours:
            ray.shutdown()


def in_flight(ray: Any) -> int:
    """Tasks that Ray holds at a time, by default."""
    return max(2 * int(ray.cluster_resources().get("CPU", 1)), 1)


def why_lost(number: int, error: Exception) -> str:
    """The message for a part that Ray gave up."""
    what = str(error).strip().splitlines() or [type(error).__name__]
    return f"part {number} was lost {RETRIES + 1} times: {what[-1]}"
