"""The parts of a `tokenizer.json` that has WordPiece, WordLevel or Unigram, written.

An encoding keeps what its pieces decode to, not the decoder. So the decoders that such files have
are tried, and the first that gives just that is written.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..engines.rules import MARK
from ..errors import VocabularyError
from ..vocabulary.table import NO_ID
from .huggingface_added_tokens import found_texts
from .huggingface_decoders import Decoding, decoded_texts, read_decoder
from .huggingface_normalizers import read_normalizer
from .huggingface_pieces import PieceFile, decoded_pieces, piece_decoding
from .json_value import JsonValue

if TYPE_CHECKING:
    from ..encoding import Encoding
    from ..models.pieces import Pieces

__all__ = ["BYTE_LEVEL", "REPLACE", "STRIP", "piece_decoder", "piece_model", "wrongly_decoded"]

REPLACE = {"type": "Replace", "pattern": {"String": MARK}, "content": " "}
BYTE_LEVEL = {
    "type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True,
}  # fmt: skip
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


def piece_model(encoding: Encoding, pieces: Pieces) -> dict[str, Any]:
    """The field `model`. Raises VocabularyError for models that only SentencePiece has."""
    ids = _ids(pieces)
    texts = {id: text for text, id in ids.items()}
    vocab = dict(sorted(ids.items(), key=lambda item: item[1]))
    if pieces.kind == "Unigram":
        assert pieces.scores is not None
        if list(vocab.values()) != list(range(len(pieces.scores))):
            raise VocabularyError(
                f"Unigram needs ids without gaps: those of {encoding.name} have some"
            )
        return {
            "type": "Unigram",
            "unk_id": None if pieces.unknown == NO_ID else pieces.unknown,
            "vocab": [[text, float(pieces.scores[id])] for text, id in vocab.items()],
            "byte_fallback": pieces.byte_ids is not None,
        }
    if pieces.kind == "Merges":
        raise VocabularyError(
            f"{encoding.name} merges symbols of words, or has unknown tokens: that cannot be "
            "written as a tokenizer.json; keep the original"
        )
    if pieces.kind not in ("WordPiece", "WordLevel"):
        raise VocabularyError(
            f"{encoding.name} has the pieces of {pieces.kind}: no model of a tokenizer.json adds "
            "up or looks up as that does; keep the original"
        )
    if pieces.unknown == NO_ID:
        raise VocabularyError(
            f"{encoding.name} has no token for unknown text, which {pieces.kind} must name; keep "
            "the original"
        )
    model: dict[str, Any] = {"type": pieces.kind, "unk_token": texts[pieces.unknown]}
    if pieces.kind == "WordPiece":
        model["continuing_subword_prefix"] = pieces.prefix
        model["max_input_chars_per_word"] = pieces.most_characters
    return {**model, "vocab": vocab}


def _ids(pieces: Pieces) -> dict[str, int]:
    bounds = pieces.offsets.tolist()
    texts = [pieces.blob[start:end].decode() for start, end in itertools.pairwise(bounds)]
    return dict(zip(texts, pieces.ids.tolist(), strict=True))


def piece_decoder(encoding: Encoding, pieces: Pieces, normalizer: Any) -> dict[str, Any] | None:
    """The field `decoder`. Raises VocabularyError where none that is known does the same."""
    model = PieceFile(_ids(pieces), pieces, encoding.name, {})
    rules = encoding._rules
    added = [*encoding._special_tokens, *(text for text, _ in rules.added_tokens)]
    first = dict(rules.first_texts)
    for decoder in _decoders(pieces):
        field = JsonValue(decoder, "decoder")
        decoding = piece_decoding(read_decoder(field), field, model, added)
        if bool(first) != (decoding.words is not None):
            continue
        if decoding.words is None and decoding.drops_first_space != rules.drops_first_space:
            continue
        if wrongly_decoded(encoding, decoding, normalizer) is not None:
            continue
        decoded = decoded_pieces(model.ids, decoding)
        if decoded != dict(encoding._vocabulary.decode_only):
            continue
        if decoding.words is not None:
            texts = decoding.words.decoded(list(model.ids), is_first=True)
            space = " " * rules.drops_first_space
            if texts != [
                first.get(id, decoded[id].decode().removeprefix(space)) for id in model.ids.values()
            ]:
                continue
        return decoder
    raise VocabularyError(
        f"{encoding.name} decodes its pieces as no decoder does that can be written; keep the "
        "original"
    )


def wrongly_decoded(encoding: Encoding, decoding: Decoding, normalizer: Any) -> str | None:
    """A special or added token that a decoder does not decode as the encoding does; normalizer: the
    field, which changes what some of them are found as.
    """
    rules = encoding._rules
    texts = [*encoding._special_tokens, *(text for text, _ in rules.added_tokens)]
    stated = read_normalizer(JsonValue(normalizer, "normalizer"))
    found = found_texts(texts, dict(rules.token_flags), stated)
    # As tokenizers does, which takes all of them for letters of bytes.
    letters = texts if decoding.is_byte_level else ()
    wanted, given = dict(rules.decoded_texts), dict(decoded_texts(found, decoding, stated, letters))
    return next((x for x in texts if wanted.get(x, x) != given.get(x, x)), None)


def _decoders(pieces: Pieces) -> Iterator[dict[str, Any] | None]:
    if pieces.kind == "WordPiece":
        for cleanup in (True, False):
            yield {"type": "WordPiece", "prefix": pieces.prefix, "cleanup": cleanup}
    yield None
    for scheme in ("always", "never"):
        yield {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": True}
    for replaces, joins, strips in itertools.product((False, True), repeat=3):
        parts = [REPLACE] * replaces + [{"type": "ByteFallback"}] * joins + [{"type": "Fuse"}]
        yield {"type": "Sequence", "decoders": parts + [STRIP] * strips}
    yield BYTE_LEVEL
