"""How the tests of formats read a file: of tokenizers, beside tokenizers, or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import streamtok
from streamtok.formats import detection

from ..oracles import assert_same, refuses

File: TypeAlias = dict[str, Any]


def read(given: Tokenizer | File | str) -> streamtok.Encoding:
    """The encoding of a tokenizer.json, or of a tekken.json."""
    if not isinstance(given, (Tokenizer, str)):
        given = json.dumps(given)
    text = given.to_str() if isinstance(given, Tokenizer) else given
    return detection.read_json(text.encode(), "tokenizer.json", "tokenizer")


def both(given: Tokenizer | File | str) -> tuple[Tokenizer, streamtok.Encoding]:
    """The same in tokenizers."""
    if isinstance(given, Tokenizer):
        return given, read(given)
    text = given if isinstance(given, str) else json.dumps(given)
    return Tokenizer.from_str(text), read(text)


def check(
    given: Tokenizer | File | str, samples: list[str] | None = None, *, round_trip: bool = False
) -> streamtok.Encoding:
    """The encoding, with the ids of tokenizers for whole texts and streams."""
    theirs, enc = both(given)
    assert_same(enc, ids_of(theirs), samples, allowed_special="all", round_trip=round_trip)
    return enc


def ids_of(tokenizer: Tokenizer) -> Any:
    """What encodes a text without the template."""
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def changed(file: File, changes: dict[str, Any]) -> File:
    """A copy with other values at places such as "model__merges__3"."""
    file = json.loads(json.dumps(file))
    for path, value in changes.items():
        *parents, last = (int(key) if key.isdigit() else key for key in path.split("__"))
        place: Any = file
        for key in parents:
            place = place[key]
        place[last] = value
    return file


def refused(file: File, message: str) -> None:
    """Reading the file raises VocabularyError, which names it, with this message."""
    refuses(read, file, match=rf"^tokenizer\.json: .*{message}")


def of_bytes(*special: str, merges: Sequence[tuple[str, str]] = ()) -> Tokenizer:
    """A tokenizer of all bytes and what these merges make."""
    texts = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *map("".join, merges)]
    made = Tokenizer(models.BPE({text: id for id, text in enumerate(texts)}, list(merges)))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(list(special))
    return made
