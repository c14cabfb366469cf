"""The `model` of a tokenizer.json, which must be BPE: its vocabulary and its merges.

With ByteLevel, tokens are written in the byte alphabet and merge bytes. Without, they merge
characters, and a character that is not in the vocabulary becomes the tokens <0x00> … <0xFF> of its
bytes (`byte_fallback`). Such vocabularies have "▁" for a space. If all spaces of a text become "▁",
then both are a space here (`folds`): so the ids decode to spaces, and text may be cut before them.
No text becomes a token that has a real space, then.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from .._core.json_tables import TextIds
from ..engines.rules import MARK
from ..errors import VocabularyError
from ..vocabulary.table import Vocabulary
from .character_merges import from_character_merges
from .character_rows import from_character_rows
from .gpt2 import vocabulary_of, vocabulary_of_rows
from .json_value import Entries, JsonValue, MergeRows
from .loading import byte_of, shown

__all__ = [
    "Model",
    "TableModel",
    "Words",
    "as_objects",
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
    merges: list[tuple[str, str]]
    ignore_merges: bool
    byte_fallback: bool
    place: str
    words: Words = Words()

    def parts(self) -> set[str]:
        """All that merges take or make."""
        return {part for pair in self.merges for part in (*pair, pair[0] + pair[1])}


class TableModel(NamedTuple):
    """The same, as the tables that `parse_tokenizer` leaves in arrays."""

    ids: Entries
    merges: MergeRows
    ignore_merges: bool
    byte_fallback: bool
    place: str
    words: Words = Words()

    def parts(self) -> Container[str]:
        """All that merges take or make."""
        return self.ids.only(self.merges.used())


def as_objects(model: Model | TableModel) -> Model:
    """The same of Python objects, for tables that are not in order."""
    if isinstance(model, Model):
        return model
    pairs = [(left, right) for left, right in model.merges.to_list()]
    return Model(model.ids.to_dict(), pairs, *model[2:])


def read_model(model: JsonValue) -> Model | TableModel:
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
    vocab, rows = model["vocab"].value, model["merges"].value
    if isinstance(vocab, TextIds) and isinstance(rows, MergeRows):
        return TableModel(Entries(vocab), rows, ignores, falls_back, model.place, words)
    return Model(*_vocab_and_merges(model), ignores, falls_back, model.place, words)


def _vocab_and_merges(model: JsonValue) -> tuple[dict[str, int], list[tuple[str, str]]]:
    vocab = model["vocab"]
    ids = {}
    for text, number in vocab.as_dict().items():
        if type(number) is not int:
            vocab.fail(f"the id of {shown(text)} must be an integer, not {shown(number)}")
        ids[text] = number
    merges = []
    entries = model["merges"]
    for place, merge in enumerate(entries.as_list()):
        pair = merge.split(" ", 2) if isinstance(merge, str) else merge
        if not (
            isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, str) for x in pair)
        ):
            entries.fail(f"merge {place}: expected two tokens, found {shown(merge)}")
        merges.append((pair[0], pair[1]))
    return ids, merges


def byte_level_vocabulary(model: Model | TableModel) -> Vocabulary:
    """The vocabulary of tokens in the byte alphabet."""
    if isinstance(model, TableModel):
        kept = model.ids.kept
        found = vocabulary_of_rows(
            model.ids.texts, model.merges.rows, kept, ignore_merges=model.ignore_merges
        )
        if found is not None:
            return found
        model = as_objects(model)
    return vocabulary_of(
        model.ids, model.merges, ignore_merges=model.ignore_merges, source=model.place
    )


def character_vocabulary(
    model: Model | TableModel, folds: bool, parts: Container[str]
) -> Vocabulary:
    """The vocabulary of tokens of characters; folds: whether "▁" is a space.

    parts: `model.parts()`. All bytes have tokens: see `huggingface_symbols.py`. Raises
    VocabularyError for bytes that merge like tokens.
    """
    if isinstance(model, TableModel):
        texts, rows, kept = model.ids.texts, model.merges.rows, model.ids.kept
        has_spaces = b" " in texts.arrays()[0] and any(" " in text for text in model.ids.to_dict())
        if not (folds and has_spaces):
            vocabulary = from_character_rows(
                texts, rows, kept, folds, ignore_merges=model.ignore_merges
            )
            if vocabulary is not None:
                return vocabulary
        model = as_objects(model)
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
    merges = model.merges
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
