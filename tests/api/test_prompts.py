"""Control and Prompt as values; what encodings make of them is in `test_prompt_ids.py`."""

from __future__ import annotations

import copy
import pickle
import string
import sys
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamtok import Control, Prompt
from streamtok.prompts import prompt_of

C = Control
SPANS = st.lists(st.tuples(st.text("ab {}% ", max_size=3), st.booleans()), max_size=5)


class Loud(str):
    """A derived class whose methods lie."""

    def __str__(self) -> str:
        return "loud"

    def __len__(self) -> int:
        return 99


class Sly:
    """A value whose parts are control, as nobody's data may be."""

    attribute = "<|im_end|>"

    def __format__(self, spec: str) -> Any:
        return Loud("<|im_end|>")

    def __str__(self) -> str:
        return Loud("<|im_end|>")


def prompt(spans: Iterable[tuple[str, bool]]) -> Prompt:
    return Prompt(*[Control(text) if control else text for text, control in spans])


def kinds(value: Prompt) -> list[tuple[str, bool]]:
    """Each character, and whether it is control."""
    return [(one, control) for text, control in value.spans for one in text]


@given(SPANS, SPANS, SPANS)
def test_adding_is_associative_and_canonical(a: Any, b: Any, c: Any) -> None:
    first, second, third = prompt(a), prompt(b), prompt(c)
    whole = first + second + third
    assert whole == first + (second + third) == prompt([*a, *b, *c])
    assert whole + Prompt() == Prompt() + whole == Prompt(whole) == whole
    assert hash(whole) == hash(prompt([*a, *b, *c]))
    assert str(whole) == "".join(text for text, _ in [*a, *b, *c])
    assert len(whole) == len(str(whole))
    for (text, control), (_, other) in zip(whole.spans, whole.spans[1:], strict=False):
        assert control != other
        assert text or not control
    assert isinstance(whole, Control) == (bool(whole.spans) and all(c for _, c in whole.spans))


@given(SPANS, st.integers(-20, 20), st.integers(-20, 20))
def test_slices_keep_kinds_and_borders(spans: Any, start: int, stop: int) -> None:
    whole = prompt(spans)
    assert whole[:start] + whole[start:] == whole == whole[:]
    part = whole[start:stop]
    assert str(part) == str(whole)[start:stop]
    first = range(len(whole))[start:stop].start
    assert kinds(part) == kinds(whole)[first : first + len(part)]
    for method in ("strip", "lstrip", "rstrip"):
        for characters in (None, "a", " b"):
            cut = getattr(whole, method)(characters)
            assert str(cut) == getattr(str(whole), method)(characters)
    for i in range(-len(whole), len(whole)):
        assert kinds(whole[i]) == [kinds(whole)[i]]


def test_a_border_stays_where_two_slices_meet() -> None:
    whole = C("<|im_") + "" + C("start|>")
    assert whole.spans == (("<|im_", True), ("", False), ("start|>", True))
    assert whole[:5] + whole[5:] == whole != C("<|im_start|>")
    assert (C("a") + "")[1:] == Prompt("")
    with pytest.raises(IndexError):
        whole[12]
    with pytest.raises(ValueError, match="step 1"):
        whole[::-1]


@given(SPANS, st.lists(SPANS, max_size=4))
def test_join(separator: Any, parts: Any) -> None:
    by, made = prompt(separator), [prompt(part) for part in parts]
    spans: list[Any] = []
    for i, part in enumerate(parts):
        spans += separator if i else []
        spans += part
    assert by.join(made) == by.join(iter(made)) == prompt(spans)
    assert by.join("ab").spans == (Prompt("a") + by + "b").spans
    assert (by * 3, 2 * by, by * 0) == (by + by + by, by + by, Prompt())


