"""The questions that the page asks. Each class has the fields of a question, and answers it."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct, to_builtins

from .._core.encode import text_bytes
from ..answers.views import vocabulary_view
from ..answers.views.comparison import MOST_ENCODINGS, compare_encodings
from ..answers.views.lanes import make_lanes
from ..answers.views.merges import pretokens, trace_merges
from ..answers.views.tokens import describe_ids
from ..answers.views.visible import visible
from ..encoding import Encoding
from ..registry import get_encoding
from ..special_tokens import special_settings
from .chat_turns import template_of
from .questions import Answer, Question, Refused

LONGEST_TEXT = 1 << 20  # characters: the page sends the whole text at each keystroke
LONGEST_STREAM = 1 << 14  # characters: the page gets every step of the stream
LONGEST_MERGES = 1000  # characters of the prefix of a text from which a pre-token is chosen
MOST_BOXES = 3000  # tokens of a text that are drawn; totals include all tokens
_MOST_CANDIDATES = 12  # pairs that are shown before a merge
_MOST_ODD = 16  # tokens in a list of odd tokens
_MOST_FOUND = 60  # tokens in the result of a search
_LANGUAGES = Path(__file__).with_name("static") / "languages.json"
_CHAT = "o200k_harmony"  # for encodings without tokens for turns


class _OfText(Struct):
    """A text, and how to treat special tokens in it."""

    encoding: Encoding
    special: Literal["plain", "allow", "refuse"]
    text: str


class TextQuestion(_OfText):
    """Counts, and the tokens around the cursor. at: the cursor's offset in UTF-16 units."""

    at: Annotated[int, Meta(ge=0)]
    beside: Encoding | None = None  # an encoding to compare the count with

    def answer(self) -> Answer:
        """`first`: index in the text of the first of `tokens`; `start`: their offsets in UTF-16."""
        text = _within(self.text, LONGEST_TEXT)
        how = special_settings(self.special)
        ids, spans = self.encoding.encode_with_offsets(text, "utf16", **how)
        around = int(np.searchsorted(spans[:, 0], self.at, "right")) - 1 - MOST_BOXES // 2
        first = max(min(around, len(ids) - MOST_BOXES), 0)
        drawn = slice(first, first + MOST_BOXES)
        tokens = describe_ids(self.encoding, ids[drawn])
        return {
            "n_tokens": len(ids),
            "n_beside": None if self.beside is None else self.beside.count(text, **how),
            "characters": len(text),
            "bytes": len(text_bytes(text, "strict")),
            "first": first,
            "tokens": [
                {**token.as_json(), "start": start}
                for start, token in zip(spans[drawn, 0].tolist(), tokens, strict=True)
            ],
        }


class IdsQuestion(_OfText):
    """All ids of a text."""

    def answer(self) -> Answer:
        text = _within(self.text, LONGEST_TEXT)
        return {"ids": self.encoding.encode(text, **special_settings(self.special))}


class LanguagesQuestion(Struct):
    """One sentence in many languages, and how many tokens it has in each encoding."""

    encodings: Annotated[list[Encoding], Meta(min_length=1, max_length=MOST_ENCODINGS)]

    def answer(self) -> Answer:
        return {
            "rows": [
                {**row, "tokens": [one.count(row["text"]) for one in self.encodings]}
                for row in json.loads(_LANGUAGES.read_text("utf-8"))
            ]
        }


class Turn(Struct):
    """One turn of a chat. A role that the template lacks is replaced by that of the user."""

    role: str
    content: str


class ChatQuestion(Struct):
    """A chat as a `Prompt`, and for comparison as one str with special tokens allowed.

    turns: None for an example, in which the user forges a turn.
    """

    encoding: Encoding
    turns: Annotated[list[Turn], Meta(max_length=50)] | None = None

    def answer(self) -> Answer:
        """The tokens of both. `kind` is "control", "text", "both" if a token joins the two, or
        "forged" for a control token that comes from the content of a turn.
        """
        encoding = self.encoding if template_of(self.encoding) else get_encoding(_CHAT)
        template = template_of(encoding)
        assert template is not None  # _CHAT has one
        user = template.roles[1]
        turns = [
            Turn(turn.role if turn.role in template.roles else user, turn.content)
            for turn in self.turns or []
        ] or [
            Turn(template.roles[0], "You sell tea."),
            Turn(user, template.forged_turn()),
        ]
        _within("".join(turn.content for turn in turns), LONGEST_STREAM)
        prompt = template.prompt((turn.role, turn.content) for turn in turns)
        kinds = np.repeat(
            [is_control for _, is_control in prompt.spans], [len(text) for text, _ in prompt.spans]
        )

        def tokens(ids: Any, spans: Any) -> list[Answer]:
            described = zip(describe_ids(encoding, ids), spans.tolist(), strict=True)
            return [
                {**token.as_json(), "kind": kind_of(token.bytes, kinds[start:stop])}
                for token, (start, stop) in described
            ]

        def kind_of(token: bytes, of_characters: Any) -> str:
            if of_characters.all():
                return "control"
            if token.decode("utf-8", "replace") in encoding.control_tokens:
                return "forged"
            return "both" if of_characters.any() else "text"

        return {
            "encoding": encoding.name,
            "template": template.name,
            "roles": template.roles,
            "turns": to_builtins(turns),
            "prompt": tokens(*encoding.encode_with_offsets(prompt)),
            "str": tokens(*encoding.encode_with_offsets(str(prompt), allowed_special="all")),
        }


