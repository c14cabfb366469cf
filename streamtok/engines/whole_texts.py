"""The engine for patterns without tables: the `regex` package finds the pre-tokens.

It encodes whole texts only. Such a pattern may depend on any character, so no pre-token of an
unfinished text is final.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import regex

from .._core.encode import ARRAY, Encoder, text_bytes
from ..errors import DisallowedSpecialError, PatternError
from ..reference.bpe import compile_pattern, match_spans

if TYPE_CHECKING:
    from .._core.encode import Output, SpecialMatcher
    from .._types import IdArray, Text
    from ..errors import UnsupportedPatternError
    from .protocol import Result

__all__ = ["WholeTextEngine"]

_MOST_WRITTEN_OUT = 1_000_000  # characters of a pattern: these take `regex` a second


class WholeTextEngine:
    """Pre-tokens from `reference/bpe.py`, ids from the core."""

    def __init__(self, encoder: Encoder, pat_str: str, why: UnsupportedPatternError) -> None:
        """encoder: one without a scanner; why: the error that streams raise.

        Raises PatternError if the pattern does not compile.
        """
        _check_size(pat_str)
        try:
            compile_pattern(pat_str)
        except (regex.error, RecursionError) as error:
            raise PatternError(f"the pre-tokenization pattern does not compile: {error}") from error
        self.encoder, self.pattern, self.why = encoder, pat_str, why

    def encode(
        self, text: Text, matcher: SpecialMatcher, errors: str, output: Output[Result]
    ) -> Result:
        """See `Engine`. Raises PatternError if matching takes too long."""
        policy = "surrogateescape" if errors == "surrogateescape" else "strict"
        data = text_bytes(text, errors)
        parts = [np.empty(0, np.uint32)]
        for start, end, token in matcher.split(data):
            if token is None:
                raise DisallowedSpecialError(start, data[start:end].decode("utf-8", policy))
            is_token = token >= 0
            parts.append(
                np.array([token], np.uint32) if is_token else self._encode(data[start:end], policy)
            )
        return output.of(np.concatenate(parts))

    def tail(self, *settings: object) -> NoReturn:
        """Raise UnsupportedPatternError; so does `rules`."""
        raise self.why

    rules = tail

    def _encode(self, segment: bytes, policy: str) -> IdArray:
        done = position = 0  # in bytes, in characters
        ends = []
        characters = segment.decode("utf-8", policy)
        for start, end in match_spans(self.pattern, characters):
            if start > position:  # not a pre-token: its end is negative
                done += len(characters[position:start].encode("utf-8", policy))
                ends.append(-done)
            done += len(characters[start:end].encode("utf-8", policy))
            ends.append(done)
            position = end
        return self.encoder.encode_split(segment, np.array(ends, dtype=np.int64), ARRAY)


def _check_size(source: str) -> None:
    """Raise PatternError if `regex` might take gigabytes, because it writes repeats out.

    The product of all counts is an upper bound for nested repeats.
    """
    if re.search(r"\(\?[\w-]*x", source):  # counts may then contain white space
        raise PatternError("the flag 'x' is not supported: write the pattern without white space")
    size = len(source)
    for digits in re.findall(r"\{0*(\d+)", source, re.ASCII):
        size *= max(int(digits[:7]), 1)
        if size > _MOST_WRITTEN_OUT:
            raise PatternError(
                "the pattern may have more than "
                f"{_MOST_WRITTEN_OUT} characters with its repeats written out: use smaller counts"
            )
