"""What languages cost: the tokens of one text in many languages, in each encoding.

The text is articles 1 to 3 of the Universal Declaration of Human Rights (see NOTICE). It says the
same in each language, so that tokens can be compared as they are; characters are not comparable
between scripts.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .prices import PriceList

__all__ = ["Language", "LanguageRow", "LanguageTable", "compare_languages", "list_languages"]

_FILE = Path(__file__).resolve().parents[1] / "data" / "declaration.json"
_ENGLISH = "en"


class Language(NamedTuple):
    """The text in one language. code: its BCP 47 tag."""

    code: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class LanguageRow:
    """One language: sizes of its text, and its tokens in each encoding, in their order."""

    code: str
    name: str
    n_characters: int
    n_bytes: int
    tokens: list[int]
    times_english: list[float]  # tokens, as a multiple of those of the English text
    costs: list[float]  # of the text a thousand times, at each price of `LanguageTable.prices`

    @property
    def tokens_per_character(self) -> list[float]:
        """list[float]: in each encoding."""
        return [count / self.n_characters for count in self.tokens]

    @property
    def tokens_per_byte(self) -> list[float]:
        """list[float]: in each encoding."""
        return [count / self.n_bytes for count in self.tokens]

    def as_json(self) -> dict[str, Any]:
        """dict: all of it."""
        return {
            "code": self.code,
            "name": self.name,
            "n_characters": self.n_characters,
            "n_bytes": self.n_bytes,
            "tokens": self.tokens,
            "tokens_per_character": self.tokens_per_character,
            "tokens_per_byte": self.tokens_per_byte,
            "times_english": self.times_english,
            "costs": self.costs,
        }


@dataclass(frozen=True, slots=True)
class LanguageTable:
    """All languages. The lists of a row have an entry for each of `encodings` or `priced`."""

    encodings: list[str]
    rows: list[LanguageRow]
    prices: PriceList | None
    priced: list[str]  # the names in the price list that `LanguageRow.costs` are for

    def as_json(self) -> dict[str, Any]:
        """dict: all of it; prices with their name, date and currency."""
        return {
            "encodings": self.encodings,
            "prices": None if self.prices is None else self.prices.as_json(),
            "priced": self.priced,
            "rows": [row.as_json() for row in self.rows],
        }


@functools.cache
def list_languages() -> tuple[Language, ...]:
    """tuple[Language]: the texts, in order of the languages' English names."""
    return tuple(Language(**entry) for entry in json.loads(_FILE.read_text("utf-8")))


def compare_languages(
    encodings: Sequence[Encoding],
    languages: Iterable[Language] | None = None,
    prices: PriceList | None = None,
    encoding_of: Mapping[str, str] | None = None,
) -> LanguageTable:
    """LanguageTable: the text in every language, or in those given, in each encoding.

    prices: what the user pays; encoding_of: the encoding of a name in it that is not itself the
    name of an encoding, such as a model's. Prices for other encodings are left out. The English
    text is what `times_english` refers to, whichever languages are given.
    """
    english = next(one for one in list_languages() if one.code == _ENGLISH)
    standard = [_count(encoding, english.text) for encoding in encodings]
    names = [encoding.name for encoding in encodings]
    priced = []
    if prices is not None:
        for name, price in prices.per_million_tokens.items():
            encoding_name = (encoding_of or {}).get(name, name)
            if encoding_name in names:
                priced.append((name, names.index(encoding_name), price))
    rows = []
    for code, name, text in list_languages() if languages is None else languages:
        tokens = [_count(encoding, text) for encoding in encodings]
        times = [count / most for count, most in zip(tokens, standard, strict=True)]
        costs = [tokens[which] * price / 1000 for _, which, price in priced]
        rows.append(LanguageRow(code, name, len(text), len(text.encode()), tokens, times, costs))
    return LanguageTable(names, rows, prices, [name for name, _, _ in priced])


def _count(encoding: Encoding, text: str) -> int:
    return len(encoding.encode_ordinary(text))
