"""SentencePiece's `.model`: BPE with byte fallback, as Llama 2's, Mistral's first and Gemma's are.

SentencePiece merges characters, not bytes, the whole text is one piece, and a character that is no
piece becomes its bytes, one id each. Here the bytes of a character are merged first: every
character that occurs in a piece is a token, and so is each beginning of its bytes, before all real
pieces in the order of merges. UTF-8 tells where a character begins, so that these merges cross no
boundary and all happen before any other; what they leave are just SentencePiece's characters, and
from there on both merge the two neighbours that are the piece of the highest score, of equal ones
the leftmost. Such tokens have no id of their own: what is left of them leaves as bytes.

A space is "▁" in the pieces; here it stays a space, and so does "▁" in a text, as both are one
to SentencePiece. Where no piece has a space behind another character, which is how most models are
trained, the text may be cut before such a space: no merge could cross it.

Refused by name: other models than BPE, models without byte fallback, normalizers that change more
than spaces, "remove_extra_whitespaces", spaces as suffixes, unused pieces.
(github.com/google/sentencepiece, Apache-2.0)
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..engines.rules import MARK, TextRules
from ..errors import VocabularyError
from ..files.part_file import write_whole
from ..vocabulary.table import MAX_TOKEN_BYTES, NO_ID, Vocabulary, offsets_of
from .loading import make_encoding, read_bytes, shown, stem
from .merge_lists import without_lost_tokens
from .protobuf import BYTES, FLOAT, VARINT, Value, expect, field, fields

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .loading import Path

__all__ = ["load_sentencepiece", "save_sentencepiece"]

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
_MODELS = {1: "unigram", 2: "BPE", 3: "word", 4: "char"}
_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")
_MAX_PIECES = 1 << 20
_MAX_BYTES = 1 << 26
_WHOLE_TEXT = r"[\s\S]+"
_CUT_BEFORE_SPACES = r" *[^ ]+| +"

# Numbers of fields in sentencepiece_model.proto.
_PIECES, _TRAINER, _NORMALIZER, _SELF_TEST, _DENORMALIZER = range(1, 6)
_PIECE, _SCORE, _TYPE = 1, 2, 3
_MODEL_TYPE, _VOCAB_SIZE, _SUFFIX, _FALLBACK = 3, 4, 24, 35
_UNK_ID, _BOS_ID, _EOS_ID, _PAD_ID, _UNK_PIECE = 40, 41, 42, 43, 45
_NAME, _CHARSMAP, _DUMMY, _EXTRA, _ESCAPE = range(1, 6)
_TRAINER_KINDS = {_MODEL_TYPE: VARINT, _SUFFIX: VARINT, _FALLBACK: VARINT}
_NORMALIZER_KINDS = {
    _NAME: BYTES, _CHARSMAP: BYTES, _DUMMY: VARINT, _EXTRA: VARINT, _ESCAPE: VARINT
}  # fmt: skip


def load_sentencepiece(path: Path, *, name: str | None = None) -> Encoding:
    """Encoding: pieces, special tokens and the space rule of a SentencePiece BPE model.

    `encode` gives the ids of `SentencePieceProcessor.encode`, which finds no control symbols in
    text; here they are special tokens. User-defined symbols are always found. `decode` takes the
    space that was put before the text off again. Raises VocabularyError naming file and place.
    """
    source = os.fspath(path)
    return read_sentencepiece(read_bytes(path), source, name or stem(path))


def read_sentencepiece(data: bytes, source: str, name: str) -> Encoding:
    """The encoding of the contents of a `.model`."""
    pieces: list[tuple[str, float, int]] = []
    trainer: dict[int, Value] = {}  # a message that comes twice is one, as Protocol Buffers has it
    normalizer: dict[int, Value] = {}
    has_trainer = False
    for number, kind, value, place in fields(data, 0, len(data), source):
        end = place + len(value) if isinstance(value, bytes) else place
        if number == _PIECES:
            expect(kind, BYTES, "a piece", source, place)
            pieces.append(_piece(data, place, end, source, len(pieces)))
            if len(pieces) > _MAX_PIECES or place > _MAX_BYTES:
                raise VocabularyError(
                    f"{source}: more than {_MAX_PIECES} pieces, or {_MAX_BYTES >> 20} MiB of them"
                )
        elif number == _TRAINER:
            expect(kind, BYTES, "the trainer's settings", source, place)
            _read_settings(data, place, end, source, _TRAINER_KINDS, trainer)
            has_trainer = True
        elif number == _NORMALIZER:
            expect(kind, BYTES, "the normalizer", source, place)
            _read_settings(data, place, end, source, _NORMALIZER_KINDS, normalizer)
        elif number == _DENORMALIZER and kind == BYTES:
            for inner, _, charsmap, _ in fields(data, place, end, source):
                if inner == _CHARSMAP and charsmap:
                    raise VocabularyError(f"{source}: a denormalizer is not supported")
    if not has_trainer:
        raise VocabularyError(
            f"{source}: no SentencePiece model: it does not say of which type it is"
        )
    _check_trainer(trainer, source)
    space_first = _check_normalizer(normalizer, source)
    vocabulary, special, added = _sorted(pieces, source)
    return make_encoding(
        source,
        name,
        pat_str=_CUT_BEFORE_SPACES if _is_cut_before_spaces(vocabulary) else _WHOLE_TEXT,
        mergeable_ranks=vocabulary,
        special_tokens=special,
        rules=TextRules(
            tuple(added.items()), longest_first=True, normalizer="spaces", space_first=space_first
        ),
    )


def _piece(data: bytes, start: int, end: int, source: str, number: int) -> tuple[str, float, int]:
    text, score, type_ = "", 0.0, NORMAL
    for key, kind, value, place in fields(data, start, end, source):
        if key == _PIECE:
            expect(kind, BYTES, f"piece {number}", source, place)
            try:
                text = bytes(value).decode("utf-8") if isinstance(value, bytes) else ""
            except UnicodeDecodeError:
                raise VocabularyError(
                    f"{source}, byte {place}: piece {number} is not UTF-8"
                ) from None
        elif key == _SCORE:
            expect(kind, FLOAT, f"the score of piece {number}", source, place)
            score = float(value)
        elif key == _TYPE:
            expect(kind, VARINT, f"the type of piece {number}", source, place)
            type_ = int(value)
    if not text or len(text.encode()) > MAX_TOKEN_BYTES or not math.isfinite(score):
        raise VocabularyError(
            f"{source}, byte {start}: piece {number}, {shown(text)}, has {len(text)} characters "
            f"and the score {score}"
        )
    return text, score, type_


def _read_settings(
    data: bytes, start: int, end: int, source: str, kinds: dict[int, int], into: dict[int, Value]
) -> None:
    """Put a message's fields in `kinds` into `into`; of a field given twice the last counts."""
    for key, kind, value, place in fields(data, start, end, source):
        if key in kinds:
            expect(kind, kinds[key], f"setting {key}", source, place)
            into[key] = value


