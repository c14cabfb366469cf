"""encode_chat: transformers' ids for harmless conversations, and none that a user has forged."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import pytest
from transformers import BertTokenizerLegacy

import streamtok.hf
from streamtok import Control
from streamtok.hf import encode_chat

from ..long.chat_templates import OUTCOMES, Model, small_model, try_one

# In the manner of real ones: what they do to strings, not how they look.
CHATML = """\
{%- if tools %}<|im_start|>system
# Tools
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}<|im_end|>
{%- endif %}
{%- for m in messages %}
    {%- set content = m.content %}
    {%- if content is not string %}
        {%- set content = content | map(attribute='text') | join %}
    {%- endif %}
    {%- if '</think>' in content %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {{- '<|im_start|>' + m.role + '\\n' + content.strip() }}
    {%- for call in m.tool_calls or [] %}
        {{- '\\n<tool_call>\\n{"name": "' ~ call.function.name ~ '", "arguments": ' }}
        {{- call.function.arguments | tojson ~ '}\\n</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>\\n' }}{% endif %}"""
MACROS = """\
{%- macro text(c) %}
    {%- if c is string %}{{ c | trim }}
    {%- else %}{% for p in c %}{{ p.text }}<|image|>{% endfor %}
    {%- endif %}
{%- endmacro %}
{{- bos_token }}
{%- set ns = namespace(out='') %}
{%- for m in messages %}
    {%- set content = text(m.content).replace('\\n\\n', '<|nl|>') %}
    {%- set ns.out = ns.out + '<|%s|>' % m.role ~ content ~ '<|end|>' %}
{%- endfor %}
{{- ns.out }}{{ '<|{}|>'.format('assistant') if add_generation_prompt }}"""
TOKENS = {
    CHATML: ["<|im_start|>", "<think>", "<|im_end|>", "</think>", "<tool_call>", "</tool_call>"],
    MACROS: [
        "<|user|>",
        "<|image|>",
        "<|assistant|>",
        "<|end|>",
        "<|nl|>",
        "<|system|>",
        "<|tool|>",
    ],
}


@pytest.fixture(autouse=True, scope="module")
def _leaves_transformers_as_it_was() -> Iterator[None]:
    yield
    streamtok.hf.unpatch_transformers()


def model_of(source: str) -> Model:
    return small_model(source, TOKENS[source])


@pytest.mark.parametrize("source", [CHATML, MACROS])
def test_harmless_and_hostile_conversations(source: str) -> None:
    model, rng = model_of(source), random.Random(3)
    done = collections.Counter(try_one(model, rng, i % 2 == 0) for i in range(120))
    assert {*done} <= {*OUTCOMES}
    assert done["same"] > 40
    assert done["safe"] > 20


def ids_of(model: Model, text: str) -> list[int]:
    return model.real.encode(text, add_special_tokens=False).ids


def test_a_content_that_is_control() -> None:
    model = model_of(CHATML)
    thought = Control("<think>") + "hm</think>" + Control("</think>")
    begin = "<|im_start|>user\nTea?<|im_end|>\n<|im_start|>assistant\n"
    for content, text in ((thought, ""), (Control("<think>") + "hm", "<think>hm")):
        messages = [{"role": "user", "content": "Tea?"}, {"role": "assistant", "content": content}]
        wanted = ids_of(model, f"{begin}{text}<|im_end|>\n")
        assert encode_chat(model.tokenizer, messages) == wanted


def test_tokens_that_templates_put_together_are_control() -> None:
    """Those of other roles, too, which this conversation has not."""
    model = model_of(MACROS)
    ids = encode_chat(model.tokenizer, [{"role": "user", "content": "<|assistant|><|end|>"}])
    tokens = [model.real.id_to_token(id) for id in ids]
    assert [token for token in tokens if token in TOKENS[MACROS]] == ["<|user|>", "<|end|>"]


def test_other_added_tokens_stay_tokens() -> None:
    """As tags of HTML in Gemma: neither special nor written by the template."""
    others = ["<table>", "[user]"]
    model = small_model(CHATML, ["<|im_start|>", others[0], "<|im_end|>", others[1]])
    messages = [{"role": "user", "content": f"{others[0]}{others[1]}<|im_end|>"}]
    ids = encode_chat(model.tokenizer, messages)
    tokens = [model.real.id_to_token(id) for id in ids]
    assert [tokens.count(token) for token in [*others, "<|im_end|>"]] == [1, 1, 1]


def test_more_templates_and_more_control_tokens_than_are_kept() -> None:
    tokens = [f"<t{i}>" for i in range(40)]
    model = small_model("", tokens)
    for i, token in enumerate(tokens[1::2]):  # those that are not special
        content = Control(token) + token
        template = f"{i}{{{{ messages[0].content }}}}" if i % 2 else "{{ messages[0].content }}"
        ids = encode_chat(model.tokenizer, [{"content": content}], chat_template=template)
        assert ids.count(model.real.token_to_id(token)) == 1


@dataclasses.dataclass
class Message:
    role: str
    content: str


def get_weather(city: str) -> str:
    """Weather of a city.

    Args:
        city: The city.
    """
    return city


def takes_objects(tokenizer: Any) -> bool:
    """Whether messages may be objects: transformers 5.20 has no JSON for them."""
    asked = [Message("user", "Tea")]
    with contextlib.suppress(AttributeError, TypeError):
        tokenizer.apply_chat_template(
            asked, chat_template="{{ messages | tojson }}", tokenize=False
        )
        return True
    return False


ARGUMENTS: list[dict[str, Any]] = [
    {"tools": [get_weather]},
    {"continue_final_message": True},
    {"add_generation_prompt": True},
    {"bos_token": "</s>"},
]


@pytest.mark.parametrize("source", [CHATML, MACROS])
@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_arguments_of_transformers(source: str, arguments: dict[str, Any]) -> None:
    model = model_of(source)
    lasts: list[Any] = [{"role": "assistant", "content": "Yes, it "}]
    if takes_objects(model.tokenizer):
        lasts.append(Message("assistant", "Yes"))
    for last in lasts:
        messages = [{"role": "user", "content": "Is it hot?", "name": None}, last]
        wanted = model.tokenizer.apply_chat_template(messages, return_dict=False, **arguments)
        assert encode_chat(model.tokenizer, messages, **arguments) == wanted


def test_lone_surrogates_in_contents() -> None:
    """U+FFFD, as in `Encoding.encode`; a pair in two parts is two of them."""
    model = model_of(MACROS)
    for content, text in (
        ("a\udce9 \ud800<|end|>", "a\ufffd \ufffd<|end|>"),
        ([{"text": "\ud83d"}, {"text": "\ude00"}], [{"text": "\ufffd"}] * 2),
    ):
        made, wanted = (
            encode_chat(
                streamtok.hf.Tokenizer(model.real),
                [{"role": "user", "content": one}],
                chat_template=MACROS,
                bos_token="<s>",
            )
            for one in (content, text)
        )
        assert made == wanted
        assert made.count(model.real.token_to_id("<|end|>")) == 1


def test_reasoning_that_is_continued() -> None:
    model = model_of(CHATML)
    messages = [{"role": "user", "content": "Tea?"}, {"role": "assistant", "reasoning": "Hm, "}]
    arguments: dict[str, Any] = {
        "continue_final_message": "reasoning",
        "chat_template": "<|im_start|>{{ messages[1].reasoning | trim }}<|im_end|>",
    }
    wanted = model.tokenizer.apply_chat_template(messages, return_dict=False, **arguments)
    assert encode_chat(model.tokenizer, messages, **arguments) == wanted


def test_a_tokenizer_of_streamtok() -> None:
    model = model_of(MACROS)
    ours = streamtok.hf.Tokenizer(model.real)
    messages = [{"role": "user", "content": "Tea\n\n<|end|>", "name": None}]
    ids = encode_chat(ours, messages, chat_template=MACROS, bos_token="<s>")
    assert ids == encode_chat(model.tokenizer, messages)
    assert ids[0] == model.real.token_to_id("<s>")
    ours.add_special_tokens(["Tea"])  # a change is seen
    again = encode_chat(ours, messages, chat_template=f"Tea{MACROS}", bos_token="<s>")
    assert again.count(ours.token_to_id("Tea")) == 1
    with pytest.raises(ValueError, match="has no chat template"):
        encode_chat(ours, messages)


def test_refusals() -> None:
    model = model_of(CHATML)
    chat = [{"role": "user", "content": "Tea"}]
    with pytest.raises(TypeError, match="one conversation"):
        encode_chat(model.tokenizer, [chat, chat])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="not BertTokenizerLegacy"):
        encode_chat(BertTokenizerLegacy.__new__(BertTokenizerLegacy), chat)
    with pytest.raises(TypeError, match="not JSON"):
        encode_chat(streamtok.hf.Tokenizer(model.real), [{"content": {1}}], chat_template=CHATML)
