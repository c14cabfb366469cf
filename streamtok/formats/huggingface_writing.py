"""Writes a `tokenizer.json`, of bytes or of characters; see `huggingface.py`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engines.rules import MARK, TokenFlags
from ..errors import VocabularyError
from ..files.part_file import write_whole
from ..normalizers import Normalizer
from ..patterns.named import WHOLE_TEXT_PATTERN
from ..patterns.sequence import SplitSequence
from ..vocabulary.table import NO_ID, Vocabulary
from .character_merges import pattern_of_cuts
from .gpt2 import merges_and_ids
from .huggingface_added_tokens import numbered
from .huggingface_decoders import read_decoder
from .huggingface_normalizers import normalizer_json
from .huggingface_piece_writing import (
    BYTE_LEVEL,
    REPLACE,
    STRIP,
    piece_decoder,
    piece_model,
    wrongly_decoded,
)
from .huggingface_post_processors import post_processor_json
from .huggingface_splits import sequence, write_splits, written_pre_tokenizers
from .json_value import JsonValue
from .merge_lists import to_merges

if TYPE_CHECKING:
    from ..encoding import Encoding
    from ..models.pieces import Pieces
    from .loading import Path

__all__ = ["save_huggingface"]

_FORMAT = "a tokenizer.json"
_TO_SPACES = ("Replace", MARK, " ")


def save_huggingface(encoding: Encoding, path: Path) -> None:
    """Write a `tokenizer.json`. The file appears when it is complete.

    Special and added tokens go into the model's vocabulary, too, where tokenizers would number them
    otherwise. Raises OSError, and VocabularyError for features that the format cannot express.
    """
    rules = encoding._rules
    vocabulary = encoding._vocabulary
    if vocabulary.model is not None:
        return _save_pieces(encoding, vocabulary.model, path)
    is_byte_level = vocabulary.byte_ids is None
    if is_byte_level:
        merges, ids = merges_and_ids(encoding, f"{_FORMAT} with ByteLevel", allow_unreachable=True)
        ignore_merges = has_unreachable_tokens(vocabulary, merges)
        normalizer, pre_tokenizer = rules.normalizer, write_splits(encoding)
        decoders: list[Any] = [BYTE_LEVEL]
    else:
        folds = _folds(encoding)
        merges, ids = _characters(encoding, folds)
        ignore_merges = _has_looked_up_tokens(vocabulary)
        normalizer = _unfolded(rules.normalizer) if folds else rules.normalizer
        is_cut_by_merges = encoding._pat_str in (WHOLE_TEXT_PATTERN, pattern_of_cuts(vocabulary))
        pre_tokenizer = write_splits(encoding, False, not is_cut_by_merges)
        decoders = [REPLACE] * folds + [{"type": "ByteFallback"}, {"type": "Fuse"}]
    if rules.decodes_without_first_space:
        decoders += [] if decoders[-1]["type"] == "Fuse" else [{"type": "Fuse"}]
        decoders.append(STRIP)
    added_tokens = _added_tokens(encoding, ids)
    if _misnumbered(added_tokens, ids) is not None:
        _add_to_model(encoding, added_tokens, ids, is_byte_level, ignore_merges)
    decoder = decoders[0] if len(decoders) == 1 else {"type": "Sequence", "decoders": decoders}
    written_normalizer = _normalizer(encoding, normalizer)
    decoding = read_decoder(JsonValue(decoder, "decoder"))
    if (text := wrongly_decoded(encoding, decoding, written_normalizer)) is not None:
        raise VocabularyError(
            f"{encoding.name} decodes the token {text!r} as no decoder of {_FORMAT} does that can "
            "be written; keep the original"
        )
    _write(
        encoding,
        path,
        added_tokens=added_tokens,
        normalizer=written_normalizer,
        pre_tokenizer=pre_tokenizer,
        decoder=decoder,
        model={
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": not is_byte_level,
            "ignore_merges": ignore_merges,
            "vocab": dict(sorted(ids.items(), key=lambda item: item[1])),
            "merges": [list(pair) for pair in merges],
        },
    )


def _save_pieces(encoding: Encoding, pieces: Pieces, path: Path) -> None:
    model = piece_model(encoding, pieces)
    ids = (
        dict(model["vocab"])
        if pieces.kind != "Unigram"
        else {text: id for id, (text, _) in enumerate(model["vocab"])}
    )
    added_tokens = _added_tokens(encoding, ids)
    if (entry := _misnumbered(added_tokens, ids)) is not None:
        raise VocabularyError(
            f"{_FORMAT} cannot hold the id {entry['id']} of {entry['content']!r}, which is not "
            f"a piece of {encoding.name}: tokenizers takes the next free one"
        )
    normalizer = _normalizer(encoding, encoding._rules.normalizer)
    _write(
        encoding,
        path,
        added_tokens=added_tokens,
        normalizer=normalizer,
        pre_tokenizer=sequence(written_pre_tokenizers(encoding, pieces.stages)),
        decoder=piece_decoder(encoding, pieces, normalizer),
        model=model,
    )


def _write(encoding: Encoding, path: Path, **parts: Any) -> None:
    value: dict[str, Any] = {
        "version": "1.0",
        "truncation": encoding._model_settings.truncation,
        "padding": encoding._model_settings.padding,
        **parts,
        "post_processor": post_processor_json(encoding),
    }
    write_whole(path, json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n")


def _added_tokens(encoding: Encoding, ids: dict[str, int]) -> list[dict[str, Any]]:
    """The entries, by id; ids: those of the model."""
    rules = encoding._rules
    flags = dict(rules.token_flags)
    entries = []
    tokens = [(number, text, True) for text, number in encoding._special_tokens.items()]
    tokens += [(number, text, False) for text, number in rules.added_tokens]
    for number, text, is_special in sorted(tokens):
        flag = flags.get(text, TokenFlags())
        entries.append(
            {
                "id": number,
                "content": text,
                "single_word": flag.single_word,
                "lstrip": flag.lstrip,
                "rstrip": flag.rstrip,
                "normalized": flag.normalized,
                "special": is_special,
            }
        )
        if ids.get(text, number) != number:
            raise VocabularyError(
                f"{_FORMAT} has one id for a text: {text!r} of {encoding.name} has id {number} as "
                f"a special token and {ids[text]} as plain text"
            )
    return entries


def _misnumbered(added_tokens: list[dict[str, Any]], ids: dict[str, int]) -> dict[str, Any] | None:
    """The first entry that tokenizers would give another id."""
    numbers = numbered([entry["content"] for entry in added_tokens], ids, len(ids))
    return next((x for x in added_tokens if numbers.get(x["content"]) != x["id"]), None)


def _add_to_model(
    encoding: Encoding,
    added_tokens: list[dict[str, Any]],
    ids: dict[str, int],
    is_byte_level: bool,
    ignore_merges: bool,
) -> None:
    """Put added tokens among the model's, where no text but their own may become one."""
    for entry in added_tokens:
        text = entry["content"]
        is_read = (len(text) == 1 and not is_byte_level) or (ignore_merges and entry["single_word"])
        if text not in ids and is_read:
            raise VocabularyError(
                f"{_FORMAT} cannot hold the id {entry['id']} of {text!r} of {encoding.name}: "
                "tokenizers takes it from the model, which would find the token where it is text"
            )
        ids[text] = entry["id"]


