"""The interface between an encoding and its engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from .._core.encode import ChangeRules, Output, SpecialMatcher, Tail
    from .._types import Text
    from .template import Template

__all__ = ["NO_LIMIT", "Engine"]

Result = TypeVar("Result")

NO_LIMIT = (1 << 63) - 1  # of pending bytes: a whole text is in memory anyway


class Engine(Protocol):
    """Encodes text with one vocabulary and one pattern. Immutable, shared by threads."""

    def encode(
        self, text: Text, matcher: SpecialMatcher, errors: str, output: Output[Result]
    ) -> Result:
        """The ids of a whole text in the form of `output`: LIST, ARRAY or COUNT.

        Raises DisallowedSpecialError for a special token that `matcher` refuses, and
        UnicodeDecodeError for bytes that are not UTF-8 if `errors` is "strict".
        """
        ...

    def rules(self, matcher: SpecialMatcher) -> ChangeRules:
        """How the core changes a text before encoding; `matcher` finds its special tokens.

        Raises UnsupportedPatternError for a pattern without tables.
        """
        ...

    def tail(
        self,
        matcher: SpecialMatcher,
        errors: str,
        template: Template,
        finder: object = None,
    ) -> Tail:
        """A new stream in the core, with the ids of `template` before and after its own.

        finder: finds the tokens in chunks with control. Raises UnsupportedPatternError for a
        pattern that cuts whole texts only.
        """
        ...
