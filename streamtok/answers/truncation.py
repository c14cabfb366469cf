"""Budgets: whether a text fits a number of ids, and the longest prefix or suffix that does.

For a prefix, the text is read no further than needed; a suffix (`suffixes.py`) needs all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .._core.encode import COUNT
from ..engines.texts import check_budget
from .prefixes import Prefixes, feed
from .suffixes import longest_suffix

if TYPE_CHECKING:
    from .._types import AnyText
    from .text_settings import Settings

__all__ = ["Truncated", "fits", "truncate"]

_STEP = 1 << 16


class Truncated(NamedTuple):
    """A truncated text, the number of its ids, and whether something was cut off."""

    text: Any
    n_tokens: int
    was_truncated: bool


def fits(settings: Settings, text: AnyText, max_tokens: int) -> bool:
    """Whether the text has at most `max_tokens` ids."""
    left = check_budget("max_tokens", max_tokens) - settings.template.size
    settings, source = settings.opened(text)
    tail = settings.tail()
    position = 0
    while left >= 0:
        step = min(2 * left + 64, _STEP)
        is_end = source.is_end(position + step)
        left -= feed(tail, source.at(position, position + step), is_end, COUNT)
        if is_end:
            break
        position += step
        source.drop(position)
    return left >= 0


def truncate(
    settings: Settings,
    text: AnyText,
    max_tokens: int,
    side: str,
) -> Truncated:
    """The longest prefix or suffix with at most `max_tokens` ids, including the template's."""
    budget, added = settings.budget(max_tokens), settings.template.size
    if side not in ("left", "right"):
        raise ValueError(f'side must be "right" or "left", not {side!r}')
    settings, source = settings.opened(text)
    if side == "left":
        if not source.is_given_whole:
            raise TypeError(
                'side="left" keeps the end of a text, so it needs a str or bytes, not '
                f"{type(text).__name__}: join the chunks, or read the file"
            )
        end = source.known_end
        start, n_tokens = longest_suffix(settings, source.at(0, end), budget)
        return Truncated(source.at(start, end), n_tokens + added, start > 0)
    prefixes = Prefixes(settings, source)
    if prefixes.advance(budget):
        return Truncated(source.at(0, prefixes.end), prefixes.n_tokens + added, False)
    for stop in prefixes.positions(0):
        n_tokens = prefixes.count(stop)
        if n_tokens <= budget and prefixes.ends_token(stop):
            return Truncated(source.at(0, stop), n_tokens + added, True)
    return Truncated(source.at(0, 0), added, True)
