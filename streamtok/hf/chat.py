"""encode_chat: an `apply_chat_template` in which no content can write a control token."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..formats.marked_text import with_prompts
from ..prompts import Control, Prompt
from .backend import Tokenizer
from .patching import accelerate

__all__ = ["encode_chat"]

_DATA = "{{ [messages, tools, documents] | tojson }}"


def encode_chat(
    tokenizer: Any,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Any] | None = None,
    documents: Sequence[Mapping[str, Any]] | None = None,
    chat_template: str | None = None,
    add_generation_prompt: bool = False,
    continue_final_message: bool | str = False,
    **variables: Any,
) -> list[int]:
    """list[int]: the ids of a conversation, by a chat template that treats all contents as text.

    The arguments are those of transformers' `apply_chat_template`, and so are the ids, with one
    exception: where a content, a name, a tool or a variable contains the text of a control token,
    this is plain text and does not end a turn. Control text is what the template itself writes,
    including the usual names of roles and the variables named after tokens, such as `bos_token`. A
    `streamtok.Control` or `Prompt` in place of a str keeps its control tokens, for example the
    model's own `<think>`.

    tokenizer: a fast tokenizer of transformers, which gets streamtok's engine as `accelerate` gives
    it; or a `streamtok.hf.Tokenizer`, together with `chat_template` and the variables that the
    template needs. Raises ValueError if the engine is not streamtok's (see `Tokenizer.reason`) or
    the template's text cannot be told from contents, UnsupportedPromptError if the encoding does
    not support prompts, and jinja2's errors.
    """
    if not all(isinstance(message, Mapping) or hasattr(message, "role") for message in messages):
        raise TypeError("encode_chat takes one conversation: a list of messages, not of lists")
    data = [[*messages], tools, documents]
    options: dict[str, Any] = {
        "add_generation_prompt": add_generation_prompt,
        "continue_final_message": continue_final_message,
    }
    variables = _as_json(variables, json.dumps)
    expected = None
    if type(tokenizer) is Tokenizer:
        if chat_template is None:
            raise ValueError("a streamtok.hf.Tokenizer has no chat template: give chat_template")
        backend = tokenizer
        data = _as_json(data, json.dumps)
    elif hasattr(tokenizer, "backend_tokenizer"):
        backend = accelerate(tokenizer).backend_tokenizer
        chat_template = tokenizer.get_chat_template(chat_template, tools)

        def render(data: Any, template: Any = _DATA, **settings: Any) -> str:
            given = {**dict(zip(("tools", "documents"), data[1:], strict=True)), **settings}
            text: str = tokenizer.apply_chat_template(
                data[0], chat_template=template, tokenize=False, **given
            )
            return text

        settings = options | with_prompts(variables, str)
        expected = render(with_prompts(data, str), chat_template, **settings)
        # The data as a template sees it: functions given as tools, and objects given as messages,
        # become JSON.
        data = _as_json(data, render)
        variables = tokenizer.special_tokens_map | variables
    else:
        kind = type(tokenizer).__name__
        raise TypeError(f"encode_chat takes a fast tokenizer of transformers, not {kind}")
    compiled = backend._now().compiled
    if compiled is None:
        raise ValueError(f"encode_chat needs streamtok's engine: {backend.reason}")
    messages, tools, documents = data
    for name, value in variables.items():
        if name.endswith("_token") and isinstance(value, str):
            variables[name] = Control(value)
    template = compiled.chat_template(chat_template)
    variables |= {"tools": tools, "documents": documents}
    return template.encode(template.prompt(messages, variables, expected=expected, **options))


def _as_json(value: Any, write: Callable[[Any], str]) -> Any:
    """The value, written as JSON by `write` and read again; Prompts are kept."""
    prompts: list[Prompt] = []
    name = secrets.token_hex(16)  # which no content can contain

    def number(prompt: Prompt) -> dict[str, int]:
        prompts.append(prompt)
        return {name: len(prompts) - 1}

    text = write(with_prompts(value, number))
    return json.loads(
        text, object_hook=lambda found: prompts[found[name]] if name in found else found
    )
