"""Conversations of JSON lines, rendered by the chat template of a model.

A line has messages in one of its fields, and perhaps tools beside it. The ids must not depend on
the day on which a run goes on, so templates get no `strftime_now`.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import jinja2

from ..._core.encode import text_bytes
from ...formats.chat_template import ChatTemplate, Conversation
from ...formats.model_folder import read_chat_template
from .records import BadLine

if TYPE_CHECKING:
    from ...encoding import Encoding

_NO_DATE = (
    "it asks for today's date, on which the ids must not depend: write a date into the template"
)


class Conversations:
    """The chat template of a model's folder. digest: of all that it renders by."""

    def __init__(self, folder: str, encoding: Encoding):
        """Raises VocabularyError if the folder has no template, and OSError."""
        self.template = ChatTemplate.from_folder(folder, encoding)
        self.digest = hashlib.sha256(repr(read_chat_template(folder)).encode()).hexdigest()

    def read(self, messages: Any, row: Any) -> Conversation:
        """Conversation: of the value of the field in a line that is parsed. Raises BadLine."""
        if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
            raise BadLine("the field holds no list of messages")
        tools = row.get("tools") if isinstance(row, dict) else None
        variables = {"tools": tools, "strftime_now": jinja2.Undefined(_NO_DATE)}
        try:
            return self.template.conversation(_repaired(messages), _repaired(variables))
        except MemoryError:
            raise
        except Exception as error:  # a template is a program: it may raise anything
            why = str(error).partition("\n")[0] or type(error).__name__
            raise BadLine("the chat template refuses the messages", why) from None


def _repaired(value: Any) -> Any:
    """The same value of JSON, with U+FFFD for each half of a surrogate pair in it."""
    if isinstance(value, str):
        return value if value.isascii() else text_bytes(value, "replace").decode()
    if isinstance(value, list):
        return [_repaired(one) for one in value]
    if isinstance(value, dict):
        return {_repaired(name): _repaired(one) for name, one in value.items()}
    return value
