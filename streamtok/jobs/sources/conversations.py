"""Conversations in JSON lines, rendered by the chat template of a model.

A line has a list of messages in one of its fields, and optionally tools in the field "tools".
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from ..._core.encode import text_bytes
from ...formats.chat_template import ChatTemplate, Conversation
from ...formats.model_folder import read_chat_template
from .records import BadLine

if TYPE_CHECKING:
    from ...encoding import Encoding


class Conversations:
    """The chat template of a model's folder. digest: that of everything that affects its output."""

    def __init__(self, folder: str, encoding: Encoding):
        """Raises OSError, and a VocabularyError if the folder has no valid template."""
        self.template = ChatTemplate.from_folder(folder, encoding)
        self.digest = hashlib.sha256(repr(read_chat_template(folder)).encode()).hexdigest()

    def read(self, messages: Any, row: Any) -> Conversation:
        """Make a conversation from the field's value and its parsed line. Raises BadLine."""
        if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
            raise BadLine("the field does not hold a list of messages")
        tools = row.get("tools") if isinstance(row, dict) else None
        try:
            return self.template.conversation(_repaired(messages), {"tools": _repaired(tools)})
        except MemoryError:
            raise
        except Exception as error:  # a template is a program: it may raise anything
            why = str(error).partition("\n")[0] or type(error).__name__
            raise BadLine("the chat template refuses the messages", why) from None


def _repaired(value: Any) -> Any:
    """Replace lone surrogates in a JSON value with U+FFFD."""
    if isinstance(value, str):
        return value if value.isascii() else text_bytes(value, "replace").decode()
    if isinstance(value, list):
        return [_repaired(one) for one in value]
    if isinstance(value, dict):
        return {_repaired(name): _repaired(one) for name, one in value.items()}
    return value
