"""Chat templates: how the special tokens of an encoding mark the turns of a chat."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

_ROLES = ["system", "user", "assistant"]


def _same(open: str, close: str, roles: list[str]) -> dict[str, list[str]]:
    return {role: [open.replace("{role}", role), close] for role in roles}


# Name, and for each role the text before and after a turn. The first whose special tokens an
# encoding has.
_TEMPLATES = [
    ("Phi", _same("<|im_start|>{role}<|im_sep|>", "<|im_end|>", _ROLES)),
    ("ChatML", _same("<|im_start|>{role}\n", "<|im_end|>\n", _ROLES)),
    ("Llama 3", _same("<|start_header_id|>{role}<|end_header_id|>\n\n", "<|eot_id|>", _ROLES)),
    ("Llama 4", _same("<|header_start|>{role}<|header_end|>\n\n", "<|eot|>", _ROLES)),
    ("harmony", _same("<|start|>{role}<|message|>", "<|end|>", [*_ROLES, "developer"])),
    ("Gemma", _same("<start_of_turn>{role}\n", "<end_of_turn>\n", ["user", "model"])),
    (
        "Mistral",
        {
            "system": ["[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"],
            "user": ["[INST]", "[/INST]"],
            "assistant": ["", "</s>"],
        },
    ),
    ("Mistral", {"user": ["[INST]", "[/INST]"], "assistant": ["", "</s>"]}),
]
_SPECIAL = re.compile(r"<.+?>|\[/?[A-Z_]+\]")


def chat_template(special_tokens: Collection[str]) -> dict[str, Any] | None:
    """dict: name, and turns: role to [text before, text after]; None if the tokens fit none.

    >>> chat_template({"<|im_start|>", "<|im_end|>"})["turns"]["user"]
    ['<|im_start|>user\\n', '<|im_end|>\\n']
    """
    for name, turns in _TEMPLATES:
        text = "".join(part for turn in turns.values() for part in turn)
        if all(token in special_tokens for token in _SPECIAL.findall(text)):
            return {"name": name, "turns": turns}
    return None