def _check_trainer(settings: Mapping[int, Value], source: str) -> None:
    model = int(settings.get(_MODEL_TYPE, 1))
    if settings.get(_SUFFIX):
        raise VocabularyError(f"{source}: treat_whitespace_as_suffix is not supported")
    if model != 2:
        raise VocabularyError(
            f"{source}: a {_MODELS.get(model, model)} model is not supported: only BPE is"
        )
    if not settings.get(_FALLBACK):
        raise VocabularyError(f"{source}: a model without byte_fallback is not supported")


def _check_normalizer(settings: Mapping[int, Value], source: str) -> bool:
    """Whether a space is put before the text.

    What a file does not say, or a file without a normalizer, has the defaults of
    sentencepiece_model.proto: spaces at both ends and runs of them are removed.
    """
    if settings.get(_CHARSMAP):
        rule = settings.get(_NAME, b"")
        shown_rule = shown(rule.decode("utf-8", "replace") if isinstance(rule, bytes) else rule)
        raise VocabularyError(
            f"{source}: the normalizer {shown_rule} is not supported: only identity is"
        )
    if settings.get(_EXTRA, 1):
        raise VocabularyError(f"{source}: remove_extra_whitespaces is not supported")
    if not settings.get(_ESCAPE, 1):
        raise VocabularyError(f"{source}: escape_whitespaces=false is not supported")
    return bool(settings.get(_DUMMY, 1))


def _sorted(
    pieces: list[tuple[str, float, int]], source: str
) -> tuple[Vocabulary, dict[str, int], dict[str, int]]:
    """The vocabulary, special tokens and user-defined symbols."""
    special: dict[str, int] = {}
    added: dict[str, int] = {}
    byte_ids: dict[int, int] = {}
    normal: dict[str, tuple[float, int]] = {}
    seen: set[str] = set()
    for number, (text, score, type_) in enumerate(pieces):
        where = f"{source}: piece {number}, {shown(text)}"
        if text in seen:
            raise VocabularyError(f"{where}, comes a second time")
        seen.add(text)
        spaced = text.replace(MARK, " ")
        if type_ == NORMAL:
            if " " in text:
                raise VocabularyError(f"{where}, has a space that no text can have")
            normal[spaced] = score, number
        elif type_ in (UNKNOWN, CONTROL):
            special[spaced] = number
        elif type_ == USER_DEFINED:
            added[spaced] = number
        elif type_ == BYTE:
            found = _BYTE_PIECE.fullmatch(text)
            if not found:
                raise VocabularyError(f"{where}, is no byte such as <0x0A>")
            byte_ids[int(found[1], 16)] = number
        else:
            kind = "unused" if type_ == UNUSED else f"of type {type_}"
            raise VocabularyError(f"{where}, is {kind}: that is not supported")
    if len(byte_ids) != 256:
        raise VocabularyError(f"{source}: only {len(byte_ids)} of the 256 bytes are pieces")
    if len(special) + len(added) + 256 + len(normal) != len(pieces):
        raise VocabularyError(f"{source}: pieces differ only in what stands for a space")
    if " " not in normal:
        raise VocabularyError(f"{source}: a model without the piece {MARK!r} is not supported")
    return _vocabulary(normal, byte_ids), special, added


