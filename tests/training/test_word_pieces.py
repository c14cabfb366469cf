"""WordPiece training: as tokenizers' WordPieceTrainer, and what the result does.

What tokenizers leaves to its hash tables (`reference/wordpiece_training.py`) is read from what it
has trained; the rest must be equal, id by id.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import streamtok
from streamtok import Trainer, formats, normalizers
from streamtok.reference.wordpiece_training import train_word_pieces

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"vocab_size": 90},
    {"min_frequency": 2, "vocab_size": 5000},
    {"min_frequency": 30, "vocab_size": 5000},
    {"limit_alphabet": 9},
    {"special_tokens": ["[UNK]"]},
    {"special_tokens": ["[UNK]", "t", "qq", "##a"]},
    {"continuing_subword_prefix": "@@"},
    {"continuing_subword_prefix": ""},
    {"continuing_subword_prefix": "ø", "min_frequency": 3},
]


def words_of(seed: int) -> list[str]:
    rng = random.Random(seed)
    letters = "etaoinshrdlu" + "日本👍é"[: seed % 5]
    words = ["".join(rng.choices(letters, k=rng.choice([1, 2, 3, 5, 9]))) for _ in range(150)]
    return rng.choices(words, [1 / (i + 1) for i in range(150)], k=2000)


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_the_pieces_are_those_of_tokenizers(number: int) -> None:
    words, settings = words_of(number), SETTINGS[number]
    counts = Counter(words)
    settings = {"vocab_size": 300, "special_tokens": SPECIAL, "min_frequency": 0} | settings
    theirs = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    theirs.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    theirs.train_from_iterator(
        [" ".join(words)], trainers.WordPieceTrainer(show_progress=False, **settings)
    )
    expected = [text for text, _ in sorted(theirs.get_vocab().items(), key=lambda item: item[1])]

    prefix = settings.pop("continuing_subword_prefix", "##")
    specials, minimum = settings["special_tokens"], settings["min_frequency"]
    often = Counter("".join(words))
    limit = settings.get("limit_alphabet", len(often))

    def twin(kept: set[str], place: Callable[[str], Any]) -> list[str]:
        inner = {c for word in counts for c in word[1:] if c in kept or c in specials}
        inside = sorted(inner, key=place)
        size = settings["vocab_size"]
        return train_word_pieces(counts, size, specials, kept, inside, minimum, prefix)

    kept = set(often)
    if limit < len(often):
        kept = set(expected[len(specials) : len(specials) + limit])
        assert min(often[c] for c in kept) >= max(often[c] for c in often.keys() - kept)
    assert twin(kept, lambda character: expected.index(prefix + character)) == expected

    trainer = Trainer("bert")
    for start in range(0, len(words), 7):
        trainer.update(" ".join(words[start : start + 7]) + " ")
    enc = trainer.train_wordpiece(prefix=prefix, **settings)
    in_order = sorted(often, key=lambda character: (-often[character], character))
    assert vocabulary(enc) == twin(set(in_order[:limit]), str)


def vocabulary(enc: streamtok.Encoding) -> list[str]:
    model = enc.definition.vocabulary.model
    assert model is not None
    bounds = model.offsets.tolist()
    texts = [model.blob[a:b].decode() for a, b in itertools.pairwise(bounds)]
    return [text for _, text in sorted(zip(model.ids.tolist(), texts, strict=True))]


def test_the_file_gives_the_same_ids_in_tokenizers(tmp_path: Path) -> None:
    text = Path("README.md").read_text("utf-8") + " ünï 日本 [MASK] ##"
    lower = normalizers.Normalizer([normalizers.Lowercase()])
    trainer = Trainer("bert")
    trainer.update(lower.normalize(text), final=True)
    enc = trainer.train_wordpiece(900, normalizer=lower)
    formats.save_huggingface(enc, tmp_path / "tokenizer.json")
    theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    again = streamtok.load(tmp_path / "tokenizer.json")
    ids = theirs.encode(text).ids
    assert "bert" in str(theirs.pre_tokenizer).lower()
    for each in enc, again:
        assert each.encode(text, allowed_special="all") == ids
        assert each.decode(ids) == theirs.decode(ids, skip_special_tokens=False)
    assert len(set(ids)) > 300


def test_nothing_counted_and_bad_arguments() -> None:
    trainer = Trainer("bert")
    assert vocabulary(trainer.train_wordpiece()) == SPECIAL
    for error, settings in (
        (ValueError, {"unk_token": "<unk>"}),
        (ValueError, {"special_tokens": ["[UNK]", "[UNK]"]}),
        (ValueError, {"vocab_size": -1}),
        (ValueError, {"limit_alphabet": -1}),
        (ValueError, {"prefix": "\ud800"}),
        (TypeError, {"special_tokens": "[UNK]"}),
        (TypeError, {"vocab_size": 1.5}),
    ):
        with pytest.raises(error):
            trainer.train_wordpiece(**settings)
    with pytest.raises(ValueError, match="surrogateescape"):
        Trainer("bert", errors="surrogateescape").train_wordpiece()


@pytest.mark.parametrize("limit", [None, 9])
def test_more_characters_than_pieces_are_refused(limit: int | None) -> None:
    trainer = Trainer("bert")
    trainer.update("".join(map(chr, range(0x3041, 0x3091))) + " \u3042\u3041", final=True)
    given = 5 + (80 + 80 if limit is None else 9 + 9)
    enc = trainer.train_wordpiece(given, limit_alphabet=limit)
    assert len(vocabulary(enc)) == given
    for size in (given - 1, 30 if limit is None else 11, 0):
        fits = max(0, size - 5) // 2
        message = f"vocab_size {size} is too small: 5 special .* are {given} pieces. Give at least"
        with pytest.raises(streamtok.VocabularyError, match=f"{message}.*: {fits} of them fit"):
            trainer.train_wordpiece(size, limit_alphabet=limit)
        if size:
            assert len(vocabulary(trainer.train_wordpiece(size, limit_alphabet=fits))) <= size


def test_a_piece_that_two_merges_make_is_refused_by_name() -> None:
    trainer = Trainer(r"\S+")
    trainer.update("## " * 9, final=True)
    with pytest.raises(streamtok.VocabularyError, match="merging '#' and '###' makes the piece"):
        trainer.train_wordpiece(special_tokens=["[UNK]", "##"])
