"""Where a text may be divided: after paragraphs, lines, pre-tokens or matches of a pattern."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .text_window import character_ends

if TYPE_CHECKING:
    from .text_settings import Settings
    from .text_window import TextWindow

__all__ = ["LOOK_AHEAD", "Boundaries", "levels_of"]

LOOK_AHEAD = 1024  # most characters after an offset that can decide whether it is a boundary
_REACH = 64  # characters to search in the first round

_PARAGRAPH = r"\n(?:[ \t\r]*\n)+"
_LINE = r"\n"
_FINER = {
    "paragraph": ("paragraph", "line", "pretoken", "character"),
    "line": ("line", "pretoken", "character"),
    "pretoken": ("pretoken", "character"),
    "character": ("character",),
}


def levels_of(boundary: Any, is_str: bool) -> tuple[Any, ...]:
    """The boundary, then finer ones to try if it is too far away, with compiled expressions.

    Raises ValueError or TypeError for an invalid boundary.
    """
    kind: Any = str if is_str else bytes
    if isinstance(boundary, str):
        if boundary not in _FINER:
            known = ", ".join(f'"{one}"' for one in _FINER)
            raise ValueError(
                f"boundary must be one of {known} or a compiled regular expression, "
                f"not {boundary!r}"
            )
        expressions = {"paragraph": _PARAGRAPH, "line": _LINE}
        return tuple(
            re.compile(kind(expressions[one], "ascii") if kind is bytes else expressions[one])
            if one in expressions
            else one
            for one in _FINER[boundary]
        )
    if not hasattr(boundary, "finditer") or not hasattr(boundary, "pattern"):
        raise TypeError(
            "boundary must be a str or a compiled regular expression, not "
            f"{type(boundary).__name__}"
        )
    if not isinstance(boundary.pattern, kind):
        raise TypeError(
            f"the text is {kind.__name__}, the regular expression is one for "
            f"{type(boundary.pattern).__name__}: compile it from {kind.__name__}"
        )
    return boundary, "pretoken", "character"


class Boundaries:
    """The positions after `start` where a source may be divided, last first."""

    def __init__(self, settings: Settings, source: TextWindow, start: int) -> None:
        self._settings = settings
        self._source = source
        self._start = start
        self._specials: list[tuple[int, int]] | None = None

    def positions(self, level: Any, above: int, stop: int) -> Iterator[int]:
        """The boundaries between `above` and `stop`, exclusive, last first. Not for "character"."""
        if level == "pretoken":
            yield from self._pretoken_ends(above, stop)
            return
        window = self._source.text_at(self._start, stop + LOOK_AHEAD)
        for match in reversed(list(level.finditer(window))):
            position = self._start + match.end()
            if above < position < stop and character_ends(window, match.end(), match.end()):
                yield position

    def splits_special(self, position: int, stop: int) -> bool:
        """Whether an allowed special token or a control token spans `position`, which is before
        `stop`.
        """
        if not self._settings.matcher.allowed and self._settings.prompts is None:
            return False
        if self._specials is None:
            prompts = self._settings.prompts
            text = self._source.text_at(self._start, stop + self._settings.matcher.reach)
            is_str = isinstance(text, str)
            data = text.encode("utf-8", "surrogatepass") if is_str else text
            self._specials = []
            for first, last, token in self._settings.matcher.split(data):
                if token is not None and token >= 0:
                    if is_str:
                        first = len(data[:first].decode("utf-8", "surrogatepass"))
                        last = len(data[:last].decode("utf-8", "surrogatepass"))
                    self._specials.append((self._start + first, self._start + last))
            if prompts is not None:
                control = self._source.control_spans(prompts.finder, stop)
                start, end = (bisect.bisect_left(control, (at,)) for at in (self._start, stop))
                self._specials = sorted(self._specials + control[max(start - 1, 0) : end])
        at = bisect.bisect_left(self._specials, (position,)) - 1
        return at >= 0 and position < self._specials[at][1]

    def _pretoken_ends(self, above: int, stop: int) -> Iterator[int]:
        """The ends of pre-tokens in the given text, last first."""
        cuts, matcher = self._settings.definition.texts.cuts, self._settings.matcher
        text = self._source.text_at(self._start, stop + LOOK_AHEAD)
        high, reach = stop, _REACH
        while high > above + 1:
            near = max(above, high - reach) - self._start
            begin = 0 if cuts is None else max(cuts.find(text, matcher, 0, near + 1, True), 0)
            first = self._start + begin
            ends = self._ends_in(text[begin:], high - first)
            yield from (first + end for end in reversed(ends) if above < first + end < high)
            if begin == 0:
                return
            high = first + 1
            reach *= 4

    def _ends_in(self, text: Any, until: int) -> list[int]:
        """The ends of pre-tokens before `until`."""
        is_str = isinstance(text, str)
        characters = text if is_str else text.decode("utf-8", "surrogateescape")
        at = range(until) if is_str else character_ends(text, 0, until - 1)
        ends: list[int] = []
        for _, end in self._settings.definition.pretoken_spans(characters, len(at)):
            if end >= len(at):
                break
            ends.append(at[end])
        return ends
