"""Writes a `tokenizer.json`: byte-level BPE from any source, and WordPiece as streamtok trains it.

Any other encoding raises an error that names it: keep the file that it was loaded from.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engines.rules import TokenFlags
from ..errors import VocabularyError
from ..files import write_whole
from ..normalizers import PREFIX_SPACE
from ..patterns.named import BERT_PATTERN, GPT2_PATTERN, WHOLE_TEXT_PATTERN
from ..patterns.pattern import Pattern
from ..patterns.sequence import SplitSequence, same_pieces
from ..patterns.splits import Split
from ..vocabulary.byte_alphabet import to_bytes
from .gpt2 import merges_and_ids
from .huggingface_added_tokens import numbered
from .huggingface_pieces import word_piece_encoding
from .huggingface_post_processors import post_processor_json
from .huggingface_splits import BEHAVIORS
from .oniguruma import to_oniguruma

if TYPE_CHECKING:
    from ..encoding import Encoding
    from ..vocabulary.pieces import Pieces
    from .loading import Path

__all__ = ["save_huggingface"]

_FORMAT = "a tokenizer.json"
_BERT = {"BertClean": "clean_text", "BertChinese": "handle_chinese_chars",
         "BertAccents": "strip_accents"}  # fmt: skip
_SIMPLE = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Nmt", "StripAccents")


def save_huggingface(encoding: Encoding, path: Path) -> None:
    """Write a `tokenizer.json`: byte-level BPE, or WordPiece as `Trainer.train_wordpiece` makes it.

    The file appears only once it is complete. Special and added tokens are also written to the
    model's vocabulary where tokenizers would otherwise give them different ids. Raises OSError, and
    VocabularyError for any other model or normalizer; then keep the original file.
    """
    pieces = encoding.definition.vocabulary.model
    parts = _byte_level_parts(encoding) if pieces is None else _word_piece_parts(encoding, pieces)
    value: dict[str, Any] = {
        "version": "1.0",
        "truncation": encoding.definition.model_settings.truncation,
        "padding": encoding.definition.model_settings.padding,
        **parts,
        "post_processor": post_processor_json(encoding),
    }
    write_whole(path, json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n")


def _refuse(encoding: Encoding, what: str) -> VocabularyError:
    return VocabularyError(
        f"{encoding.name} {what}; keep the original file: as {_FORMAT}, only byte-level BPE "
        "without a normalizer and WordPiece trained by streamtok are written"
    )


def _byte_level_parts(encoding: Encoding) -> dict[str, Any]:
    rules, vocabulary = encoding.definition.rules, encoding.definition.vocabulary
    if vocabulary.byte_ids is not None:
        raise _refuse(encoding, "merges characters")
    if rules.normalizer is not None:
        raise _refuse(encoding, "has a normalizer")
    if rules.drops_first_space or rules.first_texts or rules.decoded_texts:
        raise _refuse(encoding, "has another decoder than ByteLevel")
    added_tokens = _added_tokens(encoding)
    for entry in added_tokens:
        text = entry["content"]
        if not text.isascii() and to_bytes(text) is not None:
            raise _refuse(encoding, f"has the token {text!r}, which ByteLevel decodes to bytes")
    merges, ids = merges_and_ids(encoding, f"{_FORMAT} with ByteLevel", allow_unreachable=True)
    ignore_merges = int((np.diff(vocabulary.offsets) > 1).sum()) != len(merges)
    for entry in added_tokens:
        text, number = entry["content"], entry["id"]
        if ids.get(text, number) != number:
            raise VocabularyError(
                f"{_FORMAT} has one id for a text: {text!r} of {encoding.name} has id {number} as "
                f"a special token and {ids[text]} as plain text"
            )
    numbers = numbered([entry["content"] for entry in added_tokens], ids, len(ids))
    if any(numbers.get(entry["content"]) != entry["id"] for entry in added_tokens):
        for entry in added_tokens:
            if ignore_merges and entry["single_word"] and entry["content"] not in ids:
                raise VocabularyError(
                    f"{_FORMAT} cannot hold the id {entry['id']} of {entry['content']!r} of "
                    f"{encoding.name}: tokenizers takes it from the model, which would find the "
                    "token where it is text"
                )
            ids[entry["content"]] = entry["id"]
    return {
        "added_tokens": added_tokens,
        "normalizer": None,
        "pre_tokenizer": _byte_level_cuts(encoding),
        "decoder": _byte_level(True, True),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": ignore_merges,
            "vocab": dict(sorted(ids.items(), key=lambda item: item[1])),
            "merges": [list(pair) for pair in merges],
        },
    }


def _word_piece_parts(encoding: Encoding, pieces: Pieces) -> dict[str, Any]:
    bounds = pieces.offsets.tolist()
    texts = [pieces.blob[start:end].decode() for start, end in itertools.pairwise(bounds)]
    rows = zip(texts, pieces.ids.tolist(), strict=True)
    vocab = dict(sorted(rows, key=lambda row: row[1]))
    specials = encoding.definition.specials.special
    if pieces.kind != "WordPiece" or not specials.items() <= vocab.items():
        raise _refuse(encoding, f"has the pieces of {pieces.kind}")
    assert encoding.pattern is not None
    made = word_piece_encoding(
        encoding.name, encoding.pattern, vocab, specials, pieces.unknown, pieces.prefix,
        encoding.definition.rules.normalizer,
    )  # fmt: skip
    if made.digest != encoding.digest:
        raise _refuse(encoding, "has other settings of WordPiece than training gives")
    return {
        "added_tokens": _added_tokens(encoding),
        "normalizer": _normalizer(encoding),
        "pre_tokenizer": _sequence(_cuts(encoding)),
        "decoder": {"type": "WordPiece", "prefix": pieces.prefix, "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": next(text for text, id in vocab.items() if id == pieces.unknown),
            "continuing_subword_prefix": pieces.prefix,
            "max_input_chars_per_word": pieces.most_characters,
            "vocab": vocab,
        },
    }


def _added_tokens(encoding: Encoding) -> list[dict[str, Any]]:
    """The entries of `added_tokens`, in order of id."""
    rules = encoding.definition.rules
    flags = dict(rules.token_flags)
    tokens = [(number, text, True) for text, number in encoding.definition.specials.special.items()]
    tokens += [(number, text, False) for text, number in rules.added_tokens]
    return [
        {
            "id": number,
            "content": text,
            **flags.get(text, TokenFlags())._asdict(),
            "special": is_special,
        }
        for number, text, is_special in sorted(tokens)
    ]


def _normalizer(encoding: Encoding) -> dict[str, Any] | None:
    """The normalizer as JSON. For accents, BertNormalizer repeats NFD, which changes nothing."""
    steps: list[dict[str, Any]] = []
    normalizer = encoding.definition.rules.normalizer
    for kind, *_ in normalizer.spec if normalizer is not None else ():
        if kind in _BERT:
            off = dict.fromkeys((*_BERT.values(), "lowercase"), False)
            steps.append({"type": "BertNormalizer", **off, _BERT[kind]: True})
        elif kind in _SIMPLE:
            steps.append({"type": kind})
        else:
            raise _refuse(encoding, f"has a normalizer with the step {kind}")
    return {"type": "Sequence", "normalizers": steps} if steps else None


def _byte_level_cuts(encoding: Encoding) -> dict[str, Any] | None:
    second = encoding.definition.rules.second_normalizer
    prefix = second is not None and second.spec == (PREFIX_SPACE.spec,)
    cuts = _cuts(encoding)
    use_regex = cuts == [_split(Split(GPT2_PATTERN))]
    if use_regex:
        cuts = []
    if (second is not None and not prefix) or (prefix and cuts):
        raise _refuse(encoding, "changes the text before it cuts it")
    return _sequence([*cuts, _byte_level(prefix, use_regex)])


def _sequence(parts: list[dict[str, Any]]) -> dict[str, Any] | None:
    """These pre-tokenizers as a single one; None if there are none."""
    if len(parts) == 1 and parts[0]["type"] != "Split":
        return parts[0]
    return {"type": "Sequence", "pretokenizers": parts} if parts else None


def _cuts(encoding: Encoding) -> list[dict[str, Any]]:
    """The pre-tokenizers that cut as the pattern does."""
    pattern = encoding.pattern
    if pattern is None:
        raise VocabularyError(
            f"no DFA matches the pattern of {encoding.name}: it cannot be compared"
        )
    if isinstance(pattern, SplitSequence):
        return [*map(_split, pattern.splits)]
    if pattern.is_total and same_pieces(pattern, Pattern.compile(GPT2_PATTERN)):
        return [_split(Split(GPT2_PATTERN))]
    if pattern.is_total and same_pieces(pattern, Pattern.compile(WHOLE_TEXT_PATTERN)):
        return []
    return [_split(Split(pattern.source, "isolated" if pattern.is_total else "only"))]


def _split(split: Split) -> dict[str, Any]:
    if split == Split(BERT_PATTERN, "only"):
        return {"type": "BertPreTokenizer"}
    pattern, behavior = split
    names = {own: (name, own == "only") for name, (own, _) in BEHAVIORS.items()}
    name, invert = names.get(behavior, ("Removed", True))
    return {
        "type": "Split",
        "pattern": {"Regex": to_oniguruma(pattern)},
        "behavior": name,
        "invert": invert,
    }


def _byte_level(add_prefix_space: bool, use_regex: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": True,
        "use_regex": use_regex,
    }
