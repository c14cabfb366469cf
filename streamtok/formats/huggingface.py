"""Hugging Face's `tokenizer.json` with byte-level BPE: GPT-2's, Llama 3's, Qwen's, DeepSeek's.

Ids are those of `Tokenizer.encode(text, add_special_tokens=False)`: the post-processor, which puts
special tokens around a text, is not applied. Added tokens that are special are special tokens here
(`allowed_special="all"` finds them in text, as Hugging Face always does); others are always found.
Merges are pairs or strings; `ignore_merges` means that a piece that is a token is that
token. The NFC normalizer works for whole texts, and a stream says that it cannot.

Refused by name: truncation and padding, other models, normalizers, pre-tokenizers and decoders,
dropout, prefixes and suffixes of words, added tokens with lstrip, rstrip or single_word.
(github.com/huggingface/tokenizers, Apache-2.0)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engines.rules import TextRules
from ..errors import VocabularyError
from ..files.part_file import write_whole
from ..vocabulary.table import Vocabulary
from ..vocabulary.byte_alphabet import to_bytes
from .gpt2 import merges_and_ids, vocabulary_of
from .huggingface_splits import read_splits, write_splits
from .loading import Reader, check_total, make_encoding, parse_json, read_bytes, shown, stem

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .loading import Path

__all__ = ["load_huggingface", "save_huggingface"]

_MAX_COMPARED = 256  # characters of added tokens, where two groups of them must not overlap
_MAX_COMPARISONS = 1 << 30
_POST_PROCESSORS = ("ByteLevel", "TemplateProcessing", "BertProcessing", "RobertaProcessing")


def load_huggingface(path: Path, *, name: str | None = None) -> Encoding:
    """Encoding: the model, splits and added tokens of a `tokenizer.json`.

    Raises VocabularyError naming the file and the place, also for what is not supported.
    """
    if os.path.isdir(path):
        path = os.path.join(path, "tokenizer.json")
    source = os.fspath(path)
    return read_huggingface(
        Reader(parse_json(read_bytes(path), source), source), name or stem(path)
    )


def read_huggingface(file: Reader, name: str) -> Encoding:
    """The encoding of a parsed `tokenizer.json`."""
    file.only(
        "version",
        "added_tokens",
        "normalizer",
        "pre_tokenizer",
        "post_processor",
        "decoder",
        "model",
    )
    normalizer = _normalizer(file["normalizer"])
    _check_post_processor(file["post_processor"])
    decoder = file["decoder"]
    if decoder.value is not None and decoder["type"].value != "ByteLevel":
        decoder.fail(f"the decoder {decoder['type'].value!r} is not supported: only ByteLevel is")
    splits = read_splits(file["pre_tokenizer"])
    ids, merges, whole_pieces = _model(file["model"])
    special, added = _added_tokens(file["added_tokens"], ids, normalizer)
    parts = {part for pair in merges for part in pair} | {left + right for left, right in merges}
    for text in (*special, *added):
        # As text it always is the added token's, so that no piece could be looked up.
        if text in ids and text not in parts and len(to_bytes(text) or "xx") > 1:
            del ids[text]
    return make_encoding(
        file.place,
        name,
        pat_str=splits,
        mergeable_ranks=vocabulary_of(ids, merges, whole_pieces, file["model"].place),
        special_tokens=special,
        rules=TextRules(tuple(added.items()), longest_first=True, normalizer=normalizer),
    )


def _normalizer(field: Reader) -> str | None:
    if field.value is None:
        return None
    kind = field["type"].as_str()
    if kind == "Sequence":
        found = [_normalizer(step) for step in field["normalizers"].items()]
        return "NFC" if "NFC" in found else None
    if kind != "NFC":
        field.fail(f"the normalizer {kind!r} is not supported")
    return "NFC"


def _check_post_processor(field: Reader) -> None:
    if field.value is None:
        return
    kind = field["type"].as_str()
    if kind == "Sequence":
        for step in field["processors"].items():
            _check_post_processor(step)
    elif kind not in _POST_PROCESSORS:
        field.fail(f"the post-processor {kind!r} is not known")


def _model(model: Reader) -> tuple[dict[str, int], list[tuple[str, str]], bool]:
    if model["type"].value not in (None, "BPE"):
        model.fail(f"the model {model['type'].value!r} is not supported: only BPE is")
    model.only(
        "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
        "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges",
    )  # fmt: skip
    if model["dropout"].value not in (None, 0, 0.0):
        model.fail(f"dropout {model['dropout'].value} is not supported")
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model[key].value not in (None, ""):
            model.fail(f"{key} {shown(model[key].value)} is not supported")
    vocab = model["vocab"]
    ids = {}
    for text, number in vocab.as_dict().items():
        if type(number) is not int:
            vocab.fail(f"the id of {shown(text)} is {shown(number)}")
        ids[text] = number
    merges = []
    entries = model["merges"]
    for place, merge in enumerate(entries.as_list()):
        pair = merge.split(" ", 2) if isinstance(merge, str) else merge
        if not (
            isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, str) for x in pair)
        ):
            entries.fail(f"merge {place}: expected two tokens, got {shown(merge)}")
        merges.append((pair[0], pair[1]))
    return ids, merges, model["ignore_merges"].flag()


def _added_tokens(
    field: Reader, ids: dict[str, int], normalizer: str | None
) -> tuple[dict[str, int], dict[str, int]]:
    """Special tokens and those that are always recognised, with their ids."""
    special: dict[str, int] = {}
    added: dict[str, int] = {}
    groups: dict[bool, list[str]] = {False: [], True: []}  # by whether they see normalised text
    next_id = len(ids)
    for entry in field.items() if field.value is not None else []:
        entry.only("id", "content", "special", "normalized", "lstrip", "rstrip", "single_word")
        text, number = entry["content"].as_str(), entry["id"].as_int()
        if not text or text in special or text in added:
            entry.fail(f"{shown(text)} is empty or comes a second time")
        for flag in ("lstrip", "rstrip", "single_word"):
            if entry[flag].flag():
                entry.fail(f"{flag} of the added token {shown(text)} is not supported")
        # Hugging Face gives added tokens the id of the vocabulary, or else the next one, whatever
        # the file says.
        expected = ids.get(text, next_id)
        if number != expected:
            entry.fail(
                f"the added token {shown(text)} would get id {expected}, the file says {number}"
            )
        next_id = max(next_id, number + 1)
        is_special = entry["special"].flag()
        (special if is_special else added)[text] = number
        sees_normalized = entry["normalized"].flag(not is_special)
        if sees_normalized and normalizer is not None:
            entry.fail(f"the added token {shown(text)} is matched in normalised text")
        groups[sees_normalized].append(text)
    check_total([*special, *added], field.place)
    if clash := _overlap(groups[False], groups[True]):
        field.fail(
            f"{shown(clash)} may begin or end inside an added token that is matched at another time"
        )
    return special, added


def _overlap(first: Iterable[str], second: Iterable[str]) -> str | None:
    """A text of one group that shares its end, its beginning or all with one of the other."""
    one, other = list(first), list(second)
    if not one or not other:
        return None
    for a, b in ((one, other), (other, one)):
        # Bounds that no real file comes near: both looks take memory or time beyond its size.
        joined = "\0".join(b)
        if max(map(len, a + b)) > _MAX_COMPARED or len(a) * len(joined) > _MAX_COMPARISONS:
            return max(a + b, key=len)
        beginnings = {text[:i] for text in b for i in range(1, len(text) + 1)}
        for text in a:
            if text in joined or any(text[i:] in beginnings for i in range(len(text))):
                return text
    return None


def save_huggingface(encoding: Encoding, path: Path) -> None:
    """Write a `tokenizer.json`, whole or not at all.

    Special and added tokens are put into the model's vocabulary, where Hugging Face takes their ids
    from. Raises VocabularyError for what the format cannot express.
    """
    format = "a tokenizer.json with ByteLevel"
    rules = encoding._rules
    if rules.normalizer not in (None, "NFC"):
        raise VocabularyError(f"{format} cannot say what {encoding.name} has: {rules}")
    if not rules.longest_first:
        _check_one_order(encoding, format)
    merges, ids = merges_and_ids(encoding, format, allow_lost=True)
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
                f"{text!r} of {encoding.name} is id {number} as a special token and "
                f"{ids[text]} as text: {format} has one id for both"
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
            "ignore_merges": has_lost_tokens(encoding._vocabulary, merges),
            "vocab": dict(sorted(ids.items(), key=lambda item: item[1])),
            "merges": [list(pair) for pair in merges],
        },
    }
    write_whole(path, json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n")


def has_lost_tokens(vocabulary: Vocabulary, merges: list[tuple[str, str]]) -> bool:
    """Whether some token is found only by looking whole pieces up."""
    lengths = np.diff(vocabulary.offsets)
    return int((lengths > 1).sum()) != len(merges)


def _check_one_order(encoding: Encoding, format: str) -> None:
    """tiktoken prefers one of several special tokens by its hash, Hugging Face the longest."""
    order = [text for text, _ in encoding._preferred_specials]
    for i, text in enumerate(order):
        for later in order[i + 1 :]:
            if len(later) > len(text) and later.startswith(text):
                raise VocabularyError(
                    f"where {later!r} begins, {encoding.name} finds {text!r}, and {format} the "
                    "longer one"
                )
