"""DecodeStream: what tokenizers gives for the same ids, step by step."""

from __future__ import annotations

import copy
import itertools
import random
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, models

from streamtok.hf import DecodeStream, Tokenizer
from streamtok.vocabulary.byte_alphabet import to_text

from .shapes import KINDS, TEXTS
from .test_matrix import written
from .test_tokenizer import pair_of

TEXT_KINDS = ("bert", "unigram", "word_level")  # their tokens are texts, never bytes
SPACE_KINDS = ("llama2", "metaspace")  # tokens are texts, or bytes where there is no other
BYTE_KINDS = [kind for kind in KINDS if kind not in (*TEXT_KINDS, *SPACE_KINDS)]


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("kind", [*TEXT_KINDS, *SPACE_KINDS])
def test_steps(kind: str, skip: bool) -> None:
    ours, real = pair_of(kind)
    for ids in rows_of(kind, real):
        place = random.Random(len(ids)).randrange(3)
        mine = DecodeStream(ids[:place], skip_special_tokens=skip)
        theirs = tokenizers.decoders.DecodeStream(ids[:place], skip_special_tokens=skip)
        for at in range(place, len(ids)):
            if kind in SPACE_KINDS and "\ufffd" in real.decode(ids[: at + 1]) + real.decode(ids):
                break  # tokenizers waits or raises
            expected = step(theirs, real, ids[at])
            assert step(mine, ours, ids[at]) == expected
            if isinstance(expected, tuple):
                break
    mine, theirs = DecodeStream(), tokenizers.decoders.DecodeStream()
    ids = real.encode(TEXTS[3]).ids
    assert mine.step(ours, ids) == theirs.step(real, ids)


@pytest.mark.parametrize("skip", [True, False])
def test_words_that_begin_a_text(skip: bool) -> None:
    """The first token keeps its "##", even if that is all it has."""
    names = ["[UNK]", "##", "##a", "b", ".", "[SEP]"]
    model = models.WordPiece(vocab={name: id for id, name in enumerate(names)}, unk_token="[UNK]")
    real = tokenizers.Tokenizer(model)
    real.decoder = decoders.WordPiece()
    real.add_special_tokens(["[SEP]"])
    ours = Tokenizer(real)
    for ids in itertools.product(range(len(names) + 1), repeat=4):
        assert ours.decode([*ids], skip) == real.decode(ids, skip)
        mine, theirs = DecodeStream([], skip), decoders.DecodeStream([], skip)
        for id in ids:
            assert step(mine, ours, id) == step(theirs, real, id)


def rows_of(kind: str, real: tokenizers.Tokenizer) -> list[list[int]]:
    rng = random.Random(kind)
    rows = [real.encode(text).ids for text in TEXTS]
    size = real.get_vocab_size()
    return rows + [[rng.randrange(size) for _ in range(30)] for _ in range(60)]


def letters(data: bytes) -> list[str]:
    """The tokens of these bytes in a vocabulary of the byte alphabet."""
    return [to_text(data[at : at + 1]) for at in range(len(data))]


# What may come after any bytes: something else, and the rest of each kind of character.
GOES_ON = [b"x", *(bytes([first, 0x80, 0x80]) for first in (0x80, 0x90, 0xA0, 0xBF))]


def certain(real: tokenizers.Tokenizer, ids: list[int], skip: bool) -> str:
    """The text of the ids that no later id can change."""
    tails = [[real.token_to_id(letter) for letter in letters(data)] for data in GOES_ON]
    texts = [real.decode(ids + tail, skip) for tail in tails]
    first, last = min(texts), max(texts)
    n = next((at for at, (a, b) in enumerate(zip(first, last)) if a != b), len(first))  # noqa: B905
    return first[:n]


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("kind", BYTE_KINDS)
def test_all_text_that_is_certain(kind: str, skip: bool) -> None:
    """At once, and only that, wherever the ids before the stream end."""
    ours, real = pair_of(kind)
    single = [real.token_to_id(letter) for letter in letters(bytes(range(256)))]
    rng = random.Random(kind)
    rows = rows_of(kind, real)[3:16]
    cut = b"ab\xf0\x9f\x8c\xb6\xef\xbf\xbd\xf0\x9f\xffc\xc3\xa9\xe6\x97"
    rows += [[single[byte] for byte in cut], [single[rng.choice(cut)] for _ in range(40)]]
    rows.append(real.encode(" \ufffd" * 20 + " \U0001f336\ufe0f " + "\ufffd" * 9).ids)
    for ids in rows:
        known = [certain(real, ids[:at], skip) for at in range(len(ids) + 1)]
        for place in {0, 1, *rng.sample(range(len(ids)), min(4, len(ids)))}:
            stream = DecodeStream(ids[:place], skip_special_tokens=skip)
            text = known[place]
            for at in range(place, len(ids)):
                text += stream.step(ours, ids[at]) or ""
                assert text == known[at + 1], (ids[:place], ids[place : at + 1])
            if place < len(ids):
                at_once = DecodeStream(ids[:place], skip_special_tokens=skip)
                assert known[place] + (at_once.step(ours, ids[place:]) or "") == known[-1]


