"""Hugging Face's `tokenizer.json`. Its model may be BPE of bytes, as in GPT-2, Llama 3, Qwen and
DeepSeek; BPE of characters, as in Llama 2, Mistral and Gemma; WordPiece, as in BERT and MiniLM;
Unigram, as in T5 and XLM-R; or WordLevel.

Ids are those of `Tokenizer.encode(text, add_special_tokens=False)`: the post-processor, which puts
special tokens around a text, is applied only with `add_special_tokens=True`. Added tokens that are
special become special tokens: `allowed_special="all"` finds them in text, as Hugging Face always
does. Other added tokens are always found. The parts of a file are read in `huggingface_*.py`, and
`huggingface_writing.py` writes such files.

The fields `truncation` and `padding` are kept but not applied. Dropout raises an error.
(github.com/huggingface/tokenizers, Apache-2.0)
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ..engines.model_settings import ModelSettings
from ..engines.rules import MARK, TextRules
from ..normalizers import MetaspaceText, Normalizer, Step
from ..patterns.named import WHOLE_TEXT_PATTERN
from ..patterns.pattern import Pattern
from ..vocabulary.byte_alphabet import to_bytes
from ..vocabulary.table import Vocabulary
from .character_merges import pattern_of_cuts
from .gpt2 import byte_vocabulary
from .huggingface_added_tokens import AddedTokens, found_texts, read_added_tokens
from .huggingface_decoders import Decoding, decoded_texts, first_texts, read_decoder
from .huggingface_models import Model, character_vocabulary, read_model
from .huggingface_normalizers import read_normalizer
from .huggingface_pieces import (
    PieceFile,
    has_pieces,
    piece_cutting,
    piece_decoding,
    read_pieces,
)
from .huggingface_post_processors import read_post_processor
from .huggingface_splits import PreTokenizer, outer_cut, pattern_of, read_pre_tokenizer
from .huggingface_symbols import has_symbols, symbol_model
from .json_value import JsonValue
from .loading import (
    BYTE_TEXTS,
    errors_at,
    make_encoding,
    without_collection,
)

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["read_huggingface"]

_MARKING = ("Replace", " ", MARK)  # the step that turns spaces into "▁"
# Steps that create no new spaces, unless their last setting contains one.
_NO_NEW_SPACES = ("Prepend", "Replace", "NFC", "NFD", "Lowercase", "Strip", "StripAccents")


class _Encoder(NamedTuple):
    """The parts of an encoding that depend on the kind of model."""

    vocabulary: Vocabulary
    pattern: str | Pattern
    normalizer: Normalizer
    second: Normalizer  # made by pre-tokenizers, after added tokens are found
    decoding: Decoding
    made: Container[str] = ()  # added tokens that merges also make


@without_collection()
def read_huggingface(file: JsonValue, name: str) -> Encoding:
    """The encoding of a parsed `tokenizer.json`.

    Raises VocabularyError naming the file and the position of damage or an unsupported feature.
    """
    file.allow_only(
        "version", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder",
        "model", "truncation", "padding",
    )  # fmt: skip
    kept = file["truncation"], file["padding"]
    settings = ModelSettings((), *(None if x.value is None else x.as_dict() for x in kept))
    normalizer = read_normalizer(file["normalizer"])
    template = read_post_processor(file["post_processor"])
    decoding = read_decoder(file["decoder"])
    model = read_pieces(file["model"]) if has_pieces(file["model"]) else read_model(file["model"])
    cutting = read_pre_tokenizer(file["pre_tokenizer"])
    n_rows = model.n_rows if isinstance(model, PieceFile) else len(model.ids)
    tokens = read_added_tokens(file["added_tokens"], model.ids, n_rows, bool(normalizer))
    if normalizer and any("first" in step.spec for step in cutting.steps[-1:]):
        # tokenizers decides by offsets in the original text what is first: text that a normalizer
        # prepends is not, but two parts of one character may both be.
        file["pre_tokenizer"].fail("the scheme first is not supported with a normalizer")
    with errors_at(file.position):
        found = found_texts([*tokens.special, *tokens.added], tokens.flags, normalizer)
    if isinstance(model, PieceFile):
        position = file["pre_tokenizer"].position
        decoding = piece_decoding(decoding, file["decoder"], model, found)
        vocabulary, pattern, steps = piece_cutting(model, cutting, decoding, position)
        second = _normalizer_of(steps, position)
        encoder = _Encoder(vocabulary, pattern, normalizer, second, decoding)
    else:
        encoder = _of_merges(file, model, cutting, decoding, tokens, found, normalizer)
    with errors_at(file.position):
        first, drops = _first_texts(model, tokens, found, encoder.decoding)
        rules = TextRules(
            tuple(tokens.added.items()),
            normalizer=encoder.normalizer or None,
            token_flags=tuple(tokens.flags.items()),
            second_normalizer=encoder.second or None,
            drops_first_space=encoder.decoding.drops_first_space or drops,
            decoded_texts=decoded_texts(found, encoder.decoding, normalizer, encoder.made),
            first_texts=first,
        )
    encoding = make_encoding(
        file.position,
        name,
        pat_str=encoder.pattern,
        mergeable_ranks=encoder.vocabulary,
        special_tokens=tokens.special,
        rules=rules,
        template=template,
    )
    encoding.definition.model_settings = settings
    return encoding


def _of_merges(
    file: JsonValue,
    model: Model,
    cutting: PreTokenizer,
    decoding: Decoding,
    tokens: AddedTokens,
    found: dict[str, str],
    normalizer: Normalizer,
) -> _Encoder:
    """The encoder for BPE of symbols, of bytes, or of characters."""
    position = file["pre_tokenizer"].position
    second = _normalizer_of(cutting.steps, position)
    made = _also_merged(model, tokens, cutting.is_byte_level or decoding.is_byte_level)
    pattern, stages = outer_cut(cutting, position)
    if stages or _needs_symbols(model, cutting, decoding, pattern):
        vocabulary = symbol_model(model, stages, decoding, cutting.is_byte_level)
        return _Encoder(vocabulary, pattern, normalizer, second, decoding, made)
    if decoding.word_end:
        file["decoder"].fail("BPEDecoder is supported with end_of_word_suffix only")
    model = _without_added(model, tokens, found)
    if cutting.is_byte_level:
        with errors_at(model.position):
            vocabulary = byte_vocabulary(model.ids, model.rows, ignore_merges=model.ignore_merges)
        return _Encoder(vocabulary, pattern, normalizer, second, decoding, made)
    folds = _folds(normalizer, cutting, decoding, model)
    vocabulary = character_vocabulary(model, folds)
    if folds:
        pattern = pattern_of(cutting.splits, position, folds)
        normalizer, second = _folded(normalizer, second, tokens)
    if pattern == WHOLE_TEXT_PATTERN and not model.ignore_merges:
        pattern = pattern_of_cuts(vocabulary)
    return _Encoder(vocabulary, pattern, normalizer, second, decoding, made)


def _normalizer_of(steps: Iterable[Step], position: str) -> Normalizer:
    with errors_at(position):
        return Normalizer(steps)


def _first_texts(
    model: Model | PieceFile,
    tokens: AddedTokens,
    found: dict[str, str],
    decoding: Decoding,
) -> tuple[tuple[tuple[int, str], ...], bool]:
    """`TextRules.first_texts` and `.drops_first_space`: how ids decode at the start of a text."""
    if decoding.words is None:
        return (), False
    texts = {number: text for text, number in model.ids.items()}
    if isinstance(model, PieceFile):
        texts |= model.earlier
    texts |= {number: found[text] for text, number in (tokens.special | tokens.added).items()}
    return first_texts(texts, decoding.words)


def _needs_symbols(
    model: Model, cutting: PreTokenizer, decoding: Decoding, pattern: str | Pattern
) -> bool:
    """Whether symbols have to be merged: see `huggingface_symbols.py`."""
    if (
        has_symbols(model, cutting.is_byte_level)
        or decoding.words is not None
        or (decoding.is_byte_level and not cutting.is_byte_level)
    ):
        return True
    if not model.ignore_merges or cutting.is_byte_level:
        return False
    # The pre-token "<0x20>" may be looked up as the token of a byte, which decodes to that byte.
    if isinstance(pattern, str):
        pattern = Pattern.compile(pattern)
    return pattern.findall("<0x20>") == ["<0x20>"]


def _also_merged(model: Model, tokens: AddedTokens, is_byte_level: bool) -> list[str]:
    """Added tokens in the byte alphabet that are also tokens of several bytes in the model."""
    texts = [text for text in (*tokens.special, *tokens.added) if not text.isascii()]
    if not (is_byte_level and texts):
        return []
    parts = model.ids if model.ignore_merges else model.parts(set(texts))
    return [text for text in texts if text in parts and len(text) > 1]


def _without_added(model: Model, tokens: AddedTokens, found: dict[str, str]) -> Model:
    """The model without added tokens that text never becomes by merging or look-up.

    They are in no merges, and they are found before any pre-token is looked up. found: the text by
    which each is found.
    """
    forgotten = set()
    for text, sought in found.items():
        flags = tokens.flags.get(text)
        is_found = not (flags and flags.single_word) and (text == sought or not model.ignore_merges)
        is_single = (
            len(text) == 1 or len(to_bytes(text) or "xx") == 1 or BYTE_TEXTS.get(text) is not None
        )
        if is_found and not is_single:
            forgotten.add(text)
    return model.without(forgotten)


def _folds(normalizer: Normalizer, cutting: PreTokenizer, decoding: Decoding, model: Model) -> bool:
    """Whether "▁" can be stored as a space: see `huggingface_models.py`."""
    if not decoding.marks_are_spaces or MARK not in model.ids:
        return False
    if cutting.steps:
        last = cutting.steps[-1]
        return isinstance(last, MetaspaceText) and last.replacement == MARK
    return _marking_step(normalizer) is not None


def _marking_step(normalizer: Normalizer) -> int | None:
    """The index of the step that turns all spaces into "▁" for good; None if there is none."""
    for i in range(len(normalizer.spec) - 1, -1, -1):
        kind, *settings = normalizer.spec[i]
        if normalizer.spec[i] == _MARKING:
            return i
        if kind not in _NO_NEW_SPACES or any(
            " " in put for put in settings[-1:] if type(put) is str
        ):
            break
    return None


def _folded(
    normalizer: Normalizer, second: Normalizer, tokens: AddedTokens
) -> tuple[Normalizer, Normalizer]:
    """Both normalizers, changed so that each space and each "▁" ends up as a space."""
    to_spaces = "Replace", MARK, " "
    if second.spec:
        *steps, (_, _, scheme) = second.spec
        put = [] if scheme == "never" else [("MetaspaceText", " ", scheme)]
        return normalizer, Normalizer.from_spec((*steps, to_spaces, *put))
    if any(flags.normalized and (flags.lstrip or flags.rstrip) for flags in tokens.flags.values()):
        # Such tokens absorb white space beside them, and "▁" is not white space.
        return normalizer, Normalizer.from_spec((to_spaces,))
    step = _marking_step(normalizer)
    assert step is not None
    before, after = normalizer.spec[:step], normalizer.spec[step + 1 :]
    if any(step[0] != "Prepend" for step in after):  # they may depend on what is a space
        return Normalizer.from_spec((*normalizer.spec, to_spaces)), second
    steps = [*before, *after]
    if steps == [("Prepend", MARK)]:
        steps = [("Prepend", " ")]  # the same result in one step
    return Normalizer.from_spec((*steps, to_spaces)), second