FILLED: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("<a>{}<b>", ("<b>",), {}),
    ("{}{}", ("", ""), {}),
    ("{1}{0}{x}", (1, 2), {"x": None}),
    ("{0[k]}{0[k][0]}{1.real}", ({"k": "vw"}, 3), {}),
    ("{{}}{!r:>9}{:{}}|", ("<a>", "b", 5), {}),
    ("{:{w}.{p}}", (1.2345,), {"w": 9, "p": 2}),
    ("no fields", (1, 2), {}),
    ("{}", (Loud("x"),), {}),
    ("{}{!s}{.attribute}", (Sly(), Sly(), Sly()), {}),
]  # fmt: skip


@pytest.mark.parametrize(("template", "args", "kwargs"), FILLED)
def test_format_puts_text_in(template: str, args: Any, kwargs: Any) -> None:
    found = Control(template).format(*args, **kwargs)
    assert str(found) == template.format(*args, **kwargs)
    literals = [literal for literal, *_ in string.Formatter().parse(template)]
    assert "".join(text for text, control in found.spans if control) == "".join(literals)
    if not args:
        assert Control(template).format_map(kwargs) == found
    assert all(type(text) is str for text, _ in found.spans)


PERCENT: list[tuple[str, Any]] = [
    ("<a>%s<b>", "<b>"),
    ("%s%s", ("", "")),
    ("%d%%%5.1f|%-4s|%r%a%c", (1, 2.25, "x", "y", "é", 65)),
    ("%(k)s%(k)5s%(n)03d", {"k": "v", "n": 7, "more": 1}),
    ("%s", {"a": 1}),
    ("%s", [1, 2]),
    ("%s%s", (Sly(), Loud("x"))),
    ("none", ()),
    ("none", {"a": 1}),
]


@pytest.mark.parametrize(("template", "values"), PERCENT)
def test_percent_puts_text_in(template: str, values: Any) -> None:
    found = Control(template) % values
    assert str(found) == template % values
    assert all(type(text) is str for text, _ in found.spans)
    assert [text for text, control in found.spans if control and "b" in text] == ["<b>"] * (
        "<b>" in template
    )


WRONG: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("{}", (), {}),
    ("{", (), {}),
    ("}", (), {}),
    ("{}{0}", (1,), {}),
    ("{0}{}", (1,), {}),
    ("{x}", (), {}),
    ("{:{:{}}}", (5, 3, 2), {}),
    ("{!z}", (1,), {}),
    ("{:d}", ("x",), {}),
    ("%s%s", (1,), {}),
    ("%s", (1, 2), {}),
    ("%", (), {}),
    ("a % b%", (), {}),
    ("%(k)s", (1,), {}),
    ("%d", ("x",), {}),
    ("%q", (1,), {}),
    ("none", (1,), {}),
]


@pytest.mark.parametrize(("template", "args", "kwargs"), WRONG)
def test_what_str_refuses_is_refused(template: str, args: Any, kwargs: Any) -> None:
    calls: list[Callable[[Any], Any]] = [lambda value: value % args]
    if "%" not in template and template != "none":
        calls = [lambda value: value.format(*args, **kwargs)]
    for call in calls:
        errors = []
        for value in (template, Control(template)):
            with pytest.raises((ValueError, TypeError, LookupError)) as raised:
                call(value)
            errors.append(raised.value)
        assert isinstance(errors[1], LookupError) == isinstance(errors[0], LookupError)


def test_spans_that_are_put_in_stay() -> None:
    inner = C("<t>") + "x"
    parts = (("<a>", True), ("<t>", True), ("x", False), ("<b>", True))
    expected = prompt(parts)
    assert Control("<a>{}<b>").format(inner) == expected
    assert Control("<a>{p}<b>").format_map({"p": inner}) == expected
    assert Control("<a>%s<b>") % inner == Control("<a>%s<b>") % (inner,) == expected
    assert Control("<a>%(p)s<b>") % {"p": inner} == expected
    # What asks for a str gets its text.
    for template in ("{!s}", "{!r}"):
        found = Control(template).format(inner)
        assert [control for _, control in found.spans] == [False]
    assert (Control("%10s") % inner).spans == (("      <t>x", False),)
    with pytest.raises(TypeError, match="lose what is control"):
        Control("{:>9}").format(inner)
    for template in ("%*d", "%.*f"):
        with pytest.raises(ValueError, match="write a number"):
            Control(template) % (5, 3)


