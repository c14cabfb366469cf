"""The tab Text: texts that the page edits, each in an `enc.document`.

The page sends edits and the range of characters that it shows. The answer has the counts and the
tokens of that range. It costs what the edit costs, whatever the size of the text. Offsets in
questions are characters (code points); offsets in answers are UTF-16, as JavaScript counts.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from ..answers.document import Document
from ..encoding import Encoding
from ..views.tokens import describe_ids
from .chat import chat_template
from .questions import Answer, Question, Refused

__all__ = ["MAX_TEXT", "EditedTexts"]

MAX_TEXT = 8 << 20  # characters of one text
MAX_TEXTS = 16  # texts that are kept; the least recently used one is dropped
MAX_EDITS = 1000  # of one question
MAX_SHOWN = 1 << 16  # characters whose tokens are asked for at once
MAX_IDS = 1 << 20  # ids that are copied at once
_FIRST = 2000  # characters whose ids are in each answer


class EditedTexts:
    """The texts that pages edit at the moment."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, _Text] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, question: Question) -> Answer:
        """Begin with a text: {encoding, special, text, view}. The answer adds {document}."""
        text = _Text(
            question.encoding(), question.specials(), question.text("text", limit=MAX_TEXT)
        )
        name = secrets.token_urlsafe(12)
        with self._lock:
            self._texts[name] = text
            while len(self._texts) > MAX_TEXTS:
                self._texts.popitem(last=False)
        return {"document": name, **text.answer(*_range(question, text.size))}

    def edit(self, question: Question) -> Answer:
        """Edit a text: {document, edits: [[start, stop, text], ...], size, view: [start, stop]}.

        size: characters after the edits. Page and server differ if it is not that of the document.
        """
        edits = [_edit(one) for one in question.values("edits", MAX_EDITS)]
        size = question.number("size", 0, MAX_TEXT)
        text = self._text(question)
        with text.lock:
            for edit in edits:
                text.replace(*edit)
            if text.size != size:
                raise Refused(f"the text has {text.size} characters here, not {size}", 409)
            return text.answer(*_range(question, text.size))

    def ids(self, question: Question) -> Answer:
        """All ids of a text: {document} -> {ids}."""
        text = self._text(question)
        with text.lock:
            return {"ids": text.ids()}

    def _text(self, question: Question) -> _Text:
        name = question.text("document", 100)
        with self._lock:
            text = self._texts.get(name)
            if text is None:
                raise Refused("this text is not kept any more", 409)
            self._texts.move_to_end(name)
            return text


class _Text:
    """One text. It has no ids while it has a refused special token."""

    def __init__(self, encoding: Encoding, settings: dict[str, Any], text: str) -> None:
        self.lock = threading.Lock()
        self._encoding = encoding
        self._settings = settings
        self._refused = ""  # the reason for having no ids
        self._plain = text  # the text, while there are none
        self._document: Document | None = None
        self._try()

    @property
    def size(self) -> int:
        """int: characters."""
        return len(self._plain) if self._document is None else self._document.n_characters

    def replace(self, start: int, stop: int, text: str) -> None:
        """As `Document.replace`, except for refused special tokens."""
        if not 0 <= start <= stop <= self.size:
            raise Refused(f"there is no {start}:{stop} in a text of {self.size} characters", 409)
        if self.size - (stop - start) + len(text) > MAX_TEXT:
            raise Refused(f"a text may have at most {MAX_TEXT:,} characters", 413)
        if self._document is not None:
            try:
                self._document.replace(start, stop, text)
                return
            except ValueError:
                self._plain = self._document.text
                self._document = None
        self._plain = self._plain[:start] + text + self._plain[stop:]
        self._try()

    def _try(self) -> None:
        try:
            self._document = self._encoding.document(self._plain, **self._settings)
        except ValueError as error:
            self._refused = str(error).partition("\n")[0]
            return
        self._plain = self._refused = ""

    def ids(self) -> list[int]:
        """All ids. Raises Refused if there are none, or too many."""
        if self._document is None:
            raise Refused(self._refused)
        if len(self._document) > MAX_IDS:
            raise Refused(f"more than {MAX_IDS:,} ids: streamtok encode writes them to a file", 413)
        return self._document.ids

    def answer(self, start: int, stop: int) -> Answer:
        """The counts, and the tokens that touch the characters start:stop."""
        document = self._document
        if document is None:
            return {"refused": self._refused, "characters": self.size}
        part = document.around(start, stop)
        ids, spans = self._encoding.encode_with_offsets(part.text, "utf16", **self._settings)
        begin = _utf16(part.text[: start - part.start])
        end = begin + _utf16(part.text[start - part.start : stop - part.start])
        touched = np.flatnonzero((spans[:, 1] > begin) & (spans[:, 0] < end))
        spans = spans[touched] - begin
        return {
            "count": len(document),
            "characters": document.n_characters,
            "bytes": document.n_bytes,
            "ids": self._encoding.encode(
                document.around(0, min(self.size, _FIRST)).text, **self._settings
            ),
            "chat": chat_template(self._encoding.special_tokens_set),
            "first": part.first + int(touched[0]) if len(touched) else 0,
            "tokens": [
                [*span, token.id, token.shown, token.bytes.hex(), token.rank, token.is_special]
                for span, token in zip(
                    spans.tolist(), describe_ids(self._encoding, ids[touched]), strict=True
                )
            ],
        }


def _utf16(text: str) -> int:
    """How many units the text has in UTF-16."""
    return len(text.encode("utf-16-le", "surrogatepass")) >> 1


def _edit(value: object) -> tuple[int, int, str]:
    if isinstance(value, list) and [type(one) for one in value] == [int, int, str]:
        return value[0], value[1], value[2]
    raise Refused("an edit must be [start, stop, text]")


def _range(question: Question, size: int) -> tuple[int, int]:
    """The characters that are shown, within the text."""
    view = question.values("view", 2)
    if [type(one) for one in view] != [int, int]:
        raise Refused("view must be [start, stop]")
    start = min(max(view[0], 0), size)
    return start, min(max(view[1], start), size, start + MAX_SHOWN)
