"""What the calls of this package have in common: settings of special tokens and errors, budgets."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from .._core.encode import check_policy
from ..engines.template import NO_TEMPLATE

if TYPE_CHECKING:
    from .._core.encode import SpecialMatcher
    from .._types import AllowedSpecial, DisallowedSpecial
    from ..chunker import StreamEncoder
    from ..definition import EncodingDefinition

__all__ = ["Settings", "check_budget"]


class Settings:
    """How a text becomes ids: which special tokens count, what happens to bad bytes, and which ids
    come around those of the text (`template`).
    """

    def __init__(
        self,
        encoding: EncodingDefinition,
        allowed_special: AllowedSpecial,
        disallowed_special: DisallowedSpecial,
        errors: str,
        add_special_tokens: bool = False,
    ) -> None:
        """Raises as `Encoding.encode` does for settings that mean nothing."""
        check_policy(errors)
        self.allowed_special = allowed_special
        self.disallowed_special = disallowed_special
        self.errors = errors
        self.template = encoding._template if add_special_tokens else NO_TEMPLATE
        self.matcher: SpecialMatcher = encoding._matcher(allowed_special, disallowed_special)

    def stream(
        self,
        encoding: EncodingDefinition,
        max_pending: int | None = None,
        *,
        is_bare: bool = False,
    ) -> StreamEncoder:
        """A stream with these settings; is_bare: without the template.

        Raises as `Encoding.stream_encoder` does.
        """
        from ..chunker import StreamEncoder

        return StreamEncoder(
            encoding,
            allowed_special=self.allowed_special,
            disallowed_special=self.disallowed_special,
            errors=self.errors,
            max_pending=max_pending,
            add_special_tokens=self.template != NO_TEMPLATE and not is_bare,
        )

    def budget(self, max_tokens: Any, least: int = 0) -> int:
        """How many of so many ids are left for the text. Raises as `check_budget`, and ValueError
        where the template leaves less than `least`.
        """
        left = check_budget("max_tokens", max_tokens, least) - self.template.size
        if left < least:
            raise ValueError(
                f"max_tokens must be at least {self.template.size + least}, not {max_tokens}: "
                f"add_special_tokens adds {self.template.size} ids to every text"
            )
        return left


def check_budget(name: str, value: Any, least: int = 0) -> int:
    """`value` as an int. Raises TypeError for no integer, ValueError below `least`."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
    return number
