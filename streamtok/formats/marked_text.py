"""Marked: text of a chat template that knows which of its characters the template itself wrote.

A template is a program that cuts, joins and strips strings. Its literals and what it makes of them
are `Marked` here, so that the rendered text can say what of it is control. Marks get lost but never
arise: a method of str that is not redefined here returns a plain str, and a plain str is text. So
what is forgotten here costs a control token of the template, and lets no content forge one.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping
from typing import Any, SupportsIndex

from ..prompts import Control, Prompt, prompt_of

__all__ = ["Marked", "as_prompt", "formatting", "joined", "with_prompts"]


class Marked(str):
    """A str with the spans of a Prompt."""

    # Templates are programs of strangers. Jinja's sandbox hides names with an underscore from them.
    __slots__ = ("_parts",)
    _parts: Prompt | tuple[Any, ...]  # or parts of it, of which a Prompt is made if it is asked for

    def __new__(cls, value: str | Prompt = "") -> Marked:
        """value: a Prompt and a Marked keep their spans; any other str is text."""
        self = super().__new__(cls, str(value))
        self._parts = as_prompt(value)
        return self

    @property
    def _prompt(self) -> Prompt:
        if isinstance(self._parts, tuple):
            found: list[Any] = []
            stack: list[Any] = [self._parts]
            while stack:
                part = stack.pop()
                if isinstance(part, tuple):
                    stack += reversed(part)
                else:
                    found.append(part)
            self._parts = Prompt(*found)
        return self._parts

    def __str__(self) -> str:
        return self  # compiled templates call str() of all that they write

    def __add__(self, other: str) -> Marked:
        return joined((self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> Marked:
        return joined((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> Marked:
        return Marked(self._prompt * count)

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> str:
        if not isinstance(self._prompt, Control):
            return super().__mod__(values)
        values = tuple(map(_kept, values)) if isinstance(values, tuple) else _kept(values)
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
        return Marked(self._prompt.join(map(_kept, parts)))

    def upper(self) -> str:
        return self._changed(str.upper)

    def lower(self) -> str:
        return self._changed(str.lower)

    def _changed(self, change: Callable[[str], str]) -> str:
        """With other letters, which may depend on their neighbours: of control and text, text."""
        text = change(self)
        return Marked(Control(text)) if isinstance(self._prompt, Control) else text


def as_prompt(value: str | Prompt) -> Prompt:
    """Prompt: the spans of this text."""
    kept = _kept(value)
    return kept if isinstance(kept, Prompt) else Prompt(kept)


def joined(parts: Iterable[str]) -> Marked:
    """Marked: one after another. In time of the text, not of the spans: templates do this a lot."""
    parts = [*parts]
    self = str.__new__(Marked, "".join(parts))
    self._parts = tuple([p._parts if isinstance(p, Marked) else str.__str__(p) for p in parts])
    return self


def with_prompts(value: Any, change: Callable[[Prompt], Any]) -> Any:
    """The same value of JSON, with `change(prompt)` for each Prompt or t-string in it."""
    prompt = prompt_of(value)
    if prompt is not None:
        return change(prompt)
    if isinstance(value, Mapping):
        return {key: with_prompts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_prompts(item, change) for item in value]
    return value


def formatting(template: Marked) -> Callable[..., Marked] | None:
    """`template.format`, with marks. None where text is in the template, or where a field reads an
    attribute or an item, which only Jinja's sandbox may do.
    """
    control = as_prompt(template)
    if not isinstance(control, Control):
        return None
    for _, name, spec, _ in string.Formatter().parse(template):
        if {*".["} & {*(name or "")} or "{" in (spec or ""):
            return None

    def format(*args: Any, **kwargs: Any) -> Marked:
        kept = {name: _kept(value) for name, value in kwargs.items()}
        return Marked(control.format(*map(_kept, args), **kept))

    return format


def _kept(value: Any) -> Any:
    """What a Prompt keeps the spans of."""
    return value._prompt if isinstance(value, Marked) else value
