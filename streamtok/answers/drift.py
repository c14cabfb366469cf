"""Finds where ids from a model differ from the ids of their own text.

A model may sample ids that encoding never returns, so that encoding their text returns different
ids. Special ids are kept, and the text between two of them is encoded as plain text. Text
that the pattern skips has no ids, so it is not part of the text of the ids.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .._core.encode import LIST
from .text_settings import Settings

if TYPE_CHECKING:
    from .._types import IdArray
    from ..definition import Defined

__all__ = ["first_drift"]


def first_drift(encoding: Defined, ids: Iterable[int] | IdArray) -> int | None:
    """The index of the first id that changes when the ids' text is encoded again, or None."""
    given: list[int] = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    encoding.definition.decoder.decode(given)  # raises for an unknown id
    index = 0
    for found in _encoded_again(encoding, given):
        wanted = given[index : index + len(found)]
        if found != wanted:
            pairs = zip(found, wanted, strict=False)
            return index + next((at for at, (a, b) in enumerate(pairs) if a != b), len(wanted))
        index += len(found)
    return None if index == len(given) else index


def _text_of(encoding: Defined, ids: list[int], is_first: bool) -> bytes:
    special = encoding.definition.specials.special
    changed = (text for text, _ in encoding.definition.rules.decoded_texts if text in special)
    own = {special[text]: text.encode() for text in changed}
    if own.keys().isdisjoint(ids):
        return encoding.decode_bytes(ids) if is_first else encoding.definition.decoder.decode(ids)
    if is_first and encoding.definition.rules.first_texts and ids[0] not in own:
        return encoding.decode_bytes(ids[:1]) + _text_of(encoding, ids[1:], False)
    # Some special tokens decode to a text that differs from the text that they match.
    data = b"".join(own.get(id) or encoding.definition.decoder.token_bytes(id) for id in ids)
    drops = is_first and encoding.definition.rules.drops_first_space
    return data.removeprefix(b" ") if drops else data


def _encoded_again(encoding: Defined, ids: list[int]) -> Iterator[list[int]]:
    """The ids of the text of `ids`, split at special ids.

    An encoding that changes text encodes all of it at once, with the special tokens in `ids`
    allowed.
    """
    special = encoding.definition.specials
    used = special.ids.intersection(ids)
    if not encoding.definition.texts.is_plain:
        allowed = {text for text, id in special.special.items() if id in used}
        settings = Settings(encoding, allowed_special=allowed, errors="surrogateescape")
        yield settings.encode(_text_of(encoding, ids, is_first=True), LIST)
        return
    settings = Settings(encoding, errors="surrogateescape")
    is_first = True
    for is_special, group in itertools.groupby(ids, used.__contains__) if used else [(False, ids)]:
        part = list(group)
        if is_special:
            yield part
        else:
            yield settings.encode(_text_of(encoding, part, is_first), LIST)
        is_first = False
