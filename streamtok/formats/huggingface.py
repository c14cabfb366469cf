"""Hugging Face's `tokenizer.json` with byte-level BPE: GPT-2's, Llama 3's, Qwen's, DeepSeek's.

Ids are those of `Tokenizer.encode(text, add_special_tokens=False)`: the post-processor, which puts
special tokens around a text, is not applied. Added tokens that are special become special tokens:
`allowed_special="all"` finds them in text, as Hugging Face always does. Other added tokens are
always found. The NFC normalizer works for whole texts; streams raise UnsupportedStreamError.

These raise an error that names them: truncation and padding, other models, normalizers,
pre-tokenizers and decoders, dropout, prefixes and suffixes of words, added tokens with lstrip,
rstrip or single_word. (github.com/huggingface/tokenizers, Apache-2.0)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.json_tables import TextIds
from ..engines.rules import TextRules
from ..errors import VocabularyError
from ..files.part_file import write_whole
from ..vocabulary.byte_alphabet import to_bytes
from ..vocabulary.table import Vocabulary
from .gpt2 import merges_and_ids, vocabulary_of, vocabulary_of_rows
from .huggingface_splits import read_splits, write_splits
from .json_value import JsonValue, MergeRows, parse_tokenizer
from .loading import check_total, make_encoding, read_bytes, shown, stem

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .loading import Path

__all__ = ["load_huggingface", "save_huggingface"]

_MAX_COMPARED = 256  # characters of an added token, if there are two groups: see `_overlap`
_MAX_COMPARISONS = 1 << 30  # of characters
_POST_PROCESSORS = ("ByteLevel", "TemplateProcessing", "BertProcessing", "RobertaProcessing")


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
    normalizer = _normalizer(file["normalizer"])
    _check_post_processor(file["post_processor"])
    decoder = file["decoder"]
    if decoder.value is not None and decoder["type"].value != "ByteLevel":
        decoder.fail(f"the decoder {decoder['type'].value!r} is not supported: expected ByteLevel")
    pattern = read_splits(file["pre_tokenizer"])
    model = file["model"]
    _check_model(model)
    vocab, merges = model["vocab"].value, model["merges"].value
    if isinstance(vocab, TextIds) and isinstance(merges, MergeRows):
        special, added = _added_tokens(file["added_tokens"], vocab, normalizer)
        vocabulary = vocabulary_of_rows(
            vocab, merges, (*special, *added),
            ignore_merges=model["ignore_merges"].as_bool(), source=model.place,
        )  # fmt: skip
    else:
        ids, pairs = _model(model)
        special, added = _added_tokens(file["added_tokens"], ids, normalizer)
        parts = {part for pair in pairs for part in pair} | {left + right for left, right in pairs}
        for text in (*special, *added):
            # The added token is always found first: no pre-token can be this entry of the model.
            if text in ids and text not in parts and len(to_bytes(text) or "xx") > 1:
                del ids[text]
        vocabulary = vocabulary_of(
            ids, pairs, ignore_merges=model["ignore_merges"].as_bool(), source=model.place
        )
    return make_encoding(
        file.place,
        name,
        pat_str=pattern,
        mergeable_ranks=vocabulary,
        special_tokens=special,
        rules=TextRules(tuple(added.items()), longest_first=True, normalizer=normalizer),
    )


def _normalizer(field: JsonValue) -> str | None:
    if field.value is None:
        return None
    kind = field["type"].as_str()
    if kind == "Sequence":
        found = [_normalizer(step) for step in field["normalizers"].elements()]
        return "NFC" if "NFC" in found else None
    if kind != "NFC":
        field.fail(f"the normalizer {kind!r} is not supported")
    return "NFC"


def _check_post_processor(field: JsonValue) -> None:
    if field.value is None:
        return
    kind = field["type"].as_str()
    if kind == "Sequence":
        for step in field["processors"].elements():
            _check_post_processor(step)
    elif kind not in _POST_PROCESSORS:
        field.fail(f"the post-processor {kind!r} is not supported")


def _check_model(model: JsonValue) -> None:
    if model["type"].value not in (None, "BPE"):
        model.fail(f"the model {model['type'].value!r} is not supported: expected BPE")
    model.allow_only(
        "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
        "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges",
    )  # fmt: skip
    if model["dropout"].value not in (None, 0, 0.0):
        model.fail(f"dropout {model['dropout'].value} is not supported")
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model[key].value not in (None, ""):
            model.fail(f"{key} {shown(model[key].value)} is not supported")


def _model(model: JsonValue) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The ids and the merges, of Python objects."""
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


