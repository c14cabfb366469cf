"""What can go wrong, one class for each thing a caller may want to tell apart.

Every class is a `StreamtokError` and also the built-in exception that fits, so that code written
for tiktoken (`except ValueError`) keeps working. All of them can be pickled, attributes included.
Not here: wrong argument types (`TypeError`), unknown encoding names (`ValueError`), unknown models
and tokens (`KeyError`) and bytes that are not UTF-8 (`UnicodeDecodeError`) are plain built-ins, as
in tiktoken and in `codecs`.
"""

from __future__ import annotations

__all__ = [
    "MemoryLimitExceeded",
    "PatternError",
    "PendingLimitExceeded",
    "StateError",
    "StreamInUseError",
    "StreamtokError",
    "UnsupportedPatternError",
    "VocabularyError",
]


class StreamtokError(Exception):
    """The root of the tree: `except StreamtokError` catches all of them."""


class VocabularyError(StreamtokError, ValueError):
    """A table of tokens is damaged, incomplete, contradicts itself or cannot be had."""


class PatternError(StreamtokError, ValueError):
    """A split pattern does not compile."""


class UnsupportedPatternError(PatternError):
    """A valid split pattern which no DFA can follow, so that it cannot split a stream.

    `construct` names what is to blame, such as "look-behind"; `position` is where in the pattern
    that begins.
    """

    def __init__(self, message: str, *, construct: str = "", position: int = 0) -> None:
        super().__init__(message)
        self.construct = construct
        self.position = position


class PendingLimitExceeded(StreamtokError, RuntimeError):
    """A stream would have to hold back more bytes than its `max_pending` allows.

    The stream is as it was before the call. `offset` is where in the stream, in bytes, the pending
    bytes begin; `pending` is how many there would be; `limit` is how many there may be.
    """

    def __init__(self, message: str, *, offset: int = 0, pending: int = 0, limit: int = 0) -> None:
        super().__init__(message)
        self.offset = offset
        self.pending = pending
        self.limit = limit


class MemoryLimitExceeded(StreamtokError, RuntimeError):
    """A trainer would have to hold more bytes of counts than its `memory_limit` allows.

    What was counted is kept. `bytes_in` is how many bytes that was; `limit` is the limit.
    """

    def __init__(self, message: str, *, bytes_in: int = 0, limit: int = 0) -> None:
        super().__init__(message)
        self.bytes_in = bytes_in
        self.limit = limit


class StreamInUseError(StreamtokError, RuntimeError):
    """A stream was called while another call of it, in another thread, had not returned yet."""


class StateError(StreamtokError, ValueError):
    """A saved state does not fit the stream that is to take it."""
