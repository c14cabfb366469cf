"""The questions of the page: each is its fields, checked by their types, and its answer."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct

from .._core.encode import text_bytes
from ..answers.views.comparison import MOST_ENCODINGS, compare_encodings
from ..answers.views.lanes import make_lanes
from ..answers.views.tokens import describe_ids
from ..encoding import Encoding
from ..special_tokens import special_settings
from .questions import Answer, Question, Refused

LONGEST_TEXT = 1 << 20  # characters: the page sends all of them with each key
LONGEST_STREAM = 1 << 14  # characters: each step of the stream is sent to the page
MOST_BOXES = 3000  # tokens of a text that are drawn; the totals are of all


class _OfText(Struct):
    """A text, and what its special tokens are."""

    encoding: Encoding
    special: Literal["plain", "allow", "refuse"]
    text: str


class TextQuestion(_OfText):
    """Counts, and the tokens around an offset. at: the cursor, in UTF-16 as JavaScript counts."""

    at: Annotated[int, Meta(ge=0)]

    def answer(self) -> Answer:
        """`first` is the number of the first token; `start` of a token is in UTF-16, too."""
        text = _within(self.text, LONGEST_TEXT)
        how = special_settings(self.special)
        ids, spans = self.encoding.encode_with_offsets(text, "utf16", **how)
        around = int(np.searchsorted(spans[:, 0], self.at, "right")) - 1 - MOST_BOXES // 2
        first = max(min(around, len(ids) - MOST_BOXES), 0)
        drawn = slice(first, first + MOST_BOXES)
        tokens = describe_ids(self.encoding, ids[drawn])
        return {
            "n_tokens": len(ids),
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


class StreamQuestion(Struct):
    """`Lanes.as_json` of a text in chunks."""

    encoding: Encoding
    text: str
    chunk_size: Annotated[int, Meta(ge=1)]

    def answer(self) -> Answer:
        data = _within(self.text, LONGEST_STREAM).encode("utf-8", "replace")
        return make_lanes(self.encoding, data, self.chunk_size).as_json()


class CompareQuestion(Struct):
    """Totals, and the first tokens of each encoding, which say whether all have them."""

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


QUESTIONS: dict[str, type[Question]] = {
    "text": TextQuestion,
    "ids": IdsQuestion,
    "stream": StreamQuestion,
    "compare": CompareQuestion,
}


def _within(text: str, limit: int) -> str:
    if len(text) > limit:
        raise Refused(
            f"the text has {len(text):,} characters, more than the {limit:,} that are taken "
            "here: streamtok count takes files of any size",
            413,
        )
    return text
