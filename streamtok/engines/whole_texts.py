"""The engine for patterns that have no tables: the `regex` package finds the pre-tokens.

It encodes whole texts only. Such a pattern may look at any character, so no pre-token of an
unfinished text is final.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np
import regex

from .._core.encode import PLACES, Encoder, text_bytes
from ..errors import DisallowedSpecialError, PatternError
from ..patterns.budget import Budget
from ..reference.bpe import compile_pattern, match_spans

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._core.encode import Output, SpecialMatcher
    from .._types import IdArray, Text
    from ..errors import UnsupportedPatternError
    from .protocol import Result

__all__ = ["WholeTextEngine"]


class WholeTextEngine:
    """Pre-tokens from `reference/`, their ids from the core."""

    def __init__(self, encoder: Encoder, pat_str: str, why: UnsupportedPatternError) -> None:
        """encoder: one without a scanner; why: what a stream raises.

        Raises PatternError where the pattern does not compile.
        """
        Budget(pat_str)  # `regex` writes repeats out, too
        try:
            compile_pattern(pat_str)
        except (regex.error, RecursionError) as error:
            raise PatternError(f"the pre-tokenization pattern does not compile: {error}") from error
        self.encoder, self.pattern, self.why = encoder, pat_str, why

    def encode(
        self, text: Text, matcher: SpecialMatcher, errors: str, output: Output[Result]
    ) -> Result:
        """See `Engine`. Raises PatternError where matching takes too long."""
        return output.of(self.encode_with_places(text, matcher, errors)[0])

    def encode_with_places(
        self, text: Text, matcher: SpecialMatcher, errors: str
    ) -> tuple[IdArray, npt.NDArray[np.int64]]:
        """The ids, and of some their places in the text, as `Tail.encode` gives them for PLACES."""
        policy = "surrogateescape" if errors == "surrogateescape" else "strict"
        data = text_bytes(text, errors)
        rows, places, count = [np.empty(0, np.uint32)], [np.empty((0, 3), np.int64)], 0
        for start, end, token in matcher.split(data):
            if token is None:
                raise DisallowedSpecialError(start, data[start:end].decode("utf-8", policy))
            if token >= 0:
                ids, found = np.array([token], np.uint32), np.array([(count, start, end)])
            else:
                segment = data[start:end]
                ids, found = self.encoder.encode_split(
                    segment, self._ends(segment, policy), PLACES, start
                )
                found[:, 0] += count  # its own numbers begin at 0
            rows.append(ids)
            places.append(found)
            count += len(ids)
        return np.concatenate(rows), np.concatenate(places)

    def tail(self, *settings: object) -> NoReturn:
        """Raise UnsupportedPatternError, as `rules`."""
        raise self.why

    rules = tail

    def _ends(self, segment: bytes, policy: str) -> npt.NDArray[np.int64]:
        """Where pre-tokens end, as `Encoder.encode_split` takes it."""
        done = position = 0  # in bytes, in characters
        ends = []
        characters = segment.decode("utf-8", policy)
        for start, end in match_spans(self.pattern, characters):
            if start > position:  # no pre-token: its end is negative
                done += len(characters[position:start].encode("utf-8", policy))
                ends.append(-done)
            done += len(characters[start:end].encode("utf-8", policy))
            ends.append(done)
            position = end
        return np.array(ends, np.int64)
