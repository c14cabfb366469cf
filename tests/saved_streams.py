"""What a saved stream consists of, for tests that forge one: `Mark` in `_core/stream/tail.pxi`."""

from __future__ import annotations

from typing import Any

import numpy as np

_SCAN = np.dtype(
    [("start", "u8"), ("accept", "u8"), ("position", "u8"), ("state", "u4"), ("committed", "i4"),
     ("score", "f8")]
)  # fmt: skip
MARK = np.dtype(
    [("size", "u8"), ("searched", "u8"), ("partial", "u1", 3), ("partial_size", "u1"),
     ("has_other", "i4"), ("scan", _SCAN), ("other", _SCAN), ("retry_at", "u8"), ("fork_at", "u8"),
     ("offset", "u8"), ("bytes_in", "u8"), ("tokens_out", "u8")]
)  # fmt: skip


def changed(state: bytes, changes: dict[str, Any]) -> bytes:
    """The state of a tail with other fields, "scan.start" among them."""
    mark = np.frombuffer(state, MARK, 1).copy()
    for name, value in changes.items():
        *outer, field = name.split(".")
        (mark[outer[0]] if outer else mark)[field] = value
    return mark.tobytes() + state[MARK.itemsize :]