@pytest.mark.parametrize("kind", SPACE_KINDS)
def test_bytes_that_are_no_characters(kind: str) -> None:
    """As in tokenizers' decode: no byte of a row that is not UTF-8 counts."""
    ours, real = pair_of(kind)

    def ids_of(data: bytes) -> list[int]:
        return [real.token_to_id(f"<0x{byte:02X}>") for byte in data]

    x = real.token_to_id("x")
    for rows in (
        [b"\xe6\x97", b""],
        [b"\xff"],
        [b"\xe6\x97\xe6\x97\xa5", b"\xe6\x97\xa5"],
        ["日本".encode(), b"\xc3", b"\xc3\xa9"],
        [b"A", b"\xffA", b" ", "\ufffd".encode()],
    ):
        ids = [id for data in rows for id in [*ids_of(data), x]]
        stream = DecodeStream()
        made = [stream.step(ours, id) or "" for id in ids]
        assert "".join(made) == real.decode(ids)
        for place in range(len(ids)):
            begun = DecodeStream(ids[:place])
            rest = "".join(begun.step(ours, id) or "" for id in ids[place:])
            assert rest == "".join(made[place:]), (rows, place)


def step(stream: Any, tokenizer: Any, id: Any) -> Any:
    try:
        return stream.step(tokenizer, id)
    except Exception as error:
        return "raised", str(error).partition(" while")[0]


@pytest.mark.parametrize("kind", ["gpt2", "bert"])  # decoded by streamtok, and by tokenizers
def test_ids_that_there_are_not(kind: str) -> None:
    ours, real = pair_of(kind)
    stream = DecodeStream()
    ids = ours.encode("Hello there", add_special_tokens=False).ids
    found = []
    for id in ids:
        assert [stream.step(ours, wrong) for wrong in (-1, 1 << 40, 999_999)] == [None] * 3
        found.append(stream.step(ours, id) or "")
    assert "".join(found) == real.decode(ids)
    for wrong in ("5", None, 1.5, [1, "2"]):
        with pytest.raises(TypeError, match="either an integer or a list of integers"):
            stream.step(ours, wrong)


def test_a_special_token_that_is_found_as_one_space() -> None:
    """It is not known to be special there, and only a text's first space is left out."""
    ours, real = pair_of("llama2")
    for tokenizer in (ours, real):
        tokenizer.normalizer = tokenizers.normalizers.NFKC()
        tokenizer.add_special_tokens([tokenizers.AddedToken("\u3000", normalized=True)])
    assert ours.engine == "streamtok"
    id = real.token_to_id("\u3000")
    ids = [id, *real.encode("a\u3000b", add_special_tokens=False).ids, id]
    stream = DecodeStream(skip_special_tokens=True)
    assert "".join(stream.step(ours, id) or "" for id in ids) == real.decode(ids, True)
    assert real.decode(ids, True).endswith(" ")


def test_a_decoder_that_the_caller_changes() -> None:
    """In place: as tokenizers, which cannot continue the stream. Another decoder: by that one."""
    for tokenizer, new in zip(
        pair_of("llama2"), (DecodeStream, tokenizers.decoders.DecodeStream), strict=True
    ):
        tokenizer.decoder = tokenizers.decoders.Metaspace()
        decoder, _ = tokenizer.decoder, tokenizer.model  # also another part
        stream = new()
        first, *rest = tokenizer.encode("a b c", add_special_tokens=False).ids
        assert stream.step(tokenizer, first) == "a"
        decoder.replacement = "b"
        with pytest.raises(Exception, match="Invalid prefix"):
            [stream.step(tokenizer, id) for id in rest]
    ours = Tokenizer.from_str(written("llama2"))
    stream = DecodeStream()
    first, *rest = ours.encode("a b c", add_special_tokens=False).ids
    assert ours.decoder is not None
    assert stream.step(ours, first) == "a"
    ours.decoder = tokenizers.decoders.Replace("▁", "_")
    assert "".join(stream.step(ours, id) or "" for id in rest).startswith("_b")


def test_copies() -> None:
    ours = Tokenizer.from_str(written("gpt2"))
    stream = DecodeStream()
    ids = ours.encode("日本語").ids
    for id in ids[:-1]:
        stream.step(ours, id)
    twins = copy.copy(stream), copy.deepcopy(stream)
    assert stream.step(ours, ids[-1]) is not None
    assert stream.step(ours, ids[0]) is None
    for twin in twins:
        assert twin.step(ours, ids[-1]) is not None