def _added_tokens(
    field: JsonValue, ids: dict[str, int] | TextIds, normalizer: str | None
) -> tuple[dict[str, int], dict[str, int]]:
    """The special tokens, and the added tokens that are always recognised, with their ids."""
    special: dict[str, int] = {}
    added: dict[str, int] = {}
    groups: dict[bool, list[str]] = {False: [], True: []}  # by whether they match normalised text
    next_id = len(ids)
    for entry in field.elements() if field.value is not None else []:
        entry.allow_only(
            "id", "content", "special", "normalized", "lstrip", "rstrip", "single_word"
        )
        text, number = entry["content"].as_str(), entry["id"].as_int()
        if not text or text in special or text in added:
            entry.fail(f"the added token {shown(text)} is empty or given twice")
        for flag in ("lstrip", "rstrip", "single_word"):
            if entry[flag].as_bool():
                entry.fail(f"{flag} of the added token {shown(text)} is not supported")
        # Hugging Face ignores the id in the file. It takes the model's id for this text, or else
        # the next free id.
        expected = ids.get(text, next_id)
        if number != expected:
            entry.fail(
                f"the added token {shown(text)} has id {number}, but Hugging Face gives it id "
                f"{expected}"
            )
        next_id = max(next_id, number + 1)
        is_special = entry["special"].as_bool()
        (special if is_special else added)[text] = number
        is_normalized = entry["normalized"].as_bool(not is_special)
        if is_normalized and normalizer is not None:
            entry.fail(
                f"the added token {shown(text)} matches normalised text, which is not supported"
            )
        groups[is_normalized].append(text)
    check_total([*special, *added], field.place)
    if clash := _overlap(groups[False], groups[True]):
        field.fail(
            f"the added token {shown(clash)} may begin or end inside one with another value of "
            "normalized, which is not supported"
        )
    return special, added


def _overlap(first: Iterable[str], second: Iterable[str]) -> str | None:
    """A text of one group that can overlap with a text of the other, or None if there is none."""
    one, other = list(first), list(second)
    if not one or not other:
        return None
    for a, b in ((one, other), (other, one)):
        # The comparison takes more than linear time and memory, so it needs bounds. Real files are
        # far below them.
        joined = "\0".join(b)
        if max(map(len, a + b)) > _MAX_COMPARED or len(a) * len(joined) > _MAX_COMPARISONS:
            return max(a + b, key=len)
        beginnings = {text[:i] for text in b for i in range(1, len(text) + 1)}
        for text in a:
            if text in joined or any(text[i:] in beginnings for i in range(len(text))):
                return text
    return None


def save_huggingface(encoding: Encoding, path: Path) -> None:
    """Write a `tokenizer.json`. The file appears when it is complete.

    Special and added tokens also go into the model's vocabulary, because Hugging Face takes their
    ids from there. Raises OSError, and VocabularyError for what the format cannot express.
    """
    format = "a tokenizer.json with ByteLevel"
    rules = encoding._rules
    if rules.normalizer not in (None, "NFC"):
        raise VocabularyError(
            f"{format} cannot express the normalizer {rules.normalizer!r} of {encoding.name}"
        )
    if not rules.longest_first:
        _check_one_order(encoding, format)
    merges, ids = merges_and_ids(encoding, format, allow_unreachable=True)
    entries = []
    tokens = [(number, text, True) for text, number in encoding._special_tokens.items()]
    tokens += [(number, text, False) for text, number in rules.added_tokens]
    for number, text, is_special in sorted(tokens):
        entries.append(
            {
                "id": number,
                "content": text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": is_special,
            }
        )
        if ids.get(text, number) != number:
            raise VocabularyError(
                f"{format} has one id for a text: {text!r} of {encoding.name} has id {number} as a "
                f"special token and {ids[text]} as plain text"
            )
        ids[text] = number
    value: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": entries,
        "normalizer": None if rules.normalizer is None else {"type": rules.normalizer},
        "pre_tokenizer": write_splits(encoding),
        "post_processor": None,
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": has_unreachable_tokens(encoding._vocabulary, merges),
            "vocab": dict(sorted(ids.items(), key=lambda item: item[1])),
            "merges": [list(pair) for pair in merges],
        },
    }
    write_whole(path, json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n")


def has_unreachable_tokens(vocabulary: Vocabulary, merges: list[tuple[str, str]]) -> bool:
    """Whether there are tokens that no merges make."""
    lengths = np.diff(vocabulary.offsets)
    return int((lengths > 1).sum()) != len(merges)


def _check_one_order(encoding: Encoding, format: str) -> None:
    """Raise VocabularyError if a special token is found that is a prefix of a longer one.

    Where several special tokens begin, tiktoken finds the first by its hash, Hugging Face the
    longest.
    """
    order = [text for text, _ in encoding._preferred_specials]
    for i, text in enumerate(order):
        for later in order[i + 1 :]:
            if len(later) > len(text) and later.startswith(text):
                raise VocabularyError(
                    f"{format} finds the longest special token, but in {later!r} "
                    f"{encoding.name} finds {text!r}"
                )
