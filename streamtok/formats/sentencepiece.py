"""SentencePiece's `.model`: BPE, as in Llama 2, the first Mistrals and Gemma; unigram, as in T5 and
XLM-R.

"Piece" is SentencePiece's word for a token, and is used only in this sense here.

SentencePiece merges characters, not bytes. The whole text is one pre-token, and a character that is
not a piece becomes the ids of its bytes. `character_merges.py` explains how the core does that:
every character that occurs in a piece is a token, and the bytes of characters merge before all
pieces. From there on, both programs merge the two neighbours that form the piece with the highest
score; of equal scores, the leftmost pair merges first.

SentencePiece writes a space as "▁" in pieces and does not distinguish the two. In streamtok, a
space stays a space, and a "▁" in a text becomes one.

Without byte fallback, each run of unknown characters becomes the id of `<unk>`: `UnknownRuns`
replaces the run by one byte that no piece contains.

The unigram model also encodes the text as a whole. An unknown space becomes the bytes of "▁"
(`_core/models`). User-defined symbols are ordinary pieces, but whatever the file says, they get a
score that usually makes them win. All this is as in sentencepiece 0.2.2 and later; earlier versions
used another score and added up very long sums differently.

`sentencepiece_normalizer.py` reads the normalizer. The following raise an error that names them:
models of words and of characters, spaces as suffixes, unused pieces of BPE, and control symbols of
one character.
(github.com/google/sentencepiece, Apache-2.0)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..engines.rules import MARK
from ..errors import VocabularyError
from ..normalizers import Normalizer, UnknownRuns
from ..patterns.named import WHOLE_TEXT_PATTERN
from ..vocabulary.arrays import offsets_of
from ..vocabulary.pieces import Pieces
from ..vocabulary.table import MAX_TOKEN_BYTES, NO_ID, Vocabulary
from .character_merges import CUT_BEFORE_SPACES, character_prefixes, pattern_of_cuts
from .loading import BYTE_TEXTS, make_encoding, shown
from .merge_lists import without_unreachable_tokens
from .protobuf import BYTES, FLOAT, VARINT, Value, fields
from .sentencepiece_normalizer import CHARSMAP, KINDS, rules_of

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["read_sentencepiece"]

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE = 1, 2
_UNSUPPORTED = {3: "word", 4: "char"}
_MAX_PIECES = 1 << 21

# Field numbers in sentencepiece_model.proto.
_PIECES, _TRAINER, _NORMALIZER, _, _DENORMALIZER = range(1, 6)
_PIECE, _SCORE, _TYPE = 1, 2, 3
_MODEL_TYPE, _SUFFIX, _FALLBACK = 3, 24, 35
_MODEL_KINDS = dict.fromkeys((_PIECES, _TRAINER, _NORMALIZER, _DENORMALIZER), BYTES)
_PIECE_KINDS = {_PIECE: BYTES, _SCORE: FLOAT, _TYPE: VARINT}
_TRAINER_KINDS = {_MODEL_TYPE: VARINT, _SUFFIX: VARINT, _FALLBACK: VARINT}

_UNKNOWN_PENALTY = np.float32(10)
_SCORE_PER_BYTE = 0.1  # of a user-defined symbol, for each byte but one


class _Rows(NamedTuple):
    """The pieces by type, with their ids and with spaces in place of "▁"."""

    normal: dict[str, tuple[float, int]]  # with the score
    symbols: dict[str, int]  # user-defined
    unused: dict[str, int]
    special: dict[str, int]  # control symbols and unknown pieces
    unknown_ids: list[int]
    byte_ids: dict[int, int]  # of all bytes, or empty

    def unknown(self, source: str) -> int:
        """The id of unknown characters. Raises VocabularyError unless one piece stands for them."""
        if len(self.unknown_ids) != 1:
            raise VocabularyError(
                f"{source}: expected one piece for unknown characters, found "
                f"{len(self.unknown_ids)}"
            )
        return self.unknown_ids[0]


def read_sentencepiece(data: bytes, source: str, name: str) -> Encoding:
    """The encoding in the contents of a `.model` file.

    `encode` returns the ids of `SentencePieceProcessor.encode`, which never finds control symbols
    in text; in this encoding, they are special tokens. User-defined symbols are always found. The
    text is normalized as the model says. `decode` removes the space that `encode` puts before the
    text, and returns "<unk>" where SentencePiece has " ⁇ ". A model with a map takes about 0.5 s to
    load. Raises VocabularyError naming the file and the position.
    """
    pieces: list[tuple[str, float, int]] = []
    trainer: dict[int, Value] = {}  # Protocol Buffers joins repeated messages
    normalizer: dict[int, Value] = {}
    has_trainer = False
    for number, value, offset in fields(data, 0, len(data), _MODEL_KINDS, "the model", source):
        end = offset + len(value)
        if number == _PIECES:
            pieces.append(_piece(data, offset, end, source, len(pieces)))
            if len(pieces) > _MAX_PIECES:
                raise VocabularyError(f"{source}: more than {_MAX_PIECES} pieces")
        elif number == _TRAINER:
            trainer |= _message(data, offset, end, _TRAINER_KINDS, "the trainer", source)
            has_trainer = True
        elif number == _NORMALIZER:
            normalizer |= _message(data, offset, end, KINDS, "the normalizer", source)
        elif _message(data, offset, end, {CHARSMAP: BYTES}, "the denormalizer", source).get(
            CHARSMAP
        ):
            raise VocabularyError(f"{source}: a denormalizer is not supported")
    if not has_trainer:
        raise VocabularyError(
            f"{source}: not a SentencePiece model: the trainer's settings are missing"
        )
    if trainer.get(_SUFFIX):
        raise VocabularyError(f"{source}: treat_whitespace_as_suffix is not supported")
    model = int(trainer.get(_MODEL_TYPE, UNIGRAM))
    if model not in (UNIGRAM, BPE):
        raise VocabularyError(
            f"{source}: SentencePiece models of type {_UNSUPPORTED.get(model, model)} are not "
            "supported: expected bpe or unigram"
        )
    return encoding_of_pieces(pieces, model, bool(trainer.get(_FALLBACK)), normalizer, source, name)


def encoding_of_pieces(
    pieces: list[tuple[str, float, int]],
    model: int,
    has_bytes: bool,
    normalizer: Mapping[int, Value],
    source: str,
    name: str,
) -> Encoding:
    """The encoding of pieces, each (text, score, type), in order of id.

    model: UNIGRAM or BPE. has_bytes: whether unknown characters become their bytes. normalizer: the
    settings of the normalizer, as for `rules_of`. Raises VocabularyError.
    """
    rows = _rows_of(pieces, has_bytes, source)
    if model == UNIGRAM:
        vocabulary, pattern = _unigram(len(pieces), rows, source), WHOLE_TEXT_PATTERN
        rules = rules_of(normalizer, {}, None, source, tuple(rows.symbols))
    else:
        vocabulary, unknown = _merging(rows, source)
        pattern = _pattern(vocabulary, unknown)
        rules = rules_of(normalizer, rows.symbols, unknown, source)
    return make_encoding(
        source,
        name,
        pat_str=pattern,
        mergeable_ranks=vocabulary,
        special_tokens=rows.special,
        rules=rules,
    )


def _message(
    data: bytes, start: int, end: int, kinds: dict[int, int], subject: str, source: str
) -> dict[int, Any]:
    """The fields of a message that are in `kinds`. Of duplicates, the last one counts."""
    return {key: value for key, value, _ in fields(data, start, end, kinds, subject, source)}


def _piece(data: bytes, start: int, end: int, source: str, number: int) -> tuple[str, float, int]:
    subject = f"piece {number}"
    piece = _message(data, start, end, _PIECE_KINDS, subject, source)
    try:
        text: str = piece.get(_PIECE, b"").decode()
    except UnicodeDecodeError:
        raise VocabularyError(f"{source}, byte {start}: {subject} is not UTF-8") from None
    score, type_ = piece.get(_SCORE, 0.0), piece.get(_TYPE, NORMAL)
    if not 0 < len(text.encode()) <= MAX_TOKEN_BYTES or not math.isfinite(score):
        raise VocabularyError(
            f"{source}, byte {start}: piece {number}, {shown(text)}, must have 1 … "
            f"{MAX_TOKEN_BYTES} bytes and a finite score: it has {len(text)} characters and the "
            f"score {score}"
        )
    return text, score, type_


def _rows_of(pieces: list[tuple[str, float, int]], has_bytes: bool, source: str) -> _Rows:
    """The pieces by type. Raises VocabularyError for pieces that are not supported."""
    rows = _Rows({}, {}, {}, {}, [], {})
    normal, added, unused, special, unknown_ids, byte_ids = rows
    seen: set[str] = set()
    for number, (text, score, type_) in enumerate(pieces):
        is_twice = text in seen
        seen.add(text)
        spaced = text.replace(MARK, " ")
        if type_ == NORMAL and not is_twice and " " not in text:
            normal[spaced] = score, number
            continue
        where = f"{source}: piece {number}, {shown(text)}"
        if is_twice:
            raise VocabularyError(f"{where}, is given twice")
        if type_ in (NORMAL, USER_DEFINED, UNUSED) and " " in text:
            raise VocabularyError(f"{where}, has a space: expected {MARK!r} for spaces")
        if type_ in (UNKNOWN, CONTROL):
            if type_ == CONTROL and len(text) == 1:  # SentencePiece would find it in text
                raise VocabularyError(
                    f"{where}, is a control symbol of one character, which is not supported"
                )
            if type_ == UNKNOWN:
                unknown_ids.append(number)
            special[spaced] = number
        elif type_ in (USER_DEFINED, UNUSED):
            (added if type_ == USER_DEFINED else unused)[spaced] = number
        elif type_ == BYTE:
            byte = BYTE_TEXTS.get(text)
            if byte is None:
                raise VocabularyError(f"{where}, has the type of a byte: expected <0x00> … <0xFF>")
            byte_ids[byte] = number
        else:
            raise VocabularyError(f"{where}, is of type {type_}, which is not supported")
    if has_bytes and len(byte_ids) != 256:
        raise VocabularyError(f"{source}: only {len(byte_ids)} of the 256 bytes are pieces")
    if byte_ids and not has_bytes:
        raise VocabularyError(f"{source}: pieces of bytes without byte_fallback are not supported")
    if len(special) + len(added) + len(unused) + len(byte_ids) + len(normal) != len(pieces):
        raise VocabularyError(f"{source}: two pieces differ only in {MARK!r} and a space")
    return rows


def _unigram(count: int, rows: _Rows, source: str) -> Vocabulary:
    """The vocabulary of a file with `count` pieces. Raises VocabularyError."""
    unknown = rows.unknown(source)
    if not rows.normal:
        raise VocabularyError(f"{source}: a model without normal pieces is not supported")
    ids = {text: id for text, (_, id) in rows.normal.items()} | rows.symbols
    byte_ids = None
    if rows.byte_ids:
        byte_ids = np.array([rows.byte_ids[byte] for byte in range(256)], np.uint32)
    # Scores by id: the file's float32; that of `<unk>` is the score of an unknown character.
    given = np.array([score for score, _ in rows.normal.values()], np.float32)
    scores = np.zeros(count, np.float64)
    scores[[id for _, id in rows.normal.values()]] = given
    for text, id in rows.symbols.items():
        size = len(text.replace(" ", MARK).encode())
        scores[id] = np.float32(size * _SCORE_PER_BYTE - _SCORE_PER_BYTE)
    scores[unknown] = given.min() - _UNKNOWN_PENALTY
    found = Pieces.of_ids("SentencePiece unigram", ids, unknown, scores=scores, byte_ids=byte_ids)
    decoded = {id: text.encode() for text, id in (ids | rows.unused).items()}
    decoded |= {id: bytes([byte]) for byte, id in rows.byte_ids.items()}
    return Vocabulary.of_model(found, decoded)


def _merging(rows: _Rows, source: str) -> tuple[Vocabulary, Normalizer | None]:
    """The vocabulary of BPE, and the normalizer of unknown characters, which is None if they become
    the ids of their bytes.
    """
    if rows.unused:
        raise VocabularyError(
            f"{source}: the piece {shown(next(iter(rows.unused)))} is unused, which is not "
            "supported with BPE"
        )
    if " " not in rows.normal:
        raise VocabularyError(f"{source}: a model without the piece {MARK!r} is not supported")
    unknown = None
    if not rows.byte_ids:
        unknown = _unknown(rows.normal, rows.unknown(source), rows.byte_ids, source)
    return _vocabulary(rows.normal, rows.byte_ids), unknown


def _unknown(
    normal: Mapping[str, object], unknown: int, byte_ids: dict[int, int], source: str
) -> Normalizer:
    """The normalizer that replaces characters outside `normal` by one byte.

    This byte is not a piece. It gets the id `unknown` in `byte_ids`; other bytes get none.
    """
    for piece in normal:
        missing = [character for character in piece if character not in normal]
        if missing:  # such a character merges, but alone it is unknown
            raise VocabularyError(
                f"{source}: a model without byte_fallback, where the piece {shown(piece)} has the "
                f"character {missing[0]!r}, which is not in the vocabulary, is not supported"
            )
    free = next((byte for byte in range(128) if chr(byte) not in normal), None)
    if free is None:
        raise VocabularyError(f"{source}: a model without byte_fallback needs a control character")
    byte_ids |= dict.fromkeys(range(256), NO_ID)
    byte_ids[free] = unknown
    known = "".join(sorted(piece for piece in normal if len(piece) == 1))
    return Normalizer([UnknownRuns(known, chr(free))])


def _vocabulary(normal: dict[str, tuple[float, int]], byte_ids: dict[int, int]) -> Vocabulary:
    """The tokens in the order of their merges: bytes, prefixes of characters, pieces by score."""
    has_bytes = NO_ID not in byte_ids.values()
    ids = {bytes([byte]): byte_ids[byte] if has_bytes else NO_ID for byte in range(256)}
    decode_only: dict[int, bytes] = {}
    prefixes = character_prefixes({character for piece in normal for character in piece})
    ids |= dict.fromkeys(prefixes, NO_ID)
    scores: dict[bytes, float] = {}
    # No merge of pieces makes a single character: its rank is that of its bytes.
    for piece, (score, number) in sorted(normal.items(), key=lambda item: -item[1][0]):
        token = piece.encode()
        if len(piece) > 1:
            scores[token] = score
        elif len(token) == 1 and has_bytes:
            decode_only[ids[token]] = token  # the byte's id can still be decoded
        ids[token] = number
    tokens = list(ids)
    ties: list[int] = []
    for i, token in enumerate(tokens):
        is_tied = i > 0 and token in scores and scores[token] == scores.get(tokens[i - 1])
        ties.append(ties[-1] if is_tied else i)
    return without_unreachable_tokens(
        Vocabulary(
            b"".join(tokens),
            offsets_of(np.fromiter(map(len, tokens), np.int64, len(tokens))),
            np.array([ids[token] for token in tokens], np.uint32),
            byte_ids=np.array([byte_ids[byte] for byte in range(256)], np.uint32),
            ties=None if len(set(ties)) == len(ties) else np.array(ties, np.uint32),
            decode_only=decode_only,
        )
    )


def _pattern(vocabulary: Vocabulary, unknown: Normalizer | None) -> str:
    """The pattern that cuts text. The byte that stands for unknown characters is in no piece, so it
    is cut off if possible: then a stream emits its id as soon as anything follows.
    """
    pattern = pattern_of_cuts(vocabulary)
    if unknown is None or pattern != CUT_BEFORE_SPACES:
        return pattern
    *_, one = unknown.spec[0]
    spelled = rf"\x{{{ord(one):x}}}"
    return f" *[^ {spelled}]+| +|{spelled}"
