"""Control and Prompt: text that says which of its characters may become control tokens.

A prompt is a template, whose special tokens are meant, and content from users, which is text
whatever it says. A `Prompt` is a sequence of spans of control and of text; a `Control` is a Prompt
that is control throughout: what the author of a program wrote.

A str is text, always: nothing makes control of text but `Control(...)`. Neither class is derived
from str, or else `"".join` and f-strings would lose what is control without an error, other
libraries would find control tokens in the content, and `Control("x")` would be the same key of a
cache as the text "x".

Spans are canonical: neighbours of one kind are one span, and an empty span of control is left out.
An empty span of text stays, because it is a border: control before and after it is two pieces,
whatever is put between them.
"""

from __future__ import annotations

import bisect
import itertools
import operator
import re
import string
import sys
from collections.abc import Iterable, Iterator
from typing import Any, SupportsIndex, Union

__all__ = ["Control", "Prompt", "is_inside_text", "prompt_of"]

Span = tuple[str, bool]  # a text, and whether it is control
Part = Union[str, "Prompt"]  # or a t-string

# A conversion of `str % values`
_FIELD = re.compile(r"%(?:\((?P<key>[^)]*)\))?[#0\- +]*\d*(?:\.\d*)?[hlL]?(?P<kind>.)", re.DOTALL)


class Prompt:
    """Spans of control and of text. Immutable.

    >>> from streamtok import Control, Prompt
    >>> Control("<|user|>") + "hello"
    Prompt(Control('<|user|>'), 'hello')
    """

    __slots__ = ("_ends", "spans")

    spans: tuple[Span, ...]
    """(text, is control) of each span, canonical."""
    _ends: list[int]

    def __new__(cls, *parts: Part) -> Prompt:
        """parts: a str is text, a Control is control, a Prompt or a t-string may have both."""
        return _made(span for part in parts for span in _spans_of(part))

    def __setattr__(self, *_: Any) -> None:
        raise AttributeError("a Prompt cannot be changed: make another one")

    __delattr__ = __setattr__

    def __str__(self) -> str:
        """str: the text, in which nothing is control any more."""
        return "".join([text for text, _ in self.spans])

    def __format__(self, spec: str) -> str:
        raise TypeError(
            "formatting a Prompt into a str would lose what is control: use a t-string, "
            "Control.format or +; or str(prompt) for its text"
        )

    def __repr__(self) -> str:
        parts = [f"Control({text!r})" if control else repr(text) for text, control in self.spans]
        return f"Prompt({', '.join(parts)})"

    def __len__(self) -> int:
        return self._span_ends()[-1] if self.spans else 0

    def __eq__(self, other: object) -> bool:
        """Whether the spans are equal. A Prompt never equals a str: their ids differ."""
        return self.spans == other.spans if isinstance(other, Prompt) else NotImplemented

    def __hash__(self) -> int:
        return hash((Prompt, self.spans))

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self.spans,)

    def __add__(self, other: Part) -> Prompt:
        return Prompt(self, other) if _is_part(other) else NotImplemented

    def __radd__(self, other: Part) -> Prompt:
        return Prompt(other, self) if _is_part(other) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> Prompt:
        return _made(self.spans * operator.index(count))

    __rmul__ = __mul__
    __iter__ = None  # or `in` would compare characters with a str, and find none
    __contains__ = None

    def __getitem__(self, key: SupportsIndex | slice) -> Prompt:
        """Prompt: some of the characters, each of its kind. The step of a slice must be 1.

        `p[:i] + p[i:]` equals p: an empty span of text at i is in the second part.
        """
        size = len(self)
        if not isinstance(key, slice):
            at = range(size)[key]
            key = slice(at, at + 1)
        start, stop, step = key.indices(size)
        if step != 1:
            raise ValueError(f"a Prompt can be sliced with the step 1 only, not {step}")
        spans, ends = [], self._span_ends()
        for i in range(bisect.bisect_left(ends, start), len(ends)):
            (text, control), end = self.spans[i], ends[i]
            begin = end - len(text)
            if begin > stop:
                break
            if max(start, begin) < min(stop, end):
                spans.append((text[max(0, start - begin) : stop - begin], control))
            elif begin == end and (start <= begin < stop or begin == stop == size):
                spans.append((text, control))
        return _made(spans)

    def _span_ends(self) -> list[int]:
        """Where each span ends, added up once: cutting a long prompt asks again and again."""
        try:
            return self._ends
        except AttributeError:
            ends = [*itertools.accumulate([len(text) for text, _ in self.spans])]
            object.__setattr__(self, "_ends", ends)
            return ends

    def join(self, parts: Iterable[Part]) -> Prompt:
        """Prompt: as `str.join`."""
        spans: list[Span] = []
        for i, part in enumerate(parts):
            spans += self.spans if i else ()
            spans += _spans_of(part)
        return _made(spans)

    def strip(self, characters: str | None = None) -> Prompt:
        """Prompt: as `str.strip`, of control and text alike."""
        return self.lstrip(characters).rstrip(characters)

    def lstrip(self, characters: str | None = None) -> Prompt:
        """Prompt: as `str.lstrip`."""
        return self[len(self) - len(str(self).lstrip(characters)) :]

    def rstrip(self, characters: str | None = None) -> Prompt:
        """Prompt: as `str.rstrip`."""
        return self[: len(str(self).rstrip(characters))]


