"""The `model` of a tokenizer.json with BPE: its vocabulary and its merges.

With ByteLevel, tokens are written in the byte alphabet, and bytes are merged. Without it,
characters are merged, and an unknown character becomes the tokens <0x00> … <0xFF> of its bytes
(`byte_fallback`). Such vocabularies write "▁" for a space. If a model turns all spaces of a text
into "▁", each "▁" in its vocabulary is stored as a space (`folds`), so that ids decode to spaces
and text may be cut before them. No text of such a model becomes a token that has a real space in
the file.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..engines.rules import MARK
from ..errors import VocabularyError
from ..vocabulary.table import Vocabulary
from .character_merges import from_character_merges
from .json_value import JsonValue
from .loading import BYTE_TEXTS, errors_at, shown
from .merge_lists import find_merges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.uint32]

__all__ = [
    "Model",
    "Words",
    "character_vocabulary",
    "read_model",
]


class Words(NamedTuple):
    """How a BPE model writes the characters of a pre-token."""

    prefix: str = ""  # before all characters but the first
    suffix: str = ""  # after the last character
    unknown: str = ""  # the token for characters without one
    fuses: bool = False  # whether a run of unknown characters becomes one token


class Model(NamedTuple):
    """A BPE model. Tokens are written as in the file."""

    ids: dict[str, int]
    rows: Numbers  # [m, 3]: the merges, as from `find_merges([*ids], …)`
    ignore_merges: bool
    byte_fallback: bool
    position: str
    words: Words = Words()

    def parts(self, texts: Collection[str]) -> set[str]:
        """Those of `texts` that merges take or make."""
        found = self._numbers(texts)
        names = [*self.ids]
        return {names[number] for number in found[self._is_part()[found]].tolist()}

    def without(self, texts: Collection[str]) -> Model:
        """The same model without those of `texts` that are in no merge."""
        found = self._numbers(texts)
        found = found[~self._is_part()[found]]
        if not len(found):
            return self
        names = [*self.ids]
        ids = dict(self.ids)  # copying does not hash the texts again
        for number in found.tolist():
            del ids[names[number]]
        is_kept = np.ones(len(names), np.bool_)
        is_kept[found] = False
        numbers = np.cumsum(is_kept, dtype=np.uint32) - np.uint32(1)
        return self._replace(ids=ids, rows=numbers[self.rows])

    def _numbers(self, texts: Collection[str]) -> NDArray[np.int64]:
        """The numbers of those tokens that are in `texts`."""
        return np.array([i for i, text in enumerate(self.ids) if text in texts], np.int64)

    def _is_part(self) -> NDArray[np.bool_]:
        """bool [n]: for each token, whether merges take or make it."""
        is_part = np.zeros(len(self.ids), np.bool_)
        is_part[self.rows] = True
        return is_part


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
    ids, merges = model["vocab"].as_ids(), model["merges"].as_list()
    with errors_at(model.position):
        rows = find_merges([*ids], merges, prefix)
    return Model(ids, rows, ignores, falls_back, model.position, words)


def character_vocabulary(model: Model, folds: bool) -> Vocabulary:
    """The vocabulary of a model that merges characters. folds: whether "▁" is stored as a space.

    Every byte must have a token; for other models see `huggingface_symbols.py`. Raises
    VocabularyError if a token of a byte takes part in a merge.
    """
    byte_ids = {byte: model.ids[text] for text, byte in BYTE_TEXTS.items() if text in model.ids}
    model = model.without(BYTE_TEXTS)
    if merging := BYTE_TEXTS.keys() & model.ids.keys():
        raise VocabularyError(
            f"{model.position}: merges take or make {shown(min(merging))}, which is also the "
            "token of a byte: this is not supported"
        )
    decode_only = {}
    if folds and " " in "".join(model.ids):
        spaced = {text: number for text, number in model.ids.items() if " " in text}
        decode_only = {number: text.replace(MARK, " ").encode() for text, number in spaced.items()}
        is_spaced = np.array([text in spaced for text in model.ids], np.bool_)
        model = model._replace(rows=model.rows[~is_spaced[model.rows[:, 2]]]).without(spaced)
    with errors_at(model.position):
        return from_character_merges(
            model.ids,
            model.rows,
            byte_ids,
            ignore_merges=model.ignore_merges,
            decode_only=decode_only,
            folds=folds,
        )
