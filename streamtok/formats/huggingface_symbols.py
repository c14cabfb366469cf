"""BPE models in a tokenizer.json whose symbols are more than characters or bytes.

These are models with `continuing_subword_prefix` or `end_of_word_suffix`, such as GPT-1's and
CLIP's; models without a token for each byte, where unknown text becomes `unk_token` or is removed;
and models whose pre-tokens no automaton can cut, such as Falcon's. Each pre-token is written in
symbols, which are private-use characters (`_core/models/stages.pxi`), and the core merges these
(`character_merges.py`). A token is the sequence of symbols that it is merged from; its bytes
are stored separately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import VocabularyError
from ..normalizers import ByteLetters
from ..vocabulary.byte_alphabet import CHARACTERS, to_bytes
from ..vocabulary.pieces import Pieces, symbol
from ..vocabulary.table import Vocabulary, check_numbers
from .character_merges import from_character_merges
from .huggingface_decoders import Decoding, decoded_bytes
from .huggingface_models import Model
from .loading import BYTE_TEXTS, errors_at, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..vocabulary.pieces import Stages

    Numbers = NDArray[np.uint32]

__all__ = ["has_symbols", "symbol_model"]


def has_symbols(model: Model, is_byte_level: bool) -> bool:
    """Whether symbols are more than the characters, or bytes, of a pre-token."""
    if model.words.prefix or model.words.suffix:
        return True
    if is_byte_level:
        return not all(letter in model.ids for letter in CHARACTERS.values())
    if not model.byte_fallback:
        return True
    return not all(
        text in model.ids or (byte < 128 and chr(byte) in model.ids)
        for text, byte in BYTE_TEXTS.items()
    )


def symbol_model(
    model: Model, stages: Stages, decoding: Decoding, is_byte_level: bool
) -> Vocabulary:
    """The vocabulary. stages: what is done to each pre-token before it is written in symbols.

    Raises VocabularyError naming the position.
    """
    words, ids = model.words, model.ids
    if words.unknown and words.unknown not in ids:
        raise VocabularyError(
            f"{model.position}: unk_token {shown(words.unknown)} is not in the vocabulary"
        )
    names = _names(model, is_byte_level)
    with errors_at(model.position):
        spelled = {name: symbol(number) for number, name in enumerate(names)}
        merges = _merges(model, spelled)
        if is_byte_level:
            stages = (*stages, ByteLetters().spec)
        symbols = (
            "Symbols", tuple(names), words.prefix, words.suffix, words.unknown, words.fuses,
            model.byte_fallback,
        )  # fmt: skip
        # Checked here so that errors name texts: from_character_merges sees only symbols.
        check_numbers(sorted((ids[name], name.encode()) for name in spelled), "id")
        return from_character_merges(
            {spelling: ids[name] for name, spelling in spelled.items()},
            merges,
            None,
            ignore_merges=False,
            decode_only={
                number: decoded_bytes(text, decoding, is_byte_level) for text, number in ids.items()
            },
            model=Pieces.of_merges(ids if model.ignore_merges else {}, (*stages, symbols)),
        )


def _names(model: Model, is_byte_level: bool) -> list[str]:
    """The tokens that a pre-token may consist of before any merge."""
    prefix, suffix = model.words.prefix, model.words.suffix
    names = []
    for text in model.ids:
        for begin in {"", prefix}:
            for end in {"", suffix}:
                inner = text[len(begin) : len(text) - len(end)]
                is_one = len(inner) == 1 and text == begin + inner + end
                if is_one and not (is_byte_level and to_bytes(inner) is None):
                    names.append(text)
        if text == model.words.unknown or (text in BYTE_TEXTS and model.byte_fallback):
            names.append(text)
    return list(dict.fromkeys(names))


def _merges(model: Model, spelled: dict[str, str]) -> Numbers:
    """The merges in order, as rows of three token numbers: positions in `spelled`, to which the
    tokens that merges make are added.

    A merge of tokens that no text produces is left out. A token must have only one spelling.
    """
    names = [*model.ids]
    merges = [[names[number] for number in row] for row in model.rows.tolist()]
    waiting = [*enumerate(merges)]
    while True:
        later = []
        for position, (left, right, made) in waiting:
            if left not in spelled or right not in spelled:
                later.append((position, [left, right, made]))
                continue
            row = spelled[left] + spelled[right]
            if spelled.setdefault(made, row) != row:
                raise VocabularyError(
                    f"merge {position}, of {shown(left)} and {shown(right)}: {shown(made)} is made "
                    "of other symbols, too, which is not supported"
                )
        if len(later) == len(waiting):
            break
        waiting = later
    index = {name: number for number, name in enumerate(spelled)}
    rows = [
        [index[left], index[right], index[made]]
        for left, right, made in merges
        if left in index and right in index
    ]
    return np.array(rows, np.uint32).reshape(-1, 3)