class Control(Prompt):
    """A Prompt of control only. For what an author wrote, never for what came in.

    >>> Control("<|user|>{}<|end|>").format("I say <|end|>")
    Prompt(Control('<|user|>'), 'I say <|end|>', Control('<|end|>'))
    """

    __slots__ = ()

    def __new__(cls, text: str = "") -> Control:
        """Raises TypeError for anything but a str."""
        if not isinstance(text, str):  # of bytes, str() would be the text "b'...'"
            raise TypeError(f"Control takes a str, not {type(text).__name__}")
        self = object.__new__(cls)
        object.__setattr__(self, "spans", ((str.__str__(text), True),) if text else ())
        return self

    def __repr__(self) -> str:
        return f"Control({str(self)!r})"

    def format(self, /, *args: Any, **kwargs: Any) -> Prompt:
        """Prompt: as `str.format`. What is put in is text, but for a Control, a Prompt or a
        t-string in a field without conversion and format specification.
        """
        return _filled(str(self), args, kwargs)

    def format_map(self, values: Any, /) -> Prompt:
        """Prompt: as `str.format_map`; see `format`."""
        return _filled(str(self), (), values)

    def __mod__(self, values: Any) -> Prompt:
        """Prompt: as `str % values`; see `format`. No `*` for a width."""
        template, spans, last = str(self), [], 0
        template % values  # raises what is wrong
        given = iter(values if isinstance(values, tuple) else (values,))
        for found in _FIELD.finditer(template):
            spans.append((template[last : found.start()], True))
            last, field, key = found.end(), found[0], found["key"]
            if found["kind"] == "*":
                raise ValueError(f"{field!r} takes its width from the values: write a number")
            if found["kind"] == "%":
                spans.append(("%", True))
                continue
            value = next(given) if key is None else values[key]
            prompt = prompt_of(value) if field in ("%s", f"%({key})s") else None
            if prompt is None:
                prompt = Prompt(field % ((value,) if key is None else values))
            spans += prompt.spans
        return _made((*spans, (template[last:], True)))


def prompt_of(value: object) -> Prompt | None:
    """A Prompt, or what a t-string is as one; None for anything else.

    The literals of a t-string are control. An interpolation is text, after its conversion and its
    format specification; without these, a Control, a Prompt or a t-string keeps its spans.
    """
    if isinstance(value, Prompt):
        return value
    if not _is_template(value):
        return None
    spans: list[Span] = []
    for part in value:  # type: ignore[attr-defined]
        if isinstance(part, str):
            spans.append((part, True))
        else:
            value = string.Formatter().convert_field(part.value, part.conversion)
            spans += _field_spans(value, part.format_spec)
    return _made(spans)


def _is_template(value: object) -> bool:
    """Whether this is a t-string. A literal imports nothing, so `sys.modules` would not tell."""
    if sys.version_info >= (3, 14) and type(value).__module__ == "string.templatelib":
        from string.templatelib import Template

        return type(value) is Template  # no class can be derived from it
    return False


def _is_part(value: object) -> bool:
    return isinstance(value, str) or prompt_of(value) is not None


def _spans_of(part: object) -> tuple[Span, ...]:
    """The spans of a part. A str of a derived class is its plain text, whatever it overrides."""
    if isinstance(part, str):
        return ((str.__str__(part), False),)
    prompt = prompt_of(part)
    if prompt is None:
        raise TypeError(
            f"a part of a prompt must be a str, Control or Prompt, not {type(part).__name__}"
        )
    return prompt.spans


def is_inside_text(prompt: Prompt, place: int) -> bool:
    """Whether the characters before and after this place belong to one span of text."""
    ends = prompt._span_ends()
    i = bisect.bisect_right(ends, place)
    return i < len(ends) and ends[i] - len(prompt.spans[i][0]) < place and not prompt.spans[i][1]


def _made(spans: Iterable[Span]) -> Prompt:
    """The Prompt of these spans, which need not be canonical; a Control if all of it is control."""
    kept = (span for span in spans if span[0] or not span[1])
    groups = itertools.groupby(kept, operator.itemgetter(1))
    found = tuple([("".join([text for text, _ in group]), kind) for kind, group in groups])
    is_control = bool(found) and all(kind for _, kind in found)
    self: Prompt = object.__new__(Control if is_control else Prompt)
    object.__setattr__(self, "spans", found)
    return self


def _field_spans(value: Any, spec: str) -> tuple[Span, ...]:
    """What a field of a template becomes."""
    prompt = None if spec else prompt_of(value)
    return _spans_of(format(value, spec)) if prompt is None else prompt.spans


def _filled(template: str, args: tuple[Any, ...], kwargs: Any) -> Prompt:
    """`str.format`, with kinds kept apart."""
    fields, numbers = string.Formatter(), itertools.count()
    has_numbers: set[bool] = set()

    def spans_of(template: str, depth: int) -> Iterator[Span]:
        for literal, name, spec, conversion in fields.parse(template):
            yield literal, True
            if name is None:
                continue
            if name[:1].isdecimal():
                has_numbers.add(True)
            elif name[:1] in ("", ".", "["):
                has_numbers.add(False)
                name = f"{next(numbers)}{name}"
            if len(has_numbers) == 2:
                raise ValueError("fields have numbers, or none of them has: this template has both")
            value, _ = fields.get_field(name, args, kwargs)
            value = fields.convert_field(value, conversion)
            # A format specification has fields, too, which have none in theirs, as in `str.format`.
            if depth == 2:
                raise ValueError("fields are nested too deep: at most two levels")
            inner = "".join([text for text, _ in spans_of(spec or "", depth + 1)])
            yield from _field_spans(value, inner)

    return _made(spans_of(template, 0))
