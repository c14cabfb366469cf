"""Control and Prompt: text that says which of its characters may become control tokens.

A prompt combines a template, whose special tokens are intended, with content from users, which is
text whatever it says. A `Prompt` is a sequence of spans of control and of text. A `Control` is a
Prompt of control only: text that the author of a program wrote.

A str is always text: only `Control(...)` and the literals of t-strings are control. Neither class
is derived from str. Otherwise `"".join` and f-strings would silently lose what is control, other
libraries would find control tokens in the content, and `Control("x")` would be the same cache key
as the text "x".

Spans are canonical: neighbours of one kind are joined, and empty spans of control are dropped. An
empty span of text stays, because it is a border: it separates the control before it from the
control after it.
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

# A conversion specifier of `str % values`
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
        """str: the text, without the distinction between control and text."""
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
    __iter__ = None  # otherwise `in` would compare characters with a str
    __contains__ = None

    def __getitem__(self, key: SupportsIndex | slice) -> Prompt:
        """Prompt: a character or a slice, with its spans. The step of a slice must be 1.

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
        """The end of each span. Cached: cutting a long prompt needs them often."""
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
        """Prompt: as `str.strip`, for control and text alike."""
        return self.lstrip(characters).rstrip(characters)

    def lstrip(self, characters: str | None = None) -> Prompt:
        """Prompt: as `str.lstrip`."""
        return self[len(self) - len(str(self).lstrip(characters)) :]

    def rstrip(self, characters: str | None = None) -> Prompt:
        """Prompt: as `str.rstrip`."""
        return self[: len(str(self).rstrip(characters))]


class Control(Prompt):
    """A Prompt of control only. For text that the author of a program wrote, never for input.

    >>> Control("<|user|>{}<|end|>").format("I say <|end|>")
    Prompt(Control('<|user|>'), 'I say <|end|>', Control('<|end|>'))
    """

    __slots__ = ()

    def __new__(cls, text: str = "") -> Control:
        """Raises TypeError for anything but a str."""
        if not isinstance(text, str):  # str() of bytes would be "b'...'"
            raise TypeError(f"Control takes a str, not {type(text).__name__}")
        self = object.__new__(cls)
        object.__setattr__(self, "spans", ((str.__str__(text), True),) if text else ())
        return self

    def __repr__(self) -> str:
        return f"Control({str(self)!r})"

    def format(self, /, *args: Any, **kwargs: Any) -> Prompt:
        """Prompt: as `str.format`. Values are text, except for a Control, a Prompt or a t-string in
        a field without conversion and format specification.
        """
        return _filled(str(self), args, kwargs)

    def format_map(self, values: Any, /) -> Prompt:
        """Prompt: as `str.format_map`; see `format`."""
        return _filled(str(self), (), values)

    def __mod__(self, values: Any) -> Prompt:
        """Prompt: as `str % values`; see `format`. A width of `*` raises ValueError."""
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
    """A Prompt or a t-string as a Prompt; None for anything else.

    The literals of a t-string are control. An interpolation is text, after its conversion and
    format specification are applied; without these, a Control, a Prompt or a t-string keeps its
    spans.
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
    """Whether this is a t-string. Its literal does not import the module of its class."""
    if sys.version_info >= (3, 14) and type(value).__module__ == "string.templatelib":
        from string.templatelib import Template

        return type(value) is Template  # no class can be derived from it
    return False


def _is_part(value: object) -> bool:
    return isinstance(value, str) or prompt_of(value) is not None


def _spans_of(part: object) -> tuple[Span, ...]:
    """The spans of a part. A subclass of str counts as its plain text, whatever it overrides."""
    if isinstance(part, str):
        return ((str.__str__(part), False),)
    prompt = prompt_of(part)
    if prompt is None:
        raise TypeError(
            f"a part of a prompt must be a str, Control or Prompt, not {type(part).__name__}"
        )
    return prompt.spans


def is_inside_text(prompt: Prompt, offset: int) -> bool:
    """Whether the characters before and after this offset belong to one span of text."""
    ends = prompt._span_ends()
    i = bisect.bisect_right(ends, offset)
    return i < len(ends) and ends[i] - len(prompt.spans[i][0]) < offset and not prompt.spans[i][1]


def _made(spans: Iterable[Span]) -> Prompt:
    """A Prompt of these spans, made canonical; a Control if all of it is control."""
    kept = (span for span in spans if span[0] or not span[1])
    groups = itertools.groupby(kept, operator.itemgetter(1))
    found = tuple([("".join([text for text, _ in group]), kind) for kind, group in groups])
    is_control = bool(found) and all(kind for _, kind in found)
    self: Prompt = object.__new__(Control if is_control else Prompt)
    object.__setattr__(self, "spans", found)
    return self


def _field_spans(value: Any, spec: str) -> tuple[Span, ...]:
    """The spans that replace a field of a template."""
    prompt = None if spec else prompt_of(value)
    return _spans_of(format(value, spec)) if prompt is None else prompt.spans


def _filled(template: str, args: tuple[Any, ...], kwargs: Any) -> Prompt:
    """As `str.format`, but keeps control and text apart."""
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
                raise ValueError("a template cannot mix automatic and manual field numbering")
            value, _ = fields.get_field(name, args, kwargs)
            value = fields.convert_field(value, conversion)
            # A format specification may have fields, but these may not have their own, as in
            # `str.format`.
            if depth == 2:
                raise ValueError("fields are nested too deep: at most two levels")
            inner = "".join([text for text, _ in spans_of(spec or "", depth + 1)])
            yield from _field_spans(value, inner)

    return _made(spans_of(template, 0))
