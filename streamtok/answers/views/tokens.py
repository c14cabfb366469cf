"""The tokens of a text, one by one: id, bytes, rank, and where each came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._core.encode import bytes_of, text_bytes
from ..text_settings import Settings
from .markup import box_html, boxes_html
from .merge_table import merge_table
from .result import Result
from .visible import visible

if TYPE_CHECKING:
    from ..._types import IdArray, Text
    from ...definition import Defined

_MOST_KEPT = 1 << 16  # cached tokens per encoding
_MOST_BOXES = 2000  # tokens drawn, since a notebook keeps its output in its file


@dataclass(frozen=True, slots=True)
class Token(Result):
    """One token of a text."""

    id: int
    bytes: bytes
    shown: str  # every character is visible; see `visible.py`
    rank: int | None  # None for a special token, or an id that is only decoded
    is_special: bool


class PlacedToken(NamedTuple):
    """A token and the span of the text that it came from, in bytes of UTF-8 and in characters.

    In characters, a span covers every character that the token touches.
    """

    token: Token
    start: int
    stop: int
    first_character: int
    last_character: int  # exclusive, as `stop`

    def as_json(self) -> dict[str, Any]:
        """dict: the token's values, `byte_span` and `character_span`."""
        return {
            **self.token.as_json(),
            "byte_span": [self.start, self.stop],
            "character_span": [self.first_character, self.last_character],
        }


@dataclass(frozen=True, slots=True)
class TextTokens(Result):
    """A text's tokens, and its sizes."""

    encoding: str
    tokens: list[PlacedToken]
    n_bytes: int
    n_characters: int

    _also = ("n_tokens", "tokens_per_character", "characters_per_token")

    @property
    def ids(self) -> list[int]:
        """The ids alone."""
        return [one.token.id for one in self.tokens]

    @property
    def n_tokens(self) -> int:
        return len(self.tokens)

    @property
    def tokens_per_character(self) -> float | None:
        """float | None: None for an empty text."""
        return self.n_tokens / self.n_characters if self.n_characters else None

    @property
    def characters_per_token(self) -> float | None:
        """float | None: None if there are no tokens."""
        return self.n_characters / self.n_tokens if self.tokens else None

    def __str__(self) -> str:
        """The tokens as shown, separated by bars, without colours."""
        return "|".join([one.token.shown for one in self.tokens])

    def __repr__(self) -> str:
        return (
            f"<{self.n_tokens} tokens of {self.n_characters} characters in {self.encoding}: "
            f"{self if self.n_tokens <= 12 else '...'}>"
        )

    def _repr_html_(self) -> str:
        """str: HTML for a notebook. All text in it is escaped."""
        each = self.characters_per_token
        about = f"{self.encoding}: {self.n_tokens:,} tokens, {self.n_characters:,} characters"
        about += "" if each is None else f", {each:.2f} characters per token"
        boxes = map(_box, self.tokens[:_MOST_BOXES], range(_MOST_BOXES))
        return boxes_html(about, boxes, self.n_tokens - _MOST_BOXES)


def _box(one: PlacedToken, number: int) -> str:
    token = one.token
    rank = "no rank" if token.rank is None else f"rank {token.rank}"
    rank = "special" if token.is_special else rank
    title = f"id {token.id}, {rank}, bytes {token.bytes.hex(' ')}, at {one.start}"
    box = box_html(token.shown, title, None if token.is_special else number)
    return box + "\n" if token.bytes.endswith(b"\n") else box


def describe_ids(encoding: Defined, ids: IdArray | list[int]) -> Iterator[Token]:
    """Iterator[Token]: one for each id. Raises KeyError for an unknown id."""
    table = merge_table(encoding)
    known = table.described
    for id in ids if isinstance(ids, list) else ids.tolist():
        token = known.get(id)
        if token is None:
            data = encoding.definition.decoder.token_bytes(id)
            is_special = id in encoding.definition.specials.ids
            number = None if is_special else table.number_of.get(id)  # None if only decoded
            rank = None if number is None else table.rank(number)
            token = Token(id, data, visible(data), rank, is_special)
            if len(known) >= _MOST_KEPT:
                known.clear()
            known[id] = token
        yield token


def show_tokens(encoding: Defined, text: Text, **settings: Any) -> TextTokens:
    """TextTokens: every token of the text. settings: as for `Encoding.fits`.

    Raises the errors of `encode_with_offsets`: ValueError for a disallowed special token and, with
    errors="strict", UnicodeDecodeError for bytes that are not UTF-8. Costs a few microseconds for
    each token.
    """
    known = Settings(encoding, **settings)
    if not isinstance(text, str):
        text = bytes_of(text)
    ids, in_bytes = known.encode_with_offsets(text, "byte")
    in_characters = known.encode_with_offsets(text, "character")[1]
    tokens = [
        PlacedToken(token, *span, *characters)
        for token, span, characters in zip(
            describe_ids(encoding, ids), in_bytes.tolist(), in_characters.tolist(), strict=True
        )
    ]
    return TextTokens(encoding.name, tokens, *_sizes(text, known.errors))


def _sizes(text: str | bytes, errors: str) -> tuple[int, int]:
    """Bytes and characters of an encoded text, as its offsets count them."""
    if isinstance(text, str):
        return len(text_bytes(text, errors)), len(text)
    return len(text), len(text.decode("utf-8", errors))