def _vocabulary(normal: dict[str, tuple[float, int]], byte_ids: dict[int, int]) -> Vocabulary:
    ids: dict[bytes, int] = {bytes([byte]): byte_ids[byte] for byte in range(256)}
    others: dict[int, bytes] = {}
    characters = sorted({character for piece in normal for character in piece})
    wide = [character.encode() for character in characters if character > "\x7f"]
    for size in (2, 3, 4):
        for character in wide:
            if len(character) >= size:
                ids.setdefault(character[:size], NO_ID)
    scores: dict[bytes, float] = {}
    # Characters are pieces that no merge makes: their place in the order is that of their bytes.
    for piece, (score, number) in sorted(normal.items(), key=lambda item: -item[1][0]):
        token = piece.encode()
        if len(piece) > 1:
            scores[token] = score
        elif len(token) == 1:
            others[ids[token]] = token  # the byte's own id still decodes
        ids[token] = number
    tokens = list(ids)
    ties: list[int] = []
    for i, token in enumerate(tokens):
        is_tied = i > 0 and token in scores and scores[token] == scores.get(tokens[i - 1])
        ties.append(ties[-1] if is_tied else i)
    return without_lost_tokens(
        Vocabulary(
            b"".join(tokens),
            offsets_of(np.fromiter(map(len, tokens), np.int64, len(tokens))),
            np.array([ids[token] for token in tokens], np.uint32),
            byte_ids=np.array([byte_ids[byte] for byte in range(256)], np.uint32),
            ties=None if len(set(ties)) == len(ties) else np.array(ties, np.uint32),
            decode_only=others,
        )
    )


def _is_cut_before_spaces(vocabulary: Vocabulary) -> bool:
    return not any(re.search(rb"[^ ] ", token) for token in vocabulary.to_list())


def save_sentencepiece(encoding: Encoding, path: Path) -> None:
    """Write a SentencePiece model, whole or not at all.

    Raises VocabularyError for what it cannot express: tokens of bytes instead of characters, other
    split patterns than the ones that come from such a model, ids with holes.
    """
    vocabulary, rules = encoding._vocabulary, encoding._rules
    if vocabulary.byte_ids is None or rules.normalizer != "spaces":
        raise VocabularyError(
            f"a SentencePiece model is of characters and spaces, {encoding.name} is of bytes"
        )
    if encoding._pat_str not in (_CUT_BEFORE_SPACES, _WHOLE_TEXT):
        raise VocabularyError(
            f"a SentencePiece model has no split pattern, {encoding.name} has "
            f"{shown(encoding._pat_str)}"
        )
    rows: dict[int, tuple[str, float, int]] = {}
    for byte, number in enumerate(vocabulary.byte_ids.tolist()):
        rows[number] = f"<0x{byte:02X}>", 0.0, BYTE
    places = range(len(vocabulary)) if vocabulary.ties is None else vocabulary.ties.tolist()
    tokens = vocabulary.to_list()
    known = list(zip(tokens, vocabulary.ids.tolist(), places, strict=True))
    # What only decodes takes part in no merge, whatever its score.
    known += [(token, number, len(tokens)) for number, token in vocabulary.decode_only.items()]
    for token, number, place in known:
        if number != NO_ID and number not in rows:
            rows[number] = token.decode().replace(" ", MARK), float(-place), NORMAL
    for text, number in encoding._special_tokens.items():
        rows[number] = text, 0.0, UNKNOWN if text == "<unk>" else CONTROL
    for text, number in rules.added_tokens:
        rows[number] = text.replace(" ", MARK), 0.0, USER_DEFINED
    if sorted(rows) != list(range(len(rows))):
        raise VocabularyError(
            f"a SentencePiece model has no holes, the ids of {encoding.name} have"
        )
    specials = encoding._special_tokens
    if "<unk>" not in specials:
        raise VocabularyError(f"a SentencePiece model has an <unk>, {encoding.name} has none")
    trainer = field(_MODEL_TYPE, 2) + field(_VOCAB_SIZE, len(rows)) + field(_FALLBACK, 1)
    for key, text in ((_UNK_ID, "<unk>"), (_BOS_ID, "<s>"), (_EOS_ID, "</s>"), (_PAD_ID, "<pad>")):
        trainer += field(key, specials.get(text, -1))
    normalizer = (
        field(_NAME, b"identity") + field(_DUMMY, int(rules.space_first)) + field(_EXTRA, 0)
    )
    parts = [
        field(_PIECES, field(_PIECE, text.encode()) + field(_SCORE, score) + field(_TYPE, type_))
        for _, (text, score, type_) in sorted(rows.items())
    ]
    parts += [field(_TRAINER, trainer), field(_NORMALIZER, normalizer)]
    write_whole(path, b"".join(parts))
