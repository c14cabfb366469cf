"""Whole texts under a split pattern that has no tables: the `regex` package finds the pieces.

Only offline: where such a pattern may look is not known, so nothing of an unfinished text is
certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._core.encode import SpecialMatcher, bytes_of
from .reference import compile_pattern
from .unicode_classes import as_in_reference

if TYPE_CHECKING:
    from .encoding import Encoding, Text


def encode_whole(
    encoding: Encoding, text: Text, matcher: SpecialMatcher, errors: str, into: str
) -> Any:
    """As `_core.encoder.Encoder.encode`, for a pattern without tables."""
    surrogates = "surrogateescape" if errors == "surrogateescape" else "strict"
    if isinstance(text, str):
        data = str.encode(text, "utf-8", surrogates)
    else:
        data = bytes_of(text)
        if errors == "replace":
            data = data.decode("utf-8", errors).encode()
        elif errors == "strict":
            data.decode("utf-8")
    pattern = compile_pattern(encoding._pat_str)
    ids: list[np.ndarray[Any, Any]] = []
    for start, end, token in matcher.split(data):
        if token is None:
            return (start, data[start:end].decode("utf-8"))
        segment = data[start:end]
        if token >= 0:
            ids.append(np.array([token], dtype=np.uint32))
            continue
        done = 0
        ends: list[int] = []
        position = 0
        characters = segment.decode("utf-8", surrogates)
        # regex's Unicode version may be newer than the reference encoders': match on stand-ins.
        for match in pattern.finditer(as_in_reference(characters)):
            if match.start() > position:
                done += len(characters[position : match.start()].encode("utf-8", surrogates))
                ends.append(-done)
            done += len(characters[match.start() : match.end()].encode("utf-8", surrogates))
            if match.end() > match.start():
                ends.append(done)
            position = match.end()
        ids.append(encoding._encoder.encode_split(segment, np.array(ends, dtype=np.int64), "array"))
    joined = np.concatenate(ids) if ids else np.empty(0, dtype=np.uint32)
    if into == "count":
        return len(joined)
    return joined.tolist() if into == "list" else joined
