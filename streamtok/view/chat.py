"""Chat templates: how the special tokens of an encoding mark the turns of a chat."""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["chat_template"]

_ROLES = ["system", "user", "assistant"]
# Name, what opens a turn, what closes it, roles. The first whose special tokens an encoding has.
_TEMPLATES = [
    ("Phi", "<|im_start|>{role}<|im_sep|>", "<|im_end|>", _ROLES),
    ("ChatML", "<|im_start|>{role}\n", "<|im_end|>\n", _ROLES),
    ("Llama 3", "<|start_header_id|>{role}<|end_header_id|>\n\n", "<|eot_id|>", _ROLES),
    ("Llama 4", "<|header_start|>{role}<|header_end|>\n\n", "<|eot|>", _ROLES),
    ("harmony", "<|start|>{role}<|message|>", "<|end|>", [*_ROLES, "developer"]),
    ("Gemma", "<start_of_turn>{role}\n", "<end_of_turn>\n", ["user", "model"]),
]


def chat_template(special_tokens: Collection[str]) -> dict[str, object] | None:
    """dict: name, open (with `{role}`), close and roles; None if the special tokens fit none.

    >>> chat_template({"<|im_start|>", "<|im_end|>"})["close"]
    '<|im_end|>\\n'
    """
    for name, open, close, roles in _TEMPLATES:
        if all(token in special_tokens for token in re.findall("<.+?>", open + close)):
            return {"name": name, "open": open, "close": close, "roles": roles}
    return None