def _normalizer(encoding: Encoding, normalizer: Normalizer | str | None) -> dict[str, Any] | None:
    if normalizer is None:
        return None
    if normalizer == "NFC":
        return {"type": "NFC"}
    if isinstance(normalizer, str):
        raise VocabularyError(
            f"{_FORMAT} cannot express the normalizer {normalizer!r} of {encoding.name}"
        )
    try:
        return normalizer_json(normalizer)
    except ValueError as error:
        raise VocabularyError(f"{encoding.name}: {error}") from None


def _folds(encoding: Encoding) -> bool:
    """Whether "▁" and spaces are both spaces: see `huggingface_models.py`."""
    rules = encoding._rules
    second = () if rules.second_normalizer is None else rules.second_normalizer.spec
    if isinstance(rules.normalizer, str):
        raise VocabularyError(
            f"{_FORMAT} cannot express the normalizer {rules.normalizer!r} of {encoding.name}, "
            "which merges characters"
        )
    first = () if rules.normalizer is None else rules.normalizer.spec
    for kind, *_ in first:
        if kind in ("JoinedSpaces", "LongestMap"):
            raise VocabularyError(
                f"{_FORMAT} cannot express the step {kind} of the normalizer of {encoding.name}, "
                "which only SentencePiece has"
            )
    pattern = encoding.pattern
    if isinstance(pattern, SplitSequence) and pattern.spaces_are_marks:
        return True
    tokens = [*encoding._vocabulary.to_list(), *encoding._vocabulary.decode_only.values()]
    has_marks = any(MARK.encode() in token for token in tokens)  # which no text becomes
    return _TO_SPACES in (*first[-1:], *second) and not has_marks


