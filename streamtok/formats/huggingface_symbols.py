"""Models of a tokenizer.json whose symbols are more than characters or bytes.

That are those with `continuing_subword_prefix` or `end_of_word_suffix`, as GPT-1's and CLIP's, and
those without a token for each byte: what they do not know becomes `unk_token`, or nothing. The step
`Symbols` writes pre-tokens in symbols, which are characters for private use, and the core merges
these (`character_merges.py`). Each token is the row of symbols that it is merged from. What it
decodes to is stored beside it.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import VocabularyError
from ..normalizers.symbols import BORDER, Symbols, symbol
from ..patterns.named import WHOLE_TEXT_PATTERN
from ..vocabulary.byte_alphabet import CHARACTERS, to_bytes
from ..vocabulary.table import NO_ID, Vocabulary
from .character_merges import from_character_merges
from .huggingface_decoders import Decoding, decoded_bytes
from .huggingface_models import Model, TableModel, as_objects, byte_of
from .huggingface_splits import PreTokenizer
from .loading import shown

__all__ = ["SymbolModel", "has_symbols", "symbol_model"]

_BORDERED = rf"[^\x{{{ord(BORDER):x}}}]+"


class SymbolModel(NamedTuple):
    """What an encoding needs of such a model."""

    vocabulary: Vocabulary
    step: Symbols  # the last that is done to a text
    pattern: str


def has_symbols(model: Model | TableModel, is_byte_level: bool) -> bool:
    """Whether the characters, or bytes, of a pre-token are not all there is to its symbols."""
    if model.words.prefix or model.words.suffix:
        return True
    if is_byte_level:
        return not all(letter in model.ids for letter in CHARACTERS.values())
    if not model.byte_fallback:
        return True
    return not all(
        f"<0x{byte:02X}>" in model.ids or (byte < 128 and chr(byte) in model.ids)
        for byte in range(256)
    )


def symbol_model(
    model: Model | TableModel, cutting: PreTokenizer, decoding: Decoding
) -> SymbolModel:
    """The vocabulary, the step and the pattern. Raises VocabularyError naming the position."""
    model = as_objects(model)
    words, ids = model.words, model.ids
    if words.unknown and words.unknown not in ids:
        raise VocabularyError(
            f"{model.place}: unk_token {shown(words.unknown)} is not in the vocabulary"
        )
    names = _names(model, cutting.is_byte_level)
    spelled = {name: symbol(number) for number, name in enumerate(names)}
    merges = _merges(model, spelled)
    decoded = {
        number: decoded_bytes(text, decoding, cutting.is_byte_level) for text, number in ids.items()
    }

    def vocabulary_of(looks_up: bool) -> Vocabulary:
        rows = {spelling: ids[name] for name, spelling in spelled.items()}
        return from_character_merges(
            rows, merges, None, ignore_merges=looks_up, decode_only=decoded
        )

    def step_of(whole: dict[str, str]) -> Symbols:
        return Symbols(
            tuple(names), words.prefix, words.suffix, words.unknown, words.fuses,
            model.byte_fallback, cutting.is_byte_level, tuple(whole.items()),
            cutting.stages,
        )  # fmt: skip

    try:
        step = step_of({})
        if model.ignore_merges:
            step = step_of(_whole(model, cutting.is_byte_level, step, names, spelled))
        vocabulary = vocabulary_of(False)
        # Without look-ups, it has those tokens only that merging their own symbols gives.
        if model.ignore_merges and int((vocabulary.ids != NO_ID).sum()) < len(spelled):
            _check_look_up(model)
            vocabulary = vocabulary_of(True)
    except (VocabularyError, ValueError) as error:
        raise VocabularyError(f"{model.place}: {error}") from None
    return SymbolModel(vocabulary, step, _BORDERED if cutting.splits else WHOLE_TEXT_PATTERN)


def _names(model: Model, is_byte_level: bool) -> list[str]:
    """The tokens that pre-tokens begin as, before anything merges."""
    prefix, suffix = model.words.prefix, model.words.suffix
    names = []
    for text in model.ids:
        byte = byte_of(text)
        for begin in {"", prefix}:
            for end in {"", suffix}:
                inner = text[len(begin) : len(text) - len(end)]
                is_one = len(inner) == 1 and text == begin + inner + end
                if is_one and not (is_byte_level and to_bytes(inner) is None):
                    names.append(text)
        if text == model.words.unknown or (byte is not None and model.byte_fallback):
            names.append(text)
    return list(dict.fromkeys(names))


def _merges(model: Model, spelled: dict[str, str]) -> list[tuple[str, str]]:
    """The merges in symbols, in order; `spelled` gets what they make.

    A merge of symbols that no text becomes is left out. A token must be one row of symbols only.
    """
    prefix = model.words.prefix
    merges = []
    for place, (left, right) in enumerate(model.merges):
        where = f"{model.place}: merge {place}, of {shown(left)} and {shown(right)}"
        if not right.startswith(prefix):
            raise VocabularyError(f"{where}: the second must begin with {shown(prefix)}")
        made = left + right[len(prefix) :]
        for part in (left, right, made):
            if part not in model.ids:
                raise VocabularyError(f"{where}: {shown(part)} is not in the vocabulary")
        merges.append((left, right, made, where))
    waiting = merges
    while True:
        later = []
        for left, right, made, where in waiting:
            if left not in spelled or right not in spelled:
                later.append((left, right, made, where))
                continue
            row = spelled[left] + spelled[right]
            if spelled.setdefault(made, row) != row:
                raise VocabularyError(
                    f"{where}: {shown(made)} is made of other symbols, too, which is not supported"
                )
        if len(later) == len(waiting):
            break
        waiting = later
    return [
        (spelled[left], spelled[right])
        for left, right, _, _ in merges
        if left in spelled and right in spelled
    ]


def _whole(
    model: Model, is_byte_level: bool, step: Symbols, names: list[str], spelled: dict[str, str]
) -> dict[str, str]:
    """What pre-tokens become that are looked up, by their texts; `names` and `spelled` get more."""
    whole: dict[str, str] = {}
    for text in model.ids:
        data = to_bytes(text) if is_byte_level else text.encode()
        if not data:
            continue
        pretoken = data.decode("utf-8", "surrogateescape")
        if text not in spelled:
            spelled[text] = symbol(len(names))
            names.append(text)
        if step.row_of(pretoken) != spelled[text]:
            whole[pretoken] = spelled[text]
    return whole


def _check_look_up(model: Model) -> None:
    """Refuse what the core must not look up: it looks rows of symbols up, and not pre-tokens."""
    unknown = model.words.unknown
    what = None
    if model.words.suffix:  # a row ends with it, and the pre-token that is looked up does not
        what = "there is an end_of_word_suffix"
    elif not unknown or unknown in model.parts():
        what = "unk_token takes part in merges" if unknown else "unknown characters are left out"
    if what is not None:
        raise VocabularyError(
            f"ignore_merges is not supported where {what}, and merges do not make a token alone"
        )
