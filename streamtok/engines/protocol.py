"""What an encoding asks of its engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from .template import NO_TEMPLATE, Template

if TYPE_CHECKING:
    from .._core.encode import ChangeRules, Output, SpecialMatcher, Tail
    from .._types import Text

__all__ = ["NO_LIMIT", "Engine"]

Result = TypeVar("Result")

NO_LIMIT = (1 << 63) - 1  # bytes of a whole text that may wait: they are in memory anyway


class Engine(Protocol):
    """Text to ids, for one vocabulary and one pattern. Immutable, shared by threads."""

    def encode(
        self, text: Text, matcher: SpecialMatcher, errors: str, output: Output[Result]
    ) -> Result:
        """The ids of a whole text, as `output` gives them: LIST, ARRAY or COUNT.

        Raises DisallowedSpecialError for a special token that `matcher` refuses, UnicodeDecodeError
        ("strict").
        """
        ...

    def rules(self, matcher: SpecialMatcher) -> ChangeRules:
        """What the core does to a text first; `matcher` says which special tokens are in it.

        Raises UnsupportedPatternError for a pattern that the core does not know.
        """
        ...

    def tail(
        self,
        matcher: SpecialMatcher,
        errors: str,
        template: Template = NO_TEMPLATE,
        finder: object = None,
    ) -> Tail:
        """What a stream of texts is in the core; the template goes around its ids. finder: of the
        tokens in chunks that have control.

        Raises UnsupportedPatternError for a pattern that cuts whole texts only.
        """
        ...
