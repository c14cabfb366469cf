"""The `model` of a tokenizer.json that is not BPE: WordPiece, WordLevel or Unigram.

Such a model encodes pre-tokens one by one, after the normalizer and the pre-tokenizers. Its ids
decode to the text of their pieces, as the decoder changes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ..encoding import Encoding
from ..engines.rules import MARK, TextRules
from ..errors import VocabularyError
from ..normalizers import ByteLetters
from ..patterns.pattern import Pattern
from ..vocabulary.pieces import Pieces
from ..vocabulary.table import NO_ID, Vocabulary
from .huggingface_decoders import Decoding, Marks, WordPieces, decoded_bytes, first_texts
from .huggingface_splits import PreTokenizer, outer_cut
from .json_value import JsonValue
from .loading import BYTE_TEXTS, errors_at, shown

if TYPE_CHECKING:
    from ..normalizers import Normalizer, Step

__all__ = [
    "PieceFile",
    "has_pieces",
    "piece_cutting",
    "piece_decoding",
    "read_pieces",
    "word_piece_encoding",
]

_NO_LIMIT = 1 << 62  # the most characters in a word; a greater limit has no effect
_DEFAULT_LIMIT = 100  # the limit of BERT, and of WordPiece in tokenizers


class PieceFile(NamedTuple):
    """A model of pieces, which are written as in the file."""

    ids: dict[str, int]
    pieces: Pieces
    position: str
    earlier: dict[int, str]  # by id: pieces of Unigram that are repeated later; the last one counts

    @property
    def n_rows(self) -> int:
        """The number of rows in the file."""
        return len(self.ids) + len(self.earlier)


def has_pieces(model: JsonValue) -> bool:
    """Whether this field holds such a model; old files do not name its type."""
    return _kind(model) in _READERS


def _kind(model: JsonValue) -> str:
    fields = model.as_dict()
    if (kind := fields.get("type")) is not None:
        return str(kind)
    if "merges" in fields:
        return "BPE"
    if isinstance(fields.get("vocab"), list):
        return "Unigram"
    return "WordPiece" if "max_input_chars_per_word" in fields else "WordLevel"


def read_pieces(model: JsonValue) -> PieceFile:
    """The model in this field. Raises VocabularyError naming the position."""
    try:
        return _READERS[_kind(model)](model)
    except ValueError as error:
        if isinstance(error, VocabularyError):
            raise
        model.fail(str(error))


def _word_piece(model: JsonValue) -> PieceFile:
    model.allow_only(
        "type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"
    )
    ids = model["vocab"].as_ids()
    most = model["max_input_chars_per_word"]
    if most.as_int() < 0:
        most.fail(f"expected a number of characters, found {most.value}")
    pieces = Pieces.of_ids(
        "WordPiece",
        ids,
        _unknown(model, ids),
        prefix=model["continuing_subword_prefix"].as_str(),
        most_characters=min(most.as_int(), _NO_LIMIT),
    )
    return PieceFile(ids, pieces, model.position, {})


def _word_level(model: JsonValue) -> PieceFile:
    model.allow_only("type", "unk_token", "vocab")
    ids = model["vocab"].as_ids()
    pieces = Pieces.of_ids("WordLevel", ids, _unknown(model, ids))
    return PieceFile(ids, pieces, model.position, {})


def _unigram(model: JsonValue) -> PieceFile:
    model.allow_only("type", "unk_id", "vocab", "byte_fallback")
    vocab = model["vocab"]
    rows: list[tuple[str, float]] = []
    for i, row in enumerate(vocab.as_list()):
        try:
            text, score = row
            if type(text) is not str or type(score) not in (int, float):
                raise TypeError
        except (TypeError, ValueError):
            vocab.fail(f"piece {i}: expected a text and a score, found {shown(row)}")
        rows.append((text, float(score)))
    ids = {text: id for id, (text, _) in enumerate(rows)}
    unknown = NO_ID if model["unk_id"].value is None else model["unk_id"].as_int()
    if unknown != NO_ID and not 0 <= unknown < len(rows):
        model["unk_id"].fail(f"there is no piece {unknown}")
    has_fallback = model["byte_fallback"].as_bool()
    pieces = Pieces.of_scores(rows, unknown, has_fallback)
    earlier = {}
    if len(ids) < len(rows):
        earlier = {id: text for id, (text, _) in enumerate(rows) if ids[text] != id}
    return PieceFile(ids, pieces, model.position, earlier)


_READERS = {"WordPiece": _word_piece, "WordLevel": _word_level, "Unigram": _unigram}


def _unknown(model: JsonValue, ids: dict[str, int]) -> int:
    """The id of unknown text; NO_ID if the vocabulary lacks `unk_token`, as tokenizers allows."""
    return ids.get(model["unk_token"].as_str(), NO_ID)


def piece_decoding(
    decoding: Decoding, field: JsonValue, model: PieceFile, added: Iterable[str]
) -> Decoding:
    """How the decoder in this field treats pieces and added tokens. Raises VocabularyError.

    Metaspace removes every "▁" from the first token. In most vocabularies, this is the same as
    removing one space from the text.
    """
    if field.value is None:
        return Decoding(words=WordPieces(None, False))  # a space between any two tokens
    if decoding.word_end:
        field.fail(f"the decoder BPEDecoder is not supported with {model.pieces.kind}")
    if field["type"].value != "Metaspace" or not decoding.drops_first_space:
        return decoding
    if not any(text.startswith(" ") or MARK in text[1:] for text in [*model.ids, *added]):
        return decoding
    return Decoding(words=Marks())


def piece_cutting(
    model: PieceFile, cutting: PreTokenizer, decoding: Decoding, position: str
) -> tuple[Vocabulary, str | Pattern, tuple[Step, ...]]:
    """(vocabulary, pattern, steps): the steps change the text after the normalizer.

    position: that of the pre-tokenizer, for error messages. Raises VocabularyError.
    """
    pattern, stages = outer_cut(cutting, position)
    steps = cutting.steps
    if cutting.is_byte_level and cutting.splits:
        stages = (*stages, ByteLetters().spec)
    elif cutting.is_byte_level:
        steps = (*steps, ByteLetters())
    with errors_at(position):
        pieces = model.pieces.with_stages(stages)
    decoded = decoded_pieces(model.ids, decoding)
    decoded |= {id: decoded[model.ids[text]] for id, text in model.earlier.items()}
    return Vocabulary.of_model(pieces, decoded), pattern, steps


def word_piece_encoding(
    name: str,
    pattern: Pattern,
    ids: dict[str, int],
    special_tokens: dict[str, int],
    unknown: int,
    prefix: str,
    normalizer: Normalizer | None,
) -> Encoding:
    """The encoding of a WordPiece model with its usual decoder."""
    pieces = Pieces.of_ids("WordPiece", ids, unknown, prefix=prefix, most_characters=_DEFAULT_LIMIT)
    words = WordPieces(prefix, True)
    first, drops = first_texts({id: text for text, id in ids.items()}, words)
    decoded = decoded_pieces(ids, Decoding(words=words))
    return Encoding(
        name,
        pat_str=pattern,
        mergeable_ranks=Vocabulary.of_model(pieces, decoded),
        special_tokens=special_tokens,
        rules=TextRules(
            normalizer=normalizer,
            decoded_texts=tuple((text, decoded[id]) for text, id in special_tokens.items()),
            drops_first_space=drops,
            first_texts=first,
        ),
    )


def decoded_pieces(ids: dict[str, int], decoding: Decoding) -> dict[int, bytes]:
    """The bytes of each id when it follows others."""
    if decoding.words is not None:
        texts = decoding.words.decoded(list(ids), is_first=False)
        return {id: text.encode() for id, text in zip(ids.values(), texts, strict=True)}
    if decoding.is_byte_level or not decoding.replaces_marks:
        has_bytes = decoding.joins_bytes
        return {id: decoded_bytes(text, decoding, has_bytes=has_bytes) for text, id in ids.items()}
    # The usual case for large files: the same result, without a call for each piece.
    decoded = {id: text.replace(MARK, " ").encode() for text, id in ids.items()}
    if decoding.joins_bytes:
        decoded |= {ids[text]: bytes([byte]) for text, byte in BYTE_TEXTS.items() if text in ids}
    return decoded
