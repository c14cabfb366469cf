"""Texts in segments: special tokens, and what is between them, encoded one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .._core.encode import SpecialMatcher
    from .._types import IdArray

__all__ = ["encode_segments"]


def encode_segments(
    data: bytes, matcher: SpecialMatcher, encode: Callable[[bytes], Any], policy: str, into: str
) -> Any:
    """As `Engine.encode`, where `encode` gives the ids of a segment that has no special token.

    data: UTF-8, with what "surrogateescape" lets through if that is the policy.
    """
    ids: list[IdArray] = []
    for start, end, token in matcher.split(data):
        if token is None:
            return start, data[start:end].decode("utf-8", policy)
        found = [token] if token >= 0 else encode(data[start:end])
        ids.append(np.asarray(found, dtype=np.uint32))
    joined = np.concatenate(ids) if ids else np.empty(0, dtype=np.uint32)
    if into == "count":
        return len(joined)
    return joined.tolist() if into == "list" else joined
