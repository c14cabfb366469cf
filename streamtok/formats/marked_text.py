"""Marked: text of a chat template that knows which of its characters the template itself wrote.

A template is a program that cuts, joins and strips strings. Its literals, and the strings that it
makes from them, are `Marked`, so that the rendered text shows which parts are control. Marks can
get lost but are never added: a method of str that is not redefined here returns a plain str, and a
plain str is text. So a missing method can cost the template a control token, but never lets content
forge one. The methods here are those that real templates apply to literals with tokens in them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, SupportsIndex

from ..prompts import Control, Prompt, prompt_of

__all__ = ["Marked", "unmarked", "with_prompts"]


class Marked(str):
    """A str with the spans of a Prompt."""

    # Templates are untrusted. Jinja's sandbox hides names with a leading underscore from them.
    __slots__ = ("_parts",)
    _parts: tuple[Any, ...]  # from which a Prompt is made when it is needed

    def __new__(cls, *parts: str | Prompt) -> Marked:
        """parts: a Prompt and a Marked keep their spans; any other str is text."""
        self = super().__new__(cls, "".join(map(str, parts)))
        known = [part._parts if isinstance(part, Marked) else (part,) for part in parts]
        self._parts = tuple(itertools.chain.from_iterable(known))
        return self

    @property
    def _prompt(self) -> Prompt:
        prompt = Prompt(*self._parts)
        self._parts = (prompt,)
        return prompt

    def __str__(self) -> str:
        return self  # compiled templates call str() on all that they write

    def __add__(self, other: str) -> Marked:
        return Marked(self, other) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> Marked:
        return Marked(other, self) if isinstance(other, str) else NotImplemented

    def __mod__(self, values: Any) -> str:
        if not isinstance(self._prompt, Control):
            return super().__mod__(values)
        values = tuple(map(unmarked, values)) if isinstance(values, tuple) else unmarked(values)
        return Marked(self._prompt % values)

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        plain = super().__getitem__(key)  # raises as str does
        if isinstance(key, slice) and key.step not in (None, 1):
            return plain
        return Marked(self._prompt[key])

    def strip(self, characters: str | None = None, /) -> Marked:
        return Marked(self._prompt.strip(characters))

    def lstrip(self, characters: str | None = None, /) -> Marked:
        return Marked(self._prompt.lstrip(characters))

    def rstrip(self, characters: str | None = None, /) -> Marked:
        return Marked(self._prompt.rstrip(characters))

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        pieces = super().split(sep, maxsplit)
        if sep is None:
            return pieces
        start = 0
        for i, piece in enumerate(pieces):
            pieces[i] = self[start : start + len(piece)]
            start += len(piece) + len(sep)
        return pieces

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> str:
        if not old:
            return super().replace(old, new, count)
        return Marked(new).join(self.split(old, count))

    def join(self, parts: Iterable[str], /) -> Marked:
        return Marked(self._prompt.join(map(unmarked, parts)))

    def format(self, *args: Any, **kwargs: Any) -> Marked:
        """As `str.format`; only for a text that is entirely control text."""
        assert isinstance(self._prompt, Control)
        kept = {name: unmarked(value) for name, value in kwargs.items()}
        return Marked(self._prompt.format(*map(unmarked, args), **kept))


def with_prompts(value: Any, change: Callable[[Prompt], Any]) -> Any:
    """A JSON value with `change(prompt)` in place of each Prompt or t-string in it."""
    prompt = prompt_of(value)
    if prompt is not None:
        return change(prompt)
    if isinstance(value, Mapping):
        return {key: with_prompts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_prompts(item, change) for item in value]
    return value


def unmarked(value: Any) -> Any:
    """The Prompt of a Marked; any other value unchanged."""
    return value._prompt if isinstance(value, Marked) else value
