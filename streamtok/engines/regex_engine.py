"""The engine for patterns that have no tables: the `regex` package finds the pre-tokens.

Only whole texts: where such a pattern may look is not known, so no part of an unfinished text is
final.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import regex

from .._core.encode import Encoder, bytes_of
from ..errors import PatternError
from ..patterns.budget import Budget
from ..reference.bpe import MatchTime, compile_pattern

if TYPE_CHECKING:
    from .._core.encode import SpecialMatcher
    from .._types import IdArray, Text
    from ..errors import UnsupportedPatternError

__all__ = ["RegexEngine", "id_array", "joined_ids"]


class RegexEngine:
    """Pre-tokens from `regex`, their ids from the core."""

    def __init__(self, encoder: Encoder, pat_str: str, why: UnsupportedPatternError) -> None:
        """encoder: one without a scanner; why: what a stream raises.

        Raises PatternError where the pattern does not compile.
        """
        Budget(pat_str)  # `regex` writes repeats out, too
        try:
            self.pattern = compile_pattern(pat_str)
        except (regex.error, RecursionError) as error:
            raise PatternError(f"the pre-tokenization pattern does not compile: {error}") from error
        self.encoder = encoder
        self.why = why

    def encode(
        self,
        text: Text,
        matcher: SpecialMatcher,
        errors: str,
        into: str,
        left: MatchTime | None = None,
    ) -> Any:
        """See `Engine`. left: for all texts of one call. Raises PatternError past it."""
        policy = "surrogateescape" if errors == "surrogateescape" else "strict"
        if isinstance(text, str):
            data = str.encode(text, "utf-8", policy)
        else:
            data = bytes_of(text)
            if errors == "replace":
                data = data.decode("utf-8", errors).encode()
            elif errors == "strict":
                data.decode("utf-8")
        time = left or MatchTime(len(data))
        ids: list[IdArray] = []
        for start, end, token in matcher.split(data):
            if token is None:
                return start, data[start:end].decode("utf-8", policy)
            is_token = token >= 0
            ids.append(
                id_array([token]) if is_token else self._encode(data[start:end], policy, time)
            )
        return joined_ids(ids, into)

    def chain(self, matcher: SpecialMatcher, errors: str) -> NoReturn:
        """Raise UnsupportedPatternError."""
        raise self.why

    def _encode(self, segment: bytes, policy: str, left: MatchTime) -> IdArray:
        done = position = 0  # in bytes, in characters
        ends: list[int] = []
        characters = segment.decode("utf-8", policy)
        for start, end in left.spans(self.pattern, characters):
            if start > position:
                done += len(characters[position:start].encode("utf-8", policy))
                ends.append(-done)
            done += len(characters[start:end].encode("utf-8", policy))
            if end > start:
                ends.append(done)
            position = end
        ids: IdArray = self.encoder.encode_split(segment, np.array(ends, dtype=np.int64), "array")
        return ids


def id_array(ids: Sequence[int]) -> IdArray:
    """numpy.uint32 of the ids."""
    return np.array(ids, np.uint32)


def joined_ids(parts: list[IdArray], into: str) -> Any:
    """The ids of all parts, as `Engine.encode` gives them."""
    joined = np.concatenate([id_array([]), *parts])
    if into == "count":
        return len(joined)
    return joined.tolist() if into == "list" else joined