def _unfolded(normalizer: Normalizer | str | None) -> Normalizer | str | None:
    if not isinstance(normalizer, Normalizer) or normalizer.spec[-1:] != (_TO_SPACES,):
        return normalizer
    *steps, _ = normalizer.spec
    if steps == [("Prepend", " ")]:
        steps = [("Prepend", MARK)]
    return Normalizer.from_spec((*steps, ("Replace", " ", MARK)))


def _characters(encoding: Encoding, folds: bool) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Merges and ids of a vocabulary of characters, with the tokens of bytes."""
    vocabulary = encoding._vocabulary
    assert vocabulary.byte_ids is not None

    def text_of(token: bytes) -> str:
        text = token.decode()
        return text.replace(" ", MARK) if folds else text

    tokens = vocabulary.to_list()
    byte_ids = vocabulary.byte_ids.tolist()
    # A byte's token may be its character's, where the character has an id and the byte has none. If
    # no token has the character, that is the same.
    used = {byte for token in tokens if len(token) > 1 for byte in token if byte < 0x80}
    ids = {f"<0x{byte:02X}>": number for byte, number in enumerate(byte_ids)}
    for token, number in zip(tokens, vocabulary.ids.tolist(), strict=True):
        if number == NO_ID:
            continue
        if len(token) > 1 or number != byte_ids[token[0]]:
            ids[text_of(token)] = number
        elif token[0] in used:
            del ids[f"<0x{token[0]:02X}>"]
            ids[text_of(token)] = number
    known = {
        *byte_ids, *encoding._special_tokens.values(),
        *(number for _, number in encoding._rules.added_tokens),
    }  # fmt: skip
    for number, token in vocabulary.decode_only.items():
        if number in known:
            continue
        text = token.decode() if text_of(token) in ids else text_of(token)  # a real space
        if text in ids:
            raise VocabularyError(f"{_FORMAT} cannot hold two ids for {text!r} of {encoding.name}")
        ids[text] = number
    merges = [
        (text_of(left), text_of(right))
        for left, right in to_merges(vocabulary)
        if not 0x80 <= right[0] < 0xC0  # the bytes of one character
    ]
    return merges, ids


def has_unreachable_tokens(vocabulary: Vocabulary, merges: list[tuple[str, str]]) -> bool:
    """Whether there are tokens that no merges make."""
    lengths = np.diff(vocabulary.offsets)
    return int((lengths > 1).sum()) != len(merges)


def _has_looked_up_tokens(vocabulary: Vocabulary) -> bool:
    lengths = np.diff(vocabulary.offsets)
    assert vocabulary.lefts is not None
    return bool(((lengths > 1) & (vocabulary.lefts == 0)).any())
