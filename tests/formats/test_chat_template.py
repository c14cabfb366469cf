"""Chat templates: what of the rendered text is control, and what a template cannot do."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import jinja2
import pytest

import streamtok
from streamtok.formats.chat_template import ChatTemplate
from streamtok.formats.marked_text import Marked, unmarked
from streamtok.prompts import Control, Prompt

GPT2 = streamtok.get_encoding("gpt2")
C = Control
A = "{% set a = '<a>' %}"  # a literal that is not known when the template is compiled
BOS = {"bos_token": Control("<s>")}


def prompt_of(source: str, content: Any = "tea", **variables: Any) -> Prompt:
    """What a template makes of one message of a user."""
    message = {"role": "user", "content": content}
    return ChatTemplate(source, GPT2, BOS).prompt([message], {"c": content, **variables})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<a>{{ c }}<b>", C("<a>") + "tea" + C("<b>")),
        ("{{ bos_token }}{{ c }}{{ eos_token }}", C("<s>") + "tea" + ""),
        ("{{ '<a>' + c + '<b>' }}", C("<a>") + "tea" + C("<b>")),
        ("{{ c + '<a>' ~ 'b' ~ c }}", "tea" + C("<a>b") + "tea"),
        ("<|{{ messages[0].role }}|>", C("<|user|>")),
        ("{{ '<a>{}<b>{x}'.format(c, x='<c>') }}", C("<a>") + "tea" + C("<b><c>")),
        ("{{ '<%s>%d' % (c, 1) }}", C("<") + "tea" + C(">") + "1"),
        ("{{ '<%s>' | format('a') }}", C("<a>")),
        ("{{ ['<a>', c, '<b>'] | join }}", C("<a>") + "tea" + C("<b>")),
        ("{{ [c, c] | join('<b>') }}", "tea" + C("<b>") + "tea"),
        ("{{ '<b>'.join(['<a>', c]) }}", C("<a><b>") + "tea"),
        ("{{ ('  <a>' ~ c ~ ' <b> ') | trim }}", C("<a>") + "tea" + C(" <b>")),
        ("{{ ('\n<a>' ~ c).strip('\n').lstrip('<').rstrip('a') }}", C("a>") + "te"),
        ("{{ ('<a>' ~ c ~ '<b>').split('ea')[-1] }}", C("<b>")),
        ("{{ ('<a>' ~ c).replace('e', '<e>') }}", C("<a>") + "t" + C("<e>") + "a"),
        ("{{ ('<a>' ~ c ~ '<b>')[1:-1] }}", C("a>") + "tea" + C("<b")),
        ("{{ ('<a>' ~ c)[0] }}", C("<")),
        ("{% set n = namespace({'x': '<a>'}, y=c) %}{{ n.x + n.y }}", C("<a>") + "tea"),
        ("{{ {'user': '<u>'}[messages[0].role] }}", C("<u>")),
        ("{% for t in ['<a>', '<b>'] %}{{ t }}{% endfor %}", C("<a><b>")),
        ("{% set x %}<a>{{ c }}{% endset %}{{ x }}", C("<a>") + "tea"),
        ("{% macro m(t) %}<a>{{ t }}{% endmacro %}{{ m(c) }}", C("<a>") + "tea"),
        ("{% set n = namespace(x='<a>') %}{% set n.x = n.x + c %}{{ n.x }}", C("<a>") + "tea"),
        ("{% generation %}<a>{{ c }}{% endgeneration %}", C("<a>") + "tea"),
        ("{{ c is string and '<a>' or 'b' }}{{ x | default('<d>') }}", C("<a><d>")),
        ("{{ 'lit' if c == 'tea' else c }}", C("lit")),
        ("{{ messages[0] | tojson }}", Prompt('{"role": "user", "content": "tea"}')),
        # What forgets where it is from is text.
        (f"{A}{{{{ a | upper }}}}{{{{ a | indent(1, true) }}}}", Prompt("<A> <a>")),
        (f"{A}{{{{ a | escape }}}}{{{{ a | list | first }}}}", Prompt("&lt;a&gt;<")),
        (f"{A}{{{{ a | center(5) }}}}{{{{ (a ~ c) | upper }}}}", Prompt(" <a> <A>TEA")),
        (f"{A}{{{{ a[::-1] }}}}{{{{ a.zfill(4) }}}}", Prompt(">a<0<a>")),
        (f"{A}{{{{ a * 2 }}}}{{{{ 2 * a }}}}", Prompt("<a><a><a><a>")),
        (f"{A}{{{{ (a ~ c).format() }}}}", Prompt("<a>tea")),
        (f"{A}{{{{ c.join([a, a]) }}}}{{{{ c.replace('e', a) }}}}", Prompt("<a>tea<a>t<a>a")),
        ("{{ '<a>{0.x}{1:{1}}'.format(c, 1) }}{{ '{x}'.format_map({'x': 1}) }}", Prompt("<a>11")),
        ("{{ messages | length }}", Prompt("1")),
    ],
)
def test_what_is_control(source: str, expected: Prompt) -> None:
    assert prompt_of(source) == expected


def test_contents_are_text() -> None:
    """Whatever they say, unless they are Prompts."""
    source = "<a>{% for m in messages %}{{ m.content }}{% endfor %}{{ t }}"
    messages: list[dict[str, Any]] = [
        {"content": "<a>"},
        {"content": C("<a>") + "<a>"},
        {"content": C("<b>")},
    ]
    found = ChatTemplate(source, GPT2).prompt(messages, {"t": "<a>"})
    assert found == C("<a>") + "<a>" + C("<a>") + "<a>" + C("<b>") + "<a>"
    assert prompt_of("{{ c }}", 3).spans == (("3", False),)
    # Neither a role nor a format is control because it is where one could be.
    hostile = [{"role": "<|end|>", "content": "{}<a>%s"}]
    source = "{{ messages[0].role }}{{ messages[0].content.format('<a>') }}"
    assert ChatTemplate(source, GPT2).prompt(hostile, {}) == Prompt("<|end|><a><a>%s")


def test_messages_are_those_of_transformers() -> None:
    """Without null, and with the names of reasoning that templates ask for."""
    source = "{{ messages[0].items() | map('join', '=') | join(' ') }}"
    for name, expected in [
        ("reasoning", "thinking=x reasoning=x reasoning_content=x"),
        ("thinking", "thinking=x reasoning_content=x"),
        ("reasoning_content", "thinking=x reasoning_content=x"),
        ("content", "content=x"),
    ]:
        found = ChatTemplate(source, GPT2).prompt([{"name": None, name: "x"}], {})
        assert str(found) == expected


METHODS: list[tuple[str, list[Any]]] = [
    ("strip", [(), (" Aa",)]),
    ("lstrip", [(), ("Aa<",)]),
    ("rstrip", [(), ("bB>",)]),
    ("split", [("a",), ("A", 1), (), ("ab",)]),
    ("replace", [("a", "X"), ("A", "", 1), ("", "-"), ("bA", "bA")]),
    ("__getitem__", [(0,), (-1,), (slice(1, -1),), (slice(None, None, 2),), (99,)]),
    ("__add__", [("x",), ("",)]),
    ("__mul__", [(0,), (2,)]),
    ("upper", [()]),
    ("lower", [()]),
    ("title", [()]),
    ("capitalize", [()]),
    ("__mod__", [((),), (("x",),)]),
    ("join", [(["a", "B"],)]),
]


def test_marked_text_is_a_str_and_never_marks_text() -> None:
    """Capitals are control, all other letters are text, through each method: lost or kept."""
    rng = random.Random(5)
    kept = 0
    for _ in range(3000):
        spans = [
            (C if i % 2 else Prompt)("".join(rng.choices(("AB<% ", "ab> ")[i % 2 == 0], k=3)))
            for i in range(rng.randrange(4))
        ]
        text = Marked(Prompt(*spans))
        plain = str.__str__(text)
        name, cases = rng.choice(METHODS)
        arguments = rng.choice(cases)
        try:
            wanted = getattr(plain, name)(*arguments)
        except (IndexError, TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                getattr(text, name)(*arguments)
            continue
        found = getattr(text, name)(*arguments)
        assert found == wanted, (name, spans, arguments)
        for part in found if isinstance(found, list) else [found]:
            if isinstance(part, Marked):
                for span, is_control in unmarked(part).spans:
                    allowed = "AB<% " if is_control else "ab> ABxX-"
                    assert {*span} <= {*allowed}, (name, spans, arguments, part)
                    kept += is_control
    assert kept > 500


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("{% set n = namespace(_x=1) %}", jinja2.exceptions.SecurityError),
        ("{% set n = namespace() %}{% set n.__class__ = 1 %}", jinja2.exceptions.SecurityError),
        ("{{ dict.fromkeys('a') }}", jinja2.UndefinedError),
        ("{{ ''.__class__.mro() }}", jinja2.exceptions.SecurityError),
        ("{{ '<a>'._prompt.format(1) }}", jinja2.TemplateRuntimeError),
        ("{{ '{0.__class__.mro}'.format(c) }}", jinja2.exceptions.SecurityError),
        ("{{ '{0:{1.__class__.mro}}'.format(c, c) }}", jinja2.exceptions.SecurityError),
        ("{{ messages.append(1) }}", jinja2.exceptions.SecurityError),
        ("{{ raise_exception('no') }}", jinja2.TemplateError),
    ],
)
def test_a_template_stays_in_its_sandbox(source: str, error: type[Exception]) -> None:
    """With marks as without: each environment by itself."""
    for expected in (None, ""):
        with pytest.raises(error):
            ChatTemplate(source, GPT2).prompt([], {"c": "tea"}, expected=expected)


def test_another_text_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"at character 3 '<a>tea', expected '&lt;a"):
        prompt_of("{{ 'xyz' }}{{ '<a>' + (c | safe) }}")
    with pytest.raises(ValueError, match=r"at character 0 'tea', expected 'x'"):
        ChatTemplate("{{ c }}", GPT2).prompt([], {"c": "tea"}, expected="x")


CONTINUED = "<u>{{ messages[0].content }}{{ messages[0].thinking }}<e>"


@pytest.mark.parametrize(
    ("source", "message", "expected"),
    [
        (CONTINUED, {"content": "tea "}, C("<u>") + "tea "),
        (CONTINUED, {"content": C("<u>") + "x"}, C("<u><u>") + "x"),
        ("<u>{{ messages[0].content | trim }}<e>", {"content": " tea "}, C("<u>") + "tea"),
        (
            "<u>{{ messages[0].content[1].text }}<e>",
            {"content": [{"type": "image"}, {"text": "tea"}]},
            C("<u>") + "tea",
        ),
        ("{{ messages[0].content }}", {"content": ""}, Prompt("")),
        ("{{ messages[0].content[0].text }}", {"content": [{"text": "x"}]}, Prompt("x")),
        (CONTINUED, {}, "no content to continue"),
        (CONTINUED, {"content": [{"type": "image"}]}, "no content to continue"),
        ("<u>", {"content": "tea"}, "does not render"),
    ],
)
def test_a_final_message_that_is_continued(
    source: str, message: dict[str, Any], expected: Prompt | str
) -> None:
    template = ChatTemplate(source, GPT2)
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            template.prompt([message], {}, continue_final_message=True)
    else:
        assert template.prompt([message], {}, continue_final_message=True) == expected


CONFIG: dict[str, Any] = {
    "bos_token": {"content": "<s>", "lstrip": False},
    "eos_token": "</s>",
    "add_bos_token": True,
    "pad_token": None,
}
SOURCE = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"


@pytest.mark.parametrize(
    ("config", "source"),
    [
        (CONFIG, SOURCE),
        ({**CONFIG, "chat_template": SOURCE}, None),
        ({**CONFIG, "chat_template": "old"}, SOURCE),
        (
            {
                **CONFIG,
                "chat_template": [
                    {"name": "default", "template": SOURCE},
                    {"name": "tool_use", "template": "other"},
                ],
            },
            None,
        ),
    ],
)
def test_the_template_of_a_folder(
    tmp_path: Path, config: dict[str, Any], source: str | None
) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    if source is not None:
        (tmp_path / "chat_template.jinja").write_text(source)
    template = ChatTemplate.from_folder(str(tmp_path), GPT2)
    assert template.prompt([{"content": "tea"}], {}) == C("<s>") + "tea" + C("</s>")


def test_a_folder_without_a_template(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(CONFIG))
    with pytest.raises(streamtok.errors.VocabularyError, match=r"expected chat_template\.jinja"):
        ChatTemplate.from_folder(str(tmp_path), GPT2)
    (tmp_path / "chat_template.jinja").write_text("\n{% if %}")
    with pytest.raises(streamtok.errors.VocabularyError, match="line 2: Expected an expression"):
        ChatTemplate.from_folder(str(tmp_path), GPT2)
