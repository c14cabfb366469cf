"""The models in the core against their twins, and what the files' numbers mean."""

from __future__ import annotations

import json
import pickle
import random
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

import streamtok
from streamtok.formats.serde_float import serde_float
from streamtok.reference.unigram import unigram
from streamtok.reference.wordpiece import word_level, word_piece
from streamtok.vocabulary.pieces import Pieces
from streamtok.vocabulary.table import Vocabulary

from ..encodings import make_encoding
from ..formats.families import family
from ..formats.reading import both
from ..tokenizer_files import random_pieces

TWINS = {"WordPiece": word_piece, "WordLevel": word_level, "Unigram": unigram}
LETTERS = "ab# ▁é\u0301日👍"


def pieces_of(model: dict[str, Any]) -> Pieces:
    vocab = model["vocab"]
    if model["type"] == "Unigram":
        return Pieces.of_scores(vocab, model["unk_id"], model["byte_fallback"])
    more = {}
    if model["type"] == "WordPiece":
        more["prefix"] = model["continuing_subword_prefix"]
        more["most_characters"] = model["max_input_chars_per_word"]
    return Pieces.of_ids(model["type"], vocab, vocab[model["unk_token"]], **more)


def encoding_of(pieces: Pieces, pattern: str = r"\s+|\S+") -> streamtok.Encoding:
    decoded = {id: str(id).encode() for id in range(pieces.core.max_id + 1)}
    return make_encoding(pattern, Vocabulary.of_model(pieces, decoded))


@pytest.mark.parametrize("kind", TWINS)
def test_ids_and_places_of_random_pretokens(kind: str) -> None:
    rng = random.Random(5)
    for _ in range(50):
        model = random_pieces(rng, kind, rng.choice([LETTERS, "ab", "aé▁"]))
        encoding = encoding_of(pieces_of(model), r"[\s\S]+")
        texts = list(model["vocab"]) if kind != "Unigram" else [text for text, _ in model["vocab"]]
        for _ in range(12):
            most = 30 if kind == "Unigram" else 200  # its twin is slow
            parts = rng.choices([*texts, *LETTERS, *"ab"], k=rng.choice([1, 2, 5, most]))
            text = "".join(parts)
            expected = TWINS[kind](model, text)
            assert encoding.encode(text) == [id for id, _, _ in expected], (model, text)
            ids, spans = encoding.encode_with_offsets(text)
            assert ids.tolist() == [id for id, _, _ in expected]
            assert spans.tolist() == [[start, end] for _, start, end in expected], (model, text)


@pytest.mark.parametrize("kind", ["Unigram", "SentencePiece unigram"])
def test_a_stream_waits_for_a_piece_that_is_longer_than_what_it_looks_at(kind: str) -> None:
    long = "b" + "a" * 1023
    p = Pieces.of_scores([("<unk>", -20.0), ("a", -1.0), ("b", -1.0), (long, -1.0)], 0, False)
    pieces = Pieces(kind, p.blob, p.offsets, p.ids, 0, scores=p.scores)
    stream = encoding_of(pieces, r"\S+").stream_encoder()
    assert stream.encode(long[:-1]) == []
    assert stream.encode(long[-1:], final=True) == [3]
    assert stream.encode(long[:-1]) == []
    assert stream.encode("b", final=True) == [2, *[1] * 1022, 2]