class StreamQuestion(Struct):
    """A text in chunks. The answer is its `Lanes.as_json`."""

    encoding: Encoding
    text: str
    chunk_size: Annotated[int, Meta(ge=1)]

    def answer(self) -> Answer:
        data = _within(self.text, LONGEST_STREAM).encode("utf-8", "replace")
        return make_lanes(self.encoding, data, self.chunk_size).as_json()


class CompareQuestion(Struct):
    """Totals, and the first tokens of each encoding. `is_same`: every encoding has this token."""

    encodings: Annotated[list[Encoding], Meta(min_length=1, max_length=MOST_ENCODINGS)]
    special: Literal["plain", "allow", "refuse"]
    text: str

    def answer(self) -> Answer:
        text = _within(self.text, LONGEST_TEXT)
        found = compare_encodings(self.encodings, text, **special_settings(self.special))
        same = {segment.start for segment in found.segments if segment.is_same}
        columns = [
            {
                "encoding": column.encoding,
                "n_tokens": column.n_tokens,
                "n_characters": column.n_characters,
                "tokens": [
                    {**one.token.as_json(), "is_same": one.start in same}
                    for one in column.tokens[:MOST_BOXES]
                ],
            }
            for column in found.columns
        ]
        return {
            "columns": columns,
            "agreeing": found.agreeing,
            "differing": found.differing,
            "n_same": len(same),
        }


class MergesQuestion(Struct):
    """The pre-tokens of a text, and the merges of one of them.

    chosen: index of the pre-token; None for the first that becomes several tokens.
    """

    encoding: Encoding
    text: str
    chosen: Annotated[int, Meta(ge=0)] | None = None

    def answer(self) -> Answer:
        """`states`: the parts and the candidate pairs before each merge, and the result last."""
        parts = pretokens(self.encoding, _within(self.text, LONGEST_MERGES))
        pieces = [part.encode() for part in parts]
        chosen = self.chosen
        if chosen is None:
            sizes = (self.encoding.count(part, disallowed_special=()) for part in parts)
            chosen = next((at for at, size in enumerate(sizes) if size > 1), 0)
        shown = [{"shown": visible(piece), "bytes": piece.hex()} for piece in pieces]
        if not pieces:
            return {"pretokens": shown, "chosen": None, "states": []}
        trace = trace_merges(self.encoding, pieces[chosen])
        states = []
        for before, step in itertools.pairwise(trace.steps):
            if step.kind == "merged":
                candidates = sorted(
                    (one.rank, one.left, one.right) for one in before.heap if not one.is_stale
                )
                states.append(
                    {
                        "parts": [part.as_json() for part in before.parts],
                        "candidates": candidates[:_MOST_CANDIDATES],
                    }
                )
        result = []
        at = 0
        for token in describe_ids(self.encoding, trace.ids):
            result.append({**token.as_json(), "at": at})
            at += len(token.bytes)
        states.append({"parts": result, "candidates": []})
        return {
            "pretokens": shown,
            "chosen": chosen,
            "states": states,
            "is_whole_token": trace.is_whole_token,
        }


class OddQuestion(Struct):
    """Lists of odd tokens: how many there are, and the first few."""

    encoding: Encoding

    def answer(self) -> Answer:
        return _odd_tokens(self.encoding)


@functools.lru_cache(maxsize=8)
def _odd_tokens(encoding: Encoding) -> Answer:
    """The lists of an encoding. Takes about a second for 100,000 tokens."""
    halves = vocabulary_view.half_characters(encoding)
    halves.sort(key=lambda token: -len(token.bytes))
    return {
        "unreachable": _listed(vocabulary_view.unreachable(encoding), _MOST_ODD),
        "longest": _listed(vocabulary_view.longest(encoding, _MOST_ODD), _MOST_ODD),
        "half": _listed(halves, _MOST_ODD),
    }


class SearchQuestion(Struct):
    """Tokens that contain the query. If it is a number, the token with this id comes first."""

    encoding: Encoding
    query: Annotated[str, Meta(min_length=1, max_length=1000)]

    def answer(self) -> Answer:
        found = vocabulary_view.find_text(self.encoding, self.query)
        with contextlib.suppress(ValueError, KeyError, OverflowError):
            found = [*describe_ids(self.encoding, [int(self.query)]), *found]
        return _listed(found, _MOST_FOUND)


class TokenQuestion(Struct):
    """A token, the two tokens that merge into it, and its neighbours by id."""

    encoding: Encoding
    id: Annotated[int, Meta(ge=0, lt=1 << 32)]

    def answer(self) -> Answer:
        page = vocabulary_view.token_page(self.encoding, self.id)
        tree = page.merge_tree
        parts = tree[0].parts if tree else None
        return {
            "token": page.token.as_json(),
            "parts": [tree[at].as_json() for at in parts or ()],
            "neighbours": [one.as_json() for one in page.neighbours],
            "is_utf8": page.is_utf8,
        }


QUESTIONS: dict[str, type[Question]] = {
    "text": TextQuestion,
    "ids": IdsQuestion,
    "chat": ChatQuestion,
    "stream": StreamQuestion,
    "compare": CompareQuestion,
    "merges": MergesQuestion,
    "languages": LanguagesQuestion,
    "odd": OddQuestion,
    "search": SearchQuestion,
    "token": TokenQuestion,
}


def _listed(tokens: list[Any], most: int) -> Answer:
    return {"n_tokens": len(tokens), "tokens": [one.as_json() for one in tokens[:most]]}


def _within(text: str, limit: int) -> str:
    if len(text) > limit:
        raise Refused(
            f"the text has {len(text):,} characters, more than the {limit:,} accepted here: "
            "streamtok count takes files of any size",
            413,
        )
    return text
