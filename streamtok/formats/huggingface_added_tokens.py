"""The `added_tokens` of a tokenizer.json: texts that become their id wherever they stand.

Those that are special become special tokens: `allowed_special="all"` finds them in text, as
Hugging Face always does. All others are always found.
"""

from __future__ import annotations

from typing import NamedTuple

from ..engines.added_tokens import can_overlap
from ..engines.rules import TokenFlags
from .json_value import Entries, JsonValue
from .loading import check_total, shown

__all__ = ["AddedTokens", "read_added_tokens"]

_NO_FLAGS = TokenFlags()


class AddedTokens(NamedTuple):
    """Ids by text, and the flags of those that have some."""

    special: dict[str, int]
    added: dict[str, int]
    flags: dict[str, TokenFlags]


def read_added_tokens(
    field: JsonValue, ids: dict[str, int] | Entries, is_normalized: bool
) -> AddedTokens:
    """The tokens in this field; ids: those of the model; is_normalized: whether text is.

    Hugging Face ignores the ids in the file: a token has the model's id for this text, or else the
    next free one. It also ignores tokens without text. Raises VocabularyError naming the position.
    """
    special: dict[str, int] = {}
    added: dict[str, int] = {}
    flags: dict[str, TokenFlags] = {}
    next_id = len(ids)
    for entry in field.elements() if field.value is not None else []:
        entry.allow_only(
            "id", "content", "special", "normalized", "lstrip", "rstrip", "single_word"
        )
        text = entry["content"].as_str()
        entry["id"].as_int()
        if not text:
            continue
        if text in special or text in added:
            entry.fail(f"the added token {shown(text)} is given twice")
        number = ids.get(text, next_id)
        next_id = max(next_id, number + 1)
        is_special = entry["special"].as_bool()
        (special if is_special else added)[text] = number
        flags[text] = TokenFlags(
            normalized=entry["normalized"].as_bool(not is_special),
            lstrip=entry["lstrip"].as_bool(),
            rstrip=entry["rstrip"].as_bool(),
            single_word=entry["single_word"].as_bool(),
        )
    check_total([*special, *added], field.place)
    if not is_normalized and not _matters(flags):
        flags = {text: flag._replace(normalized=False) for text, flag in flags.items()}
    return AddedTokens(
        special, added, {text: flag for text, flag in flags.items() if flag != _NO_FLAGS}
    )


def _matters(flags: dict[str, TokenFlags]) -> bool:
    """Whether it matters for a text that nothing normalizes which tokens are normalized.

    It does where two of them overlap, because those that are not are found first; and where flags
    make one give way to another.
    """
    groups: dict[bool, list[str]] = {False: [], True: []}
    for text, flag in flags.items():
        groups[flag.normalized].append(text)
    is_simple = all(flag._replace(normalized=False) == _NO_FLAGS for flag in flags.values())
    return not is_simple or can_overlap(groups[False], groups[True])
