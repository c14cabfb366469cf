"""A process group that is given by `here`."""

from __future__ import annotations

here: tuple[int, int] | None = None  # rank and world size


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return here is not None


def get_rank() -> int:
    assert here is not None
    return here[0]


def get_world_size() -> int:
    assert here is not None
    return here[1]
