"""Answers for the tabs Text, Stream, Compare, Merges, Languages and Vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.encode import repaired, text_bytes
from ..answers.views.comparison import MOST_ENCODINGS, compare_encodings
from ..answers.views.lanes import make_lanes
from ..answers.views.languages import compare_languages
from ..answers.views.merges import pretokens, trace_merges
from ..answers.views.tokens import Token, describe_ids
from ..answers.views.visible import visible
from ..answers.views.vocabulary_search import find_bytes, find_id, find_text, parse_hex, token_page
from ..encoding import Encoding
from .chat import chat_template
from .questions import Answer, Question, Refused

LONGEST_TEXT = 1 << 20  # characters: the page sends all of them with each key
LONGEST_STREAM = 1 << 14  # characters: each step of the stream is sent to the page
LONGEST_MERGED = 120  # bytes: each step has all of the parts and all of the heap
MOST_BOXES = 3000  # tokens of a text that are drawn; the totals are of all
MOST_IDS = 500  # of a text that are shown; the page asks for all of them to copy them
MOST_PRETOKENS = 1000
MOST_LANGUAGES = 8  # encodings side by side
MOST_FOUND = 200  # tokens that a search finds


class TabAnswers:
    """One method for each question. Each takes a `Question` and raises `Refused` and ValueError."""

    def text(self, question: Question) -> Answer:
        """{encoding, special, text, at} -> counts, the first ids, the tokens around an offset.

        at: the cursor. A token is [start, id, shown, bytes, rank, is_special]; `first` is the
        number of the first one. Offsets are UTF-16, as JavaScript counts.
        """
        encoding, how = question.encoding(), question.specials()
        text = question.text("text", LONGEST_TEXT)
        at = question.number("at", 0, 2 * LONGEST_TEXT)
        ids, spans = encoding.encode_with_offsets(text, "utf16", **how)
        around = int(np.searchsorted(spans[:, 0], at, "right")) - 1 - MOST_BOXES // 2
        first = max(min(around, len(ids) - MOST_BOXES), 0)
        drawn = slice(first, first + MOST_BOXES)
        starts = spans[drawn, 0].tolist()
        tokens = describe_ids(encoding, ids[drawn])
        return {
            "n_tokens": len(ids),
            "ids": ids[:MOST_IDS].tolist(),
            "characters": len(text),
            "bytes": len(text_bytes(text, "strict")),
            "chat": chat_template(encoding.special_tokens_set),
            "first": first,
            "tokens": [
                [start, one.id, one.shown, one.bytes.hex(), one.rank, one.is_special]
                for start, one in zip(starts, tokens, strict=True)
            ],
        }

    def ids(self, question: Question) -> Answer:
        """{encoding, special, text} -> all ids."""
        text = question.text("text", LONGEST_TEXT)
        return {"ids": question.encoding().encode(text, **question.specials())}

    def stream(self, question: Question) -> Answer:
        """{encoding, text, chunk_size} -> `Lanes.as_json`."""
        text = question.text("text", LONGEST_STREAM)
        size = question.number("chunk_size", 1, LONGEST_STREAM)
        data = text.encode("utf-8", "replace")
        return make_lanes(question.encoding(), data, size).as_json()

    def compare(self, question: Question) -> Answer:
        """{encodings, text, special} -> totals, and the first tokens of each encoding.

        A token is [shown, id, bytes, rank, is_special, is_same].
        """
        encodings = question.encodings("encodings", MOST_ENCODINGS)
        text = question.text("text", LONGEST_TEXT)
        found = compare_encodings(encodings, text, **question.specials())
        same = {segment.start for segment in found.segments if segment.is_same}
        columns = []
        for column in found.columns:
            tokens = [
                {**one.token.as_json(), "is_same": one.start in same}
                for one in column.tokens[:MOST_BOXES]
            ]
            columns.append(
                {
                    "encoding": column.encoding,
                    "n_tokens": column.n_tokens,
                    "n_characters": column.n_characters,
                    "n_bytes": column.n_bytes,
                    "tokens": tokens,
                }
            )
        return {
            "columns": columns,
            "agreeing": found.agreeing,
            "differing": found.differing,
            "boundaries": found.boundaries,
            "n_same": len(same),
        }

    def pretokens(self, question: Question) -> Answer:
        """{encoding, special, text} -> the first pre-tokens: [bytes, shown, ids, is_special]."""
        encoding = question.encoding()
        text = question.text("text", LONGEST_STREAM)
        found = _pretokens(encoding, text, question.specials())
        shown = [[data.hex(), visible(data), *more] for data, *more in found[:MOST_PRETOKENS]]
        return {"pretokens": shown}

    def merges(self, question: Question) -> Answer:
        """{encoding, bytes: of a pre-token} -> `MergeTrace.as_json`."""
        data = parse_hex(question.text("bytes", LONGEST_TEXT))
        if len(data) > LONGEST_MERGED:
            raise Refused(
                f"the pre-token has {len(data):,} bytes; Merges follows at most {LONGEST_MERGED}"
            )
        return trace_merges(question.encoding(), data).as_json()

    def languages(self, question: Question) -> Answer:
        """{encodings} -> `LanguageTable.as_json`."""
        encodings = question.encodings("encodings", MOST_LANGUAGES)
        return compare_languages(encodings).as_json()

    def search(self, question: Question) -> Answer:
        """{encoding, by: text | bytes | id, query} -> the tokens that are found."""
        encoding = question.encoding()
        by = question.choice("by", "text", "bytes", "id")
        query = question.text("query", 1000)
        if not query:
            raise Refused("type what to search for")
        tokens: Sequence[Token]
        if by == "text":
            tokens = find_text(encoding, query, MOST_FOUND)
        elif by == "bytes":
            tokens = find_bytes(encoding, parse_hex(query), MOST_FOUND)
        else:
            tokens = [_token(encoding, _id(query))]
        found = [token.as_json() for token in tokens]
        return {"tokens": found, "is_cut": len(found) == MOST_FOUND}

    def token(self, question: Question) -> Answer:
        """{encoding, id} -> `TokenPage.as_json`."""
        encoding = question.encoding()
        id = question.number("id", 0, 2**32 - 1)
        _token(encoding, id)
        return token_page(encoding, id).as_json()


def _pretokens(
    encoding: Encoding, text: str, settings: dict[str, Any]
) -> list[tuple[bytes, list[int], bool]]:
    """The bytes of each pre-token, its ids, and whether it is a special or added token instead.

    Raises Refused where the engine gives other ids, as it changes the text first.
    """
    text = repaired(text, "strict")
    ids, spans = encoding.encode_with_offsets(text, "character", **settings)
    own = encoding.definition.specials.every.values()
    found: list[tuple[bytes, list[int], bool]] = []
    at = 0
    for i in [*np.flatnonzero(np.isin(ids, list(own))).tolist(), None]:
        start, stop = (len(text), len(text)) if i is None else spans[i].tolist()
        for part in pretokens(encoding, text[at:start]):
            data = part.encode()
            found.append((data, encoding.definition.encoder.encode_pretoken(data), False))
        if i is not None:
            found.append((text[start:stop].encode(), [int(ids[i])], True))
        at = stop
    if [id for _, some, _ in found for id in some] != ids.tolist():
        raise Refused(f"{encoding.name} changes the text first; Merges cannot follow it", 422)
    return found


def _token(encoding: Encoding, id: int) -> Token:
    try:
        return find_id(encoding, id)
    except (KeyError, OverflowError):
        raise Refused(f"{encoding.name} has no token with the id {id}", 404) from None


def _id(query: str) -> int:
    text = query.strip()
    if not text.isascii() or not text.isdecimal() or len(text) > 10:
        raise Refused(f"{text[:20]!r} is not an id: type a number in decimal")
    return int(text)
