"""Exceptions: one class for each kind of error that a caller may want to tell apart.

Every class derives from `StreamtokError` and from the built-in exception that fits, so that code
written for tiktoken (`except ValueError`) keeps working. All can be pickled with their attributes.

Some errors stay plain built-ins, as in tiktoken and `codecs`: wrong argument types (`TypeError`),
unknown encoding names (`ValueError`), unknown models and tokens (`KeyError`), and bytes that are
not UTF-8 (`UnicodeDecodeError`).
"""

from __future__ import annotations

__all__ = [
    "ArchiveError",
    "CheckpointError",
    "DisallowedSpecialError",
    "DocumentError",
    "FormatLimitError",
    "MissingLibraryError",
    "PatternError",
    "PendingLimitExceeded",
    "PlanError",
    "SidecarError",
    "StateError",
    "StreamInUseError",
    "StreamtokError",
    "UnsupportedPatternError",
    "UnsupportedPromptError",
    "VocabularyError",
]


class StreamtokError(Exception):
    """The base class of all exceptions here."""


class VocabularyError(StreamtokError, ValueError):
    """A vocabulary is damaged, contradictory or not supported, or cannot be downloaded."""


class DisallowedSpecialError(StreamtokError, ValueError):
    """A text has a special token that the call refuses.

    `offset` is where the token begins, in bytes of UTF-8; `text` is the token.
    """

    def __init__(self, offset: int, text: str) -> None:
        super().__init__(offset, text)
        self.offset = offset
        self.text = text

    def __str__(self) -> str:
        return (
            f"the text has the disallowed special token {self.text!r} at byte {self.offset}.\n"
            f"To encode it as a special token, pass allowed_special={{{self.text!r}, ...}}.\n"
            "To encode it as plain text, pass disallowed_special=(), or "
            f"disallowed_special=(enc.special_tokens_set - {{{self.text!r}}}).\n"
            f"(Encountered text corresponding to disallowed special token {self.text!r}.)"
        )


class PatternError(StreamtokError, ValueError):
    """A pre-tokenization pattern is invalid, too large, or takes too long to match a text."""


class UnsupportedPatternError(PatternError):
    """A valid pattern that no DFA can match, so streams cannot use it.

    `construct` names the unsupported construct, such as "look-behind". `position` is its offset in
    the pattern, in characters.
    """

    def __init__(self, message: str, *, construct: str = "", position: int = 0) -> None:
        super().__init__(message)
        self.construct = construct
        self.position = position


class UnsupportedPromptError(StreamtokError, ValueError):
    """An encoding cannot keep control and text apart in every prompt."""


class PendingLimitExceeded(StreamtokError, RuntimeError):
    """A stream would have to hold back more bytes than `max_pending`.

    The stream is as it was before the call. `offset` is the offset of the first pending byte in the
    stream, `pending` the number of bytes that would be pending, `limit` the number allowed.
    """

    def __init__(self, message: str, *, offset: int = 0, pending: int = 0, limit: int = 0) -> None:
        super().__init__(message)
        self.offset = offset
        self.pending = pending
        self.limit = limit


class StreamInUseError(StreamtokError, RuntimeError):
    """A stream, decoder or trainer was called during another call to it."""


class StateError(StreamtokError, ValueError):
    """A saved state is damaged, or does not fit the object that loads it."""


class CheckpointError(StreamtokError, ValueError):
    """A run cannot continue: a file is damaged, missing or changed, or text of a log is lost."""


class PlanError(StreamtokError, ValueError):
    """A plan is damaged, its inputs have changed, or parts of it are missing."""


class SidecarError(StreamtokError, ValueError):
    """The sidecar of a file of ids is damaged, or describes another file."""


class MissingLibraryError(StreamtokError, ImportError):
    """An optional library is not installed, or does not load.

    `extra` is the extra of streamtok that installs it. `error` is the exception of its import.
    """

    def __init__(
        self, purpose: str, library: str = "", extra: str = "", error: ImportError | None = None
    ) -> None:
        text = f'{purpose} need {library}: pip install "streamtok[{extra}]"' if extra else purpose
        if error is not None and not isinstance(error, ModuleNotFoundError):
            text += f" ({library} is installed, but does not load: {error})"
        super().__init__(text)
        self.extra = extra


class ArchiveError(StreamtokError, ValueError):
    """A compressed input is damaged or ends too early."""


class DocumentError(StreamtokError, ValueError):
    """A record is damaged, or has no text."""


class FormatLimitError(StreamtokError, ValueError):
    """The data is too large for a file format."""
