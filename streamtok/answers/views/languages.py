"""The tokens of one text in many languages, in each encoding.

The text is articles 1 to 3 of the Universal Declaration of Human Rights (see NOTICE). It says the
same in each language, so that tokens can be compared as they are; characters are not comparable
between scripts.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .result import Result

if TYPE_CHECKING:
    from ...encoding import Encoding

_FILE = Path(__file__).resolve().parents[2] / "data" / "declaration.json"
_ENGLISH = "en"


class Language(NamedTuple):
    """The text in one language. code: its BCP 47 tag."""

    code: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class LanguageRow(Result):
    """One language: sizes of its text, and its tokens in each encoding, in their order."""

    code: str
    name: str
    n_characters: int
    n_bytes: int
    tokens: list[int]
    times_english: list[float]  # tokens, as a multiple of those of the English text

    _also = ("tokens_per_character", "tokens_per_byte")

    @property
    def tokens_per_character(self) -> list[float]:
        """list[float]: in each encoding."""
        return [count / self.n_characters for count in self.tokens]

    @property
    def tokens_per_byte(self) -> list[float]:
        """list[float]: in each encoding."""
        return [count / self.n_bytes for count in self.tokens]


@dataclass(frozen=True, slots=True)
class LanguageTable(Result):
    """All languages. The lists of a row have an entry for each of `encodings`."""

    encodings: list[str]
    rows: list[LanguageRow]


@functools.cache
def list_languages() -> tuple[Language, ...]:
    """tuple[Language]: the texts, in order of the languages' English names."""
    return tuple(Language(**entry) for entry in json.loads(_FILE.read_text("utf-8")))


def compare_languages(
    encodings: Sequence[Encoding], languages: Iterable[Language] | None = None
) -> LanguageTable:
    """LanguageTable: the text in every language, or in those given, in each encoding.

    The English text is what `times_english` refers to, whichever languages are given.
    """
    english = next(one for one in list_languages() if one.code == _ENGLISH)
    standard = [_count(encoding, english.text) for encoding in encodings]
    rows = []
    for code, name, text in list_languages() if languages is None else languages:
        tokens = [_count(encoding, text) for encoding in encodings]
        times = [count / most for count, most in zip(tokens, standard, strict=True)]
        rows.append(LanguageRow(code, name, len(text), len(text.encode()), tokens, times))
    return LanguageTable([encoding.name for encoding in encodings], rows)


def _count(encoding: Encoding, text: str) -> int:
    return len(encoding.encode_ordinary(text))
