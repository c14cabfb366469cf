"""Hugging Face's `tokenizer.json` with BPE: of bytes, as GPT-2's, Llama 3's, Qwen's, DeepSeek's, or
of characters, as Llama 2's, Mistral's and Gemma's.

Ids are those of `Tokenizer.encode(text, add_special_tokens=False)`: the post-processor, which puts
special tokens around a text, is not applied. Added tokens that are special become special tokens:
`allowed_special="all"` finds them in text, as Hugging Face always does. Other added tokens are
always found. What the parts of a file mean is in `huggingface_*.py`, how one is written in
`huggingface_writing.py`.

These raise an error that names them: truncation and padding, other models, dropout, prefixes and
suffixes of words, unknown tokens in place of bytes, sequences of pre-tokenizers that no automaton
follows. (github.com/huggingface/tokenizers, Apache-2.0)
"""

from __future__ import annotations

import os
from collections.abc import Container
from typing import TYPE_CHECKING

from ..engines.rules import MARK, TextRules
from ..normalizers import IDENTITY, MetaspaceText, Normalizer
from ..patterns.named import WHOLE_TEXT_PATTERN
from ..vocabulary.byte_alphabet import to_bytes
from .characters import pattern_of_cuts
from .huggingface_added_tokens import AddedTokens, read_added_tokens
from .huggingface_decoders import Decoding, read_decoder
from .huggingface_models import (
    Model,
    TableModel,
    byte_level_vocabulary,
    character_vocabulary,
    read_model,
)
from .huggingface_normalizers import read_normalizer
from .huggingface_splits import PreTokenizer, pattern_of, read_pre_tokenizer
from .huggingface_writing import save_huggingface
from .json_value import JsonValue, parse_tokenizer
from .loading import make_encoding, read_bytes, stem

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .loading import Path

__all__ = ["load_huggingface", "read_huggingface", "save_huggingface"]

_POST_PROCESSORS = ("ByteLevel", "TemplateProcessing", "BertProcessing", "RobertaProcessing")
_MARKING = ("Replace", " ", MARK)  # the step that makes "▁" of spaces


def load_huggingface(path: Path, *, name: str | None = None) -> Encoding:
    """The encoding in a `tokenizer.json`; path: the file, or the folder that it is in.

    Raises OSError, and VocabularyError naming the file and the place of damage and of unsupported
    features.
    """
    if os.path.isdir(path):
        path = os.path.join(path, "tokenizer.json")
    source = os.fspath(path)
    return read_huggingface(
        JsonValue(parse_tokenizer(read_bytes(path), source), source), name or stem(path)
    )


def read_huggingface(file: JsonValue, name: str) -> Encoding:
    """The encoding of a parsed `tokenizer.json`."""
    file.allow_only(
        "version", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder",
        "model",
    )  # fmt: skip
    normalizer = read_normalizer(file["normalizer"])
    _check_post_processor(file["post_processor"])
    decoding = read_decoder(file["decoder"])
    cutting = read_pre_tokenizer(file["pre_tokenizer"])
    second = Normalizer(cutting.steps)
    model = read_model(file["model"])
    tokens = read_added_tokens(file["added_tokens"], model.ids, not normalizer.is_identity)
    parts = model.parts()
    _forget_added(model, tokens, parts)
    pat_str = None
    if cutting.is_byte_level:
        vocabulary = byte_level_vocabulary(model)
    else:
        folds = _folds(normalizer, cutting, decoding, model)
        vocabulary = character_vocabulary(model, folds, parts)
        if folds:
            normalizer, second = _folded(normalizer), _folded(second)
        pat_str = pattern_of(cutting.splits, file["pre_tokenizer"].place, folds)
        if pat_str == WHOLE_TEXT_PATTERN and not model.ignore_merges:
            pat_str = pattern_of_cuts(vocabulary)
    return make_encoding(
        file.place,
        name,
        pat_str=pat_str or pattern_of(cutting.splits, file["pre_tokenizer"].place),
        mergeable_ranks=vocabulary,
        special_tokens=tokens.special,
        rules=TextRules(
            tuple(tokens.added.items()),
            longest_first=True,
            normalizer=_shortest(normalizer),
            token_flags=tuple(tokens.flags.items()),
            second_normalizer=None if second == IDENTITY else second,
            drops_first_space=decoding.drops_first_space,
        ),
    )


def _check_post_processor(field: JsonValue) -> None:
    if field.value is None:
        return
    kind = field["type"].as_str()
    if kind == "Sequence":
        for step in field["processors"].elements():
            _check_post_processor(step)
    elif kind not in _POST_PROCESSORS:
        field.fail(f"the post-processor {kind!r} is not supported")


def _forget_added(model: Model | TableModel, tokens: AddedTokens, parts: Container[str]) -> None:
    """Take those added tokens out of the model that no text can become but as added tokens.

    No merges make them, and they are found before any pre-token is looked up.
    """
    for text in (*tokens.special, *tokens.added):
        flags = tokens.flags.get(text)
        is_found = flags is None or not flags.single_word
        is_single = len(text) == 1 or len(to_bytes(text) or "xx") == 1
        if text in model.ids and text not in parts and is_found and not is_single:
            del model.ids[text]


def _folds(
    normalizer: Normalizer, cutting: PreTokenizer, decoding: Decoding, model: Model | TableModel
) -> bool:
    """Whether a space and "▁" may both be a space here: see `huggingface_models.py`."""
    if not decoding.marks_are_spaces or model.has_spaces():
        return False
    if cutting.steps:
        last = cutting.steps[-1]
        return isinstance(last, MetaspaceText) and last.replacement == MARK
    return normalizer.spec[-1:] == (_MARKING,)


def _folded(normalizer: Normalizer) -> Normalizer:
    """As `normalizer`, but what its last step makes "▁" becomes a space."""
    if not normalizer.spec:
        return normalizer
    *steps, last = normalizer.spec
    to_spaces = ("Replace", MARK, " ")
    if last == _MARKING:
        # What was put before the text is the same, sooner or later.
        if steps == [("Prepend", MARK)]:
            steps = [("Prepend", " ")]
        return Normalizer.from_spec((*steps, to_spaces))
    kind, *settings = last
    if kind == "MetaspaceText":
        scheme = settings[1]
        text = () if scheme == "never" else (("MetaspaceText", " ", scheme),)
        return Normalizer.from_spec((*steps, to_spaces, *text))
    return normalizer


def _shortest(normalizer: Normalizer) -> Normalizer | str | None:
    """As text rules have said it since before there were normalizers of several steps."""
    if normalizer.is_identity:
        return None
    return "NFC" if normalizer.spec == (("NFC",),) else normalizer