@pytest.mark.parametrize("kind", ["WordPiece", "Unigram", "SentencePiece unigram", "WordLevel"])
def test_pieces_that_are_too_long_are_refused_by_name(kind: str) -> None:
    def made(size: int) -> Pieces:
        vocab = {"[UNK]": 0, "a": 1, "\u65e5" * (size // 3) + "b" * (size % 3): 2}
        if kind.startswith("Word"):
            return Pieces.of_ids(kind, vocab, 0, prefix="", most_characters=2_000)
        p = Pieces.of_scores([(text, -1.0) for text in vocab], 0, False)
        return Pieces(kind, p.blob, p.offsets, p.ids, 0, scores=p.scores)

    long = "\u65e5" * 341 + "b"
    assert encoding_of(made(1_024)).encode(long) == [2]
    if kind == "WordLevel":  # is looked for once a word
        assert encoding_of(made(70_000)).encode("\u65e5" * 23_333 + "b") == [2]
        return
    with pytest.raises(ValueError, match=r"piece of \w+ has at most 1024 bytes: '\u65e5.*has 1025"):
        made(1_025)


def test_bytes_that_are_no_utf8_are_characters() -> None:
    vocab = {"[UNK]": 0, "a": 1, "##b": 2}
    model = Pieces.of_ids("WordPiece", vocab, 0, prefix="##", most_characters=3)
    encoding = encoding_of(model)
    for text, ids in ((b"abbb", [0]), (b"a\x80\xff", [0]), (b"abb", [1, 2, 2])):
        assert encoding.encode(text, errors="surrogateescape") == ids
    scores = [("<unk>", 0.0), ("a", -1.0), ("<0x80>", -9.0), ("<0xFF>", -9.0)]
    encoding = encoding_of(Pieces.of_scores(scores, 0, True))
    assert encoding.encode(b"a\x80\xffa", errors="surrogateescape") == [1, 2, 3, 1]
    assert encoding.encode(b"\xffa\xc3", errors="surrogateescape") == [3, 1, 0]


def test_scores_are_those_that_tokenizers_reads() -> None:
    rng = random.Random(2)
    numbers = [repr(-rng.uniform(0, 30)) for _ in range(300)]
    numbers += [repr(float(np.float32(-rng.uniform(0, 20)))) for _ in range(300)]
    numbers += [
        f"{rng.choice(['', '-'])}{rng.randrange(10 ** rng.choice([1, 5, 18]))}"
        f".{rng.randrange(10 ** rng.choice([1, 3, 21, 25]))}"
        f"{rng.choice(['', 'e-5', 'E+7', 'e0', 'e-300', 'e-340'])}"
        for _ in range(600)
    ]
    numbers += ["0.0", "-0.0", "1e2", "0.000000000000000000000000000001234567890123456789"]
    rows = ",".join(f'["t{at}",{number}]' for at, number in enumerate(numbers))
    file = (
        '{"version":"1.0","added_tokens":[],"model":{"type":"Unigram","unk_id":0,'
        f'"vocab":[{rows}],"byte_fallback":false}}}}'
    )
    read = json.loads(Tokenizer.from_str(file).to_str())["model"]["vocab"]
    assert [serde_float(number) for number in numbers] == [score for _, score in read]
    assert any(float(number) != score for number, (_, score) in zip(numbers, read, strict=True))
    for number in ("1e400", "123456789.5e301", "1e99999999999999999999"):
        with pytest.raises(streamtok.VocabularyError, match="out of range"):
            serde_float(number)


@pytest.mark.parametrize("kind", ["WordPiece", "WordLevel"])
def test_a_word_without_end_takes_no_memory(kind: str) -> None:
    """Past the limit it is unknown, so nothing of it waits but the rest of a section."""
    more = {"prefix": "##", "most_characters": 100} if kind == "WordPiece" else {}
    encoding = encoding_of(Pieces.of_ids(kind, {"[UNK]": 7, "a": 1, "##a": 2}, 7, **more))
    stream = encoding.stream_encoder(max_pending=1 << 12)
    found = stream.encode("a ")
    for _ in range(400):
        found += stream.encode("aé" * 500)
        assert stream.pending < 1 << 12
    assert found == [1, 7, 7]  # the blank is unknown, too
    saved = stream.getstate()
    for other in (stream, encoding.stream_encoder(max_pending=1 << 12)):
        other.setstate(saved)
        assert other.encode("a" * 9) + other.encode(" a", final=True) == [7, 1]
    limited = encoding.stream_encoder(max_pending=1 << 12)
    limited.encode_with_offsets("a" * 4000)
    with pytest.raises(streamtok.PendingLimitExceeded):  # its place ends where the word does
        limited.encode_with_offsets("a" * 100)


def test_scores_go_on_where_a_stream_was_cut() -> None:
    """Sums that begin anew round otherwise, so other paths would win."""
    rows = [("<unk>", 0.0), ("a", -0.1), ("b", -0.7), ("ab", -0.8), ("ba", -0.8), ("c", -1e6)]
    model = {"type": "Unigram", "vocab": rows, "unk_id": 0, "byte_fallback": False}
    rng = random.Random(7)
    text = "".join(rng.choices(["ab", "ba", "a", "b", "c"], [9, 9, 2, 2, 1], k=1200))
    expected = [id for id, _, _ in unigram(model, text)]
    parts = [id for part in text.split("c") for id, _, _ in unigram(model, part)]
    assert [id for id in expected if id != 5] != parts  # where they begin matters
    encoding = encoding_of(pieces_of(model), r"[\s\S]+")
    for size in (1, 100, 1024, 1100):
        stream = encoding.stream_encoder()
        found = [
            id for at in range(0, len(text), size) for id in stream.encode(text[at : at + size])
        ]
        assert len(found) > len(expected) // 3
        assert found + stream.flush() == expected


def test_paths_that_share_nothing_wait() -> None:
    rows = [("<unk>", 0.0), ("a", -9.0), ("aa", -1.0), ("aaa", -1.0)]
    encoding = encoding_of(Pieces.of_scores(rows, 0, False), r"[\s\S]+")
    stream = encoding.stream_encoder(max_pending=9999)
    assert stream.encode("a" * 9999) == []
    with pytest.raises(streamtok.PendingLimitExceeded):
        stream.encode("a")
    assert stream.flush() == encoding.encode("a" * 9999)


def test_digests_and_pickles() -> None:
    base: dict[str, Any] = {"prefix": "##", "most_characters": 9}
    vocab = {"[UNK]": 0, "a": 1, "##b": 2}
    made = Pieces.of_ids("WordPiece", vocab, 0, **base)
    others = [
        Pieces.of_ids("WordPiece", vocab, 1, **base),
        Pieces.of_ids("WordPiece", vocab, 0, **{**base, "prefix": "#"}),
        Pieces.of_ids("WordPiece", vocab, 0, **{**base, "most_characters": 8}),
        Pieces.of_ids("WordPiece", {**vocab, "a": 3}, 0, **base),
        Pieces.of_ids("WordPiece", {"[UNK]": 0, "c": 1, "##b": 2}, 0, **base),
        Pieces.of_ids("WordLevel", vocab, 0),
        Pieces.of_scores([("[UNK]", 0.0), ("a", 1.0), ("##b", 2.0)], 0, False),
        Pieces.of_scores([("[UNK]", 0.0), ("a", 1.5), ("##b", 2.0)], 0, False),
        Pieces.of_scores([("[UNK]", 0.0), ("a", 1.5), ("##b", 2.0)], 0, True),
    ]
    digests = [pieces.digest for pieces in [made, *others]]
    digests += [encoding_of(pieces).digest for pieces in [made, *others]]
    assert len(set(digests)) == len(digests)
    for pieces in [made, *others]:
        again = pickle.loads(pickle.dumps(encoding_of(pieces)))
        assert again.digest == encoding_of(pieces).digest
        assert again.encode("ab a xb") == encoding_of(pieces).encode("ab a xb")


def test_arrays_that_do_not_fit_are_refused() -> None:
    def pieces(kind: str = "WordPiece", blob: bytes = b"ab", **more: Any) -> Pieces:
        arrays: dict[str, Any] = {
            "offsets": np.array([0, 1, 2], np.uint32),
            "ids": np.array([0, 1], np.uint32),
            "unknown": 0,
        }
        return Pieces(kind, blob, **(arrays | more))

    pieces()
    for wrong in (
        {"kind": "BPE"},
        {"blob": b"ba"},
        {"blob": b"aa"},
        {"blob": b"abc"},
        {"offsets": np.array([0, 1], np.uint32)},
        {"offsets": np.array([0, 3, 2], np.uint32)},
        {"offsets": np.array([1, 1, 2], np.uint32)},
        {"ids": np.array([0, 2**32 - 1], np.uint32)},
        {"kind": "Unigram", "scores": np.zeros(1)},
        {"kind": "Unigram", "scores": np.zeros(2), "unknown": 2},
        {"kind": "Unigram", "scores": np.zeros(2), "byte_ids": np.zeros(255, np.uint32)},
        {"stages": "▁"},
        {"stages": (("Stage", 1),)},
    ):
        with pytest.raises(ValueError, match=r"model|piece|offsets|order|id|score|bytes"):
            pieces(**wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        pieces(ids=np.array([0, 1], np.int64))
    with pytest.raises(TypeError):
        pieces(kind="Unigram")


def test_a_long_word_with_a_mark_waits_in_a_stream() -> None:
    """Behind WhitespaceSplit, words are short; one that is not waits for its end."""
    tokenizer, encoding = both(family("T5"))
    text = "abc " + "zq" * 4000 + " foo " + "hello" * 1000 + " x"
    expected = tokenizer.encode(text, add_special_tokens=False).ids
    stream = encoding.stream_encoder()
    found = [id for at in range(0, len(text), 97) for id in stream.encode(text[at : at + 97])]
    assert found + stream.flush() == expected
