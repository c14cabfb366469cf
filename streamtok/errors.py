"""What can go wrong, one class for each thing a caller may want to tell apart.

Every class is a `StreamtokError` and also the built-in exception that fits, so that code written
for tiktoken (`except ValueError`) keeps working. All of them can be pickled, attributes included.
Not here: wrong argument types (`TypeError`), unknown encoding names (`ValueError`), unknown models
and tokens (`KeyError`) and bytes that are not UTF-8 (`UnicodeDecodeError`) are plain built-ins, as
in tiktoken and in `codecs`.
"""

from __future__ import annotations

from typing import NoReturn

__all__ = [
    "ArchiveError",
    "CheckpointError",
    "DocumentError",
    "FormatLimitError",
    "MemoryLimitExceeded",
    "MissingLibraryError",
    "PatternError",
    "PendingLimitExceeded",
    "SidecarError",
    "StateError",
    "StreamInUseError",
    "StreamtokError",
    "UnsupportedPatternError",
    "UnsupportedStreamError",
    "VocabularyError",
    "raise_disallowed_special",
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


class UnsupportedStreamError(StreamtokError, ValueError):
    """An encoding does something to whole texts that streams cannot do, and the text names it."""


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


class CheckpointError(StreamtokError, ValueError):
    """A run cannot go on where its checkpoint says: something is damaged, gone or has changed."""


class SidecarError(StreamtokError, ValueError):
    """What describes a file of ids, beside it, is damaged or does not describe that file."""


class MissingLibraryError(StreamtokError, ImportError):
    """An optional library is not installed. `extra` is the extra of streamtok that brings it."""

    def __init__(self, purpose: str, library: str = "", extra: str = "") -> None:
        text = f'{purpose} need {library}: pip install "streamtok[{extra}]"' if extra else purpose
        super().__init__(text)
        self.extra = extra


class ArchiveError(StreamtokError, ValueError):
    """A compressed input is damaged or ends too early."""


class DocumentError(StreamtokError, ValueError):
    """A record that should hold a text is broken or holds none."""


class FormatLimitError(StreamtokError, ValueError):
    """A file format cannot hold as much as it should."""


def raise_disallowed_special(offset: int, text: str) -> NoReturn:
    """Raise the ValueError that says what to do; `offset` in bytes of UTF-8."""
    raise ValueError(
        f"the text has the disallowed special token {text!r} at byte {offset}.\n"
        f"To encode it as a special token, pass allowed_special={{{text!r}, ...}}.\n"
        "To encode it as plain text, pass disallowed_special=(), or "
        f"disallowed_special=(enc.special_tokens_set - {{{text!r}}}).\n"
        f"(Encountered text corresponding to disallowed special token {text!r}.)"
    )