NOT_DEFINED: dict[str, Callable[[Any], Any]] = {
    "formatted": lambda p: f"{p}",
    "joined by a str": lambda p: "".join([p]),
    "in": lambda p: "a" in p,
    "iterated": lambda p: [*p],
    "changed": lambda p: setattr(p, "spans", ()),
    "an attribute more": lambda p: setattr(p, "more", 1),
    "deleted": lambda p: delattr(p, "spans"),
    "upper": lambda p: p.upper(),
    "split": lambda p: p.split(),
    "a number added": lambda p: p + 1,
    "added to a number": lambda p: 1 + p,
    "bytes added": lambda p: p + b"a",
    "joining bytes": lambda p: p.join([b"a"]),
    "compared": lambda p: p < Prompt(),
    "control of bytes": lambda p: Control(str(p).encode()),  # type: ignore[arg-type]
    "control of a prompt": Control,
    "a prompt of a number": lambda p: Prompt(p, 1),  # type: ignore[arg-type]
    "a prompt as a number": lambda p: p * "a",
}


@pytest.mark.parametrize("name", NOT_DEFINED)
@pytest.mark.parametrize("value", [Control("ab"), C("ab") + "c"], ids=["control", "both"])
def test_what_would_lose_control_raises(name: str, value: Prompt) -> None:
    with pytest.raises((TypeError, AttributeError)):
        NOT_DEFINED[name](value)


def test_a_prompt_never_equals_a_str() -> None:
    assert Control("a") != "a"
    assert Prompt("a") != "a"
    assert Control("a") != Prompt("a")
    assert len({Control("a"), Prompt("a"), "a", Control("a"), Prompt(Loud("a"))}) == 3
    assert Prompt(Loud("a")).spans == (("a", False),)
    assert (repr(Control("a")), repr(C("a") + "b")) == ("Control('a')", "Prompt(Control('a'), 'b')")
    assert eval(repr(C("a") + "b" + C("c"))) == C("a") + "b" + C("c")


@given(SPANS)
def test_copies_and_pickles(spans: Any) -> None:
    whole = prompt(spans)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(whole, protocol)) == whole
    assert copy.copy(whole) == copy.deepcopy(whole) == whole
    assert type(copy.copy(whole)) is type(whole)


def test_only_prompts_are_prompts() -> None:
    whole = C("a") + "b"
    assert prompt_of(whole) is whole
    for value in ("a", b"a", None, 1, ["a"], string.Template("a")):
        assert prompt_of(value) is None


@pytest.mark.skipif(sys.version_info < (3, 14), reason="t-strings are of Python 3.14")
def test_t_strings() -> None:
    inner, user = C("<t>") + "x", "<|im_end|>"
    names = {"inner": inner, "user": user, "t_string": None, "width": 12}
    cases = {
        't"<a>{user}<b>"': C("<a>") + user + C("<b>"),
        't"<a>{inner}"': C("<a>") + inner,
        't"{user!r}{user:>12}{user:>{width}}"': Prompt(f"{user!r}{user:>12}{user:>12}"),
        't"{inner!s}"': Prompt("<t>x"),
        't"<a>{user}" t"<b>"': C("<a>") + user + C("<b>"),
        't"<|im_{str()}start|>"': C("<|im_") + "" + C("start|>"),
        't""': Prompt(),
    }
    for source, expected in cases.items():
        template = eval(source, dict(names))
        assert prompt_of(template) == Prompt(template) == expected
        nested = eval('t"{t_string}"', names | {"t_string": template})
        assert prompt_of(nested) == expected
        assert Control("{}").format(template) == Control("%s") % template == expected
        assert C("x") + template == C("x") + expected
        assert template + C("x") == expected + C("x")
        assert C("").join([template, "y"]) == expected + "y"
    with pytest.raises(TypeError, match="lose what is control"):
        prompt_of(eval('t"{inner:>9}"', names))
