"""Which ids of a conversation are the assistant's: transformers' where templates tell it."""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np
import pytest

from streamtok.formats.chat_template import ChatTemplate

from ..long.chat_templates import HARMLESS, Model, hostile, small_model
from .test_encode_chat import CHATML, MACROS, TOKENS

GENERATION = """\
{{- bos_token }}
{%- for m in messages %}
    {{- '<|im_start|>' + m.role + '\\n' }}
    {%- if m.role == 'assistant' %}
        {%- generation %}
            {%- if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}
            {{- m.content.strip() }}
            {%- for call in m.tool_calls or [] %}<tool_call>
                {{- call | tojson | indent(1) }}
            {%- endfor %}
            {{- '<|im_end|>' }}
        {%- endgeneration %}
    {%- else %}{{ m.content }}<|im_end|>
    {%- endif %}
    {{- '\\n' }}
{%- endfor %}"""


@functools.cache
def generation() -> Model:
    return small_model(GENERATION, TOKENS[CHATML])


def masked(model: Model, messages: list[dict[str, Any]]) -> tuple[list[int], list[int]]:
    conversation = model.template.conversation(messages, {})
    ids, mask = model.template.encode_with_mask(conversation)
    assert ids.dtype == np.uint32
    assert mask.dtype == np.uint8
    assert len(ids) == len(mask)
    return ids.tolist(), mask.tolist()


def said(model: Model, messages: list[dict[str, Any]]) -> list[str]:
    """The text of each run of ids that are the assistant's."""
    runs: list[list[int]] = [[]]
    for id, is_said in zip(*masked(model, messages), strict=True):
        if is_said:
            runs[-1].append(id)
        elif runs[-1]:
            runs.append([])
    return [model.real.decode(ids, skip_special_tokens=False) for ids in runs if ids]


def conversation(rng: random.Random, words: list[str]) -> list[dict[str, Any]]:
    def text() -> str:
        return " ".join(rng.choices(words, k=rng.randrange(4)))

    messages: list[dict[str, Any]] = []
    for _ in range(rng.randrange(1, 4)):
        messages.append({"role": rng.choice(["user", "system", "tool"]), "content": text()})
        answer: dict[str, Any] = {"role": "assistant", "content": text()}
        if rng.random() < 0.3:
            answer["reasoning_content"] = text()
        if rng.random() < 0.3:
            answer["tool_calls"] = [{"name": text(), "arguments": {"text": text()}}]
        messages.append(answer)
    return messages


def test_the_masks_of_transformers_where_the_template_has_generation_blocks() -> None:
    rng = random.Random(1)
    for _ in range(100):
        messages = conversation(rng, HARMLESS)
        wanted = generation().tokenizer.apply_chat_template(
            messages, return_dict=True, return_assistant_tokens_mask=True
        )
        assert masked(generation(), messages) == (wanted["input_ids"], wanted["assistant_masks"])


@pytest.mark.parametrize("source", [GENERATION, CHATML, MACROS])
def test_no_content_moves_the_mask(source: str) -> None:
    """Half tokens, whole ones and blocks in contents change no role, and end nothing."""
    tokens = TOKENS.get(source, TOKENS[CHATML])
    model, rng = small_model(source, tokens), random.Random(2)
    for _ in range(60):
        words = [*hostile(tokens, rng), "{% generation %}", "{% endgeneration %}"]
        messages = [
            {"role": ["user", "assistant"][i % 2], "content": f"x{i}{rng.choice(words)}y{i}"}
            for i in range(rng.randrange(2, 7))
        ]
        runs = said(model, messages)
        assert len(runs) == len(messages) // 2
        for run, message in zip(runs, messages[1::2], strict=True):
            content = message["content"]
            is_thought = source == CHATML and "</think>" in content
            begin = content.split("</think>")[-1] if is_thought else content
            begin = begin.replace("\n\n", "<|nl|>") if source == MACROS else begin
            assert run.startswith(begin)
            end = run.removeprefix(begin)
            assert end == ("<|end|>" if source == MACROS else "<|im_end|>")


def test_contents_and_the_token_that_ends_them() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Yes."},
        {"role": "assistant", "content": [{"type": "text", "text": " Yes."}, {"text": "\n"}]},
        {"role": "user", "content": "Yes."},
        {"role": "assistant", "content": "Yes.", "name": "Yes."},
    ]
    assert said(small_model(CHATML, TOKENS[CHATML]), messages) == ["Yes.<|im_end|>"] * 2
    spaced = "{% for m in messages %}{{ m.content }} \n</s>{{ m.role }}{% endfor %}"
    messages[1]["content"] = "No "
    assert said(small_model(spaced, ["</s>"]), messages) == ["No  \n</s>", "Yes. \n</s>"]
    open_ended = "{% for m in messages %}{{ m.content }}; {% endfor %}"
    # Tokens that the template's blanks are in, too, count. Which are, training decides.
    found = said(small_model(open_ended, ["</s>"]), messages)
    assert [run.strip() for run in found] == ["No", "Yes."]


def test_a_template_in_which_contents_are_lost() -> None:
    source = "{% for m in messages %}{{ '%s</s>' % (m.content,) }}{% endfor %}"
    template = ChatTemplate(source, generation().encoding)
    template.conversation([{"role": "user", "content": "Tea"}], {})
    with pytest.raises(ValueError, match=r"expected \{% generation %\}"):
        template.conversation([{"role": "assistant", "content": "Tea"}], {})
