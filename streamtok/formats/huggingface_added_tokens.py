"""The `added_tokens` of a tokenizer.json: texts that become their ids wherever they occur.

Those marked as special become special tokens: `allowed_special="all"` finds them in text, as
Hugging Face always does. All others are always found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..engines.changing import can_overlap
from ..engines.rules import TokenFlags
from .json_value import JsonValue
from .loading import check_total

if TYPE_CHECKING:
    from ..normalizers import Normalizer

__all__ = ["AddedTokens", "found_texts", "numbered", "read_added_tokens"]

_NO_FLAGS = TokenFlags()


class AddedTokens(NamedTuple):
    """Ids by text, and the flags of tokens that have any."""

    special: dict[str, int]
    added: dict[str, int]
    flags: dict[str, TokenFlags]


def read_added_tokens(
    field: JsonValue, ids: dict[str, int], n_rows: int, is_normalized: bool
) -> AddedTokens:
    """The tokens in this field. ids, n_rows: the model's ids by text, and the number of rows in its
    vocabulary. is_normalized: whether there is a normalizer.

    Hugging Face ignores the ids in the file (see `numbered`) and tokens without text. If a text is
    given twice, the flags of the later entry count, and the token is special if either entry is.
    Raises VocabularyError naming the position.
    """
    texts: list[str] = []
    is_special: dict[str, bool] = {}
    flags: dict[str, TokenFlags] = {}
    for entry in field.elements() if field.value is not None else []:
        entry.allow_only(
            "id", "content", "special", "normalized", "lstrip", "rstrip", "single_word"
        )
        text = entry["content"].as_str()
        entry["id"].as_int()
        if not text:
            continue
        texts.append(text)
        special = entry["special"].as_bool()
        is_special[text] = special or is_special.get(text, False)
        flags[text] = TokenFlags(
            normalized=entry["normalized"].as_bool(not special),
            lstrip=entry["lstrip"].as_bool(),
            rstrip=entry["rstrip"].as_bool(),
            single_word=entry["single_word"].as_bool(),
        )
    check_total(is_special, field.position)
    numbers = numbered(texts, ids, n_rows)
    flags = {text: flags[text] for text in numbers}
    plain = {text: flag._replace(normalized=False) for text, flag in flags.items()}
    if not is_normalized and all(flag == _NO_FLAGS for flag in plain.values()):
        # Without a normalizer, `normalized` matters only where two tokens overlap: tokens without
        # this flag are found first. This is not so with other flags, which may make one token give
        # way to another.
        first = [text for text, flag in flags.items() if not flag.normalized]
        later = [text for text, flag in flags.items() if flag.normalized]
        if not can_overlap(first, later):
            flags = plain
    return AddedTokens(
        {text: number for text, number in numbers.items() if is_special[text]},
        {text: number for text, number in numbers.items() if not is_special[text]},
        {text: flag for text, flag in flags.items() if flag != _NO_FLAGS},
    )


def found_texts(
    texts: Iterable[str], flags: Mapping[str, TokenFlags], normalizer: Normalizer
) -> dict[str, str]:
    """The text by which each token is found: normalized if the token has the flag `normalized`."""
    changed = [text for text in texts if text in flags and flags[text].normalized]
    normalized = dict(zip(changed, normalizer.normalize_tokens(changed, True), strict=True))
    return {text: normalized.get(text, text) for text in texts}


def numbered(texts: Iterable[str], ids: Mapping[str, int], n_rows: int) -> dict[str, int]:
    """The ids that tokenizers gives to added tokens. ids, n_rows: as for `read_added_tokens`.

    A text gets the model's id, or else the next number from `n_rows` on. So if the model's ids have
    gaps, two texts may get the same id: the last one keeps it, and the others are not found.
    """
    found: dict[int, str] = {}
    given: dict[str, int] = {}
    next_id = n_rows
    for text in texts:
        number = given.get(text, ids.get(text, -1))
        if number < 0:
            number, next_id = next_id, next_id + 1
        given[text], found[number] = number, text
    return {text: number for number, text in found.items()}
