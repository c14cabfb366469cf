"""The `model` of a tokenizer.json, which must be BPE: its vocabulary and its merges.

With ByteLevel, tokens are written in the byte alphabet and merge bytes. Without, they merge
characters, and a character that is not in the vocabulary becomes the tokens <0x00> … <0xFF> of its
bytes (`byte_fallback`). Such vocabularies have "▁" for a space. If all spaces of a text become "▁",
then both are a space here (`folds`): so the ids decode to spaces, and text may be cut before them.
No text becomes a token that has a real space, then.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Container, Sequence
from typing import Any, NamedTuple

from ..engines.rules import MARK
from ..errors import VocabularyError
from ..vocabulary.table import Vocabulary
from .character_merges import from_character_merges
from .gpt2 import vocabulary_of
from .json_value import JsonValue
from .loading import byte_of, shown

__all__ = [
    "Model",
    "Words",
    "byte_level_vocabulary",
    "character_vocabulary",
    "read_model",
]


class Words(NamedTuple):
    """What a BPE model says of characters beyond their tokens."""

    prefix: str = ""  # of those that are not the first of a pre-token
    suffix: str = ""  # of the last
    unknown: str = ""  # the token of those that have none
    fuses: bool = False  # several of these in a row become one


class Model(NamedTuple):
    """What a BPE model says. Tokens are as in the file."""

    ids: dict[str, int]
    merges: Sequence[Sequence[str]]
    ignore_merges: bool
    byte_fallback: bool
    place: str
    words: Words = Words()

    def parts(self, texts: set[str]) -> set[str]:
        """Those of the texts that merges take or make."""
        lefts, rights = [pair[0] for pair in self.merges], [pair[1] for pair in self.merges]
        made = map(operator.add, lefts, rights)
        return texts.intersection(itertools.chain(lefts, rights, made))


def read_model(model: JsonValue) -> Model:
    """The model in this field. Raises VocabularyError naming the position."""
    if model["type"].value not in (None, "BPE"):
        model.fail(
            f"the model {shown(model['type'].value)} is not supported: expected BPE, "
            "WordPiece, WordLevel or Unigram"
        )
    model.allow_only(
        "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
        "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges",
    )  # fmt: skip
    if model["dropout"].value not in (None, 0, 0.0):
        model.fail(f"dropout {model['dropout'].value} is not supported")
    keys = "continuing_subword_prefix", "end_of_word_suffix", "unk_token"
    prefix, suffix, unknown = (
        "" if model[key].value is None else model[key].as_str() for key in keys
    )
    words = Words(prefix, suffix, unknown, model["fuse_unk"].as_bool())
    ignores, falls_back = model["ignore_merges"].as_bool(), model["byte_fallback"].as_bool()
    return Model(*_vocab_and_merges(model), ignores, falls_back, model.place, words)


def _vocab_and_merges(model: JsonValue) -> tuple[dict[str, int], list[list[str]]]:
    vocab, entries = model["vocab"], model["merges"]
    ids = dict(vocab.as_dict())
    if set(map(type, ids.values())) - {int}:
        text, number = next(item for item in ids.items() if type(item[1]) is not int)
        vocab.fail(f"the id of {shown(text)} must be an integer, not {shown(number)}")
    merges = entries.as_list()
    pairs = [merge.split(" ", 2) if type(merge) is str else merge for merge in merges]
    if set(map(type, pairs)) - {list} or set(map(len, pairs)) - {2} or not _are_texts(pairs):
        for place, pair in enumerate(pairs):
            if type(pair) is not list or len(pair) != 2 or not _are_texts([pair]):
                entries.fail(f"merge {place}: expected two tokens, found {shown(merges[place])}")
    return ids, pairs


def _are_texts(pairs: list[list[Any]]) -> bool:
    return not set(map(type, itertools.chain.from_iterable(pairs))) - {str}


def byte_level_vocabulary(model: Model) -> Vocabulary:
    """The vocabulary of tokens in the byte alphabet."""
    return vocabulary_of(
        model.ids, model.merges, ignore_merges=model.ignore_merges, source=model.place
    )


def character_vocabulary(model: Model, folds: bool, parts: Container[str]) -> Vocabulary:
    """The vocabulary of tokens of characters; folds: whether "▁" is a space.

    parts: `model.parts` of the tokens that stand for bytes. All bytes have tokens: see
    `huggingface_symbols.py`. Raises VocabularyError for bytes that merge like tokens.
    """
    ids: dict[str, int] = {}
    byte_ids: dict[int, int] = {}
    decode_only: dict[int, bytes] = {}
    for text, number in model.ids.items():
        byte = byte_of(text)
        if folds and " " in text:
            decode_only[number] = text.replace(MARK, " ").encode("utf-8", "surrogatepass")
            continue
        if byte is None:
            ids[text.replace(MARK, " ") if folds else text] = number
            continue
        if text in parts:
            raise VocabularyError(
                f"{model.place}: merges take or make {shown(text)}, which stands for a byte, too: "
                "this is not supported"
            )
        byte_ids[byte] = number
    merges: Sequence[Sequence[str]] = model.merges
    if folds:
        merges = [
            (a.replace(MARK, " "), b.replace(MARK, " "))
            for a, b in merges
            if not (decode_only and " " in a + b)
        ]
    try:
        return from_character_merges(
            ids, merges, byte_ids, ignore_merges=model.ignore_merges, decode_only=decode_only
        )
    except VocabularyError as error:
        raise VocabularyError(f"{model.place}: {error}") from None
