"""What is done to each pre-token before its model: cut again and changed, as in tokenizers."""

import json
import random

import pytest
from tokenizers import Regex, Tokenizer, decoders, models
from tokenizers import pre_tokenizers as pre

import streamtok
from streamtok.engines import texts as whole_texts
from streamtok.vocabulary.pieces import Pieces, symbol

from ..oracles import write
from .test_pieces import encoding_of


def test_a_pretoken_is_remembered_with_all_its_ids():
    """There are more ids than bytes, in the cache and out of it."""
    ids = {chr(0x100 + number): number for number in range(256)}
    stages = (("Split", "[\\s\\S]", "isolated"), ("MetaspaceText", "é", "always"))
    encoding = encoding_of(Pieces.of_ids("WordPiece", {"x": 1, "é": 2, **ids}, 0,
                                         most_characters=9).with_stages(stages))  # fmt: skip
    for size in (1, 3, 5, 15, 16, 200, 300):
        text = "x " * 30 + "x" * size
        expected = [2, 1, 2] * 30 + [2, 1] * size
        for _ in range(3):
            assert encoding.encode(text) == expected
            assert encoding.encode_batch([text] * 5) == [expected] * 5


BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
CUT = pre.Split(Regex("[ab]"), "isolated")
MARKED = pre.Metaspace("\u2581", "always", False)
MORE_IDS_THAN_BYTES = {
    "the bytes of a mark and of a letter": (
        models.Unigram([(text, -1.0) for text in ["?", *BYTES]], 0, byte_fallback=True),
        pre.Sequence([CUT, MARKED]),
    ),
    "the same of merges": (
        models.BPE({text: id for id, text in enumerate(BYTES)}, [], byte_fallback=True),
        pre.Sequence([CUT, MARKED]),
    ),
    "a mark and a letter": (
        models.WordPiece({"?": 0, "\u2581": 1, "##a": 2, "##b": 3}, unk_token="?"),
        pre.Sequence([CUT, MARKED]),
    ),
    "a space and a byte": (
        models.BPE({text: id for id, text in enumerate(pre.ByteLevel.alphabet())}, []),
        pre.Sequence([CUT, pre.ByteLevel(add_prefix_space=True, use_regex=False)]),
    ),
}


@pytest.mark.parametrize("which", MORE_IDS_THAN_BYTES)
def test_more_ids_than_bytes_on_threads(which, tmp_path, monkeypatch):
    """No block for ids has its size from the bytes of a text."""
    monkeypatch.setattr(whole_texts, "usable_cores", lambda: 8)
    monkeypatch.setattr(whole_texts, "LARGE", 2000)
    monkeypatch.setattr(whole_texts, "PART", 1000)
    model, splits = MORE_IDS_THAN_BYTES[which]
    theirs = Tokenizer(model)
    theirs.pre_tokenizer = splits
    theirs.decoder = decoders.ByteLevel()
    encoding = streamtok.load(write(tmp_path / "tokenizer.json", theirs.to_str()))
    for text in ("日本aé" * 3000, "ab" * 400_000, "b" * 70_000, "ab"):
        ids = encoding.encode(text)
        begun = theirs.encode(text[:400], add_special_tokens=False).ids
        assert ids[: len(begun) - 9] == begun[: len(begun) - 9]
        for threads in (2, 5):
            assert encoding.encode_to_numpy(text, num_threads=threads).tolist() == ids
            assert encoding.count(text, num_threads=threads) == len(ids)
            texts = [text, text[:1], text]
            assert encoding.encode_batch(texts, num_threads=threads)[::2] == [ids, ids]
    assert len(ids) >= 2 * len(text)


def test_what_grows_too_much_is_refused():
    pieces = Pieces.of_ids("WordLevel", {"unknown": 0}, 0)
    pieces.with_stages((("ByteLetters",),) * 10)
    pieces.with_stages((("ByteLetters",), ("Split", "a", "isolated")) * 10)
    with pytest.raises(ValueError, match="by a factor of 2048"):
        pieces.with_stages((("ByteLetters",),) * 11)
    names = ("a", "<0x61>")
    Pieces.of_merges({}, (("Symbols", names, "p" * 200, "s" * 55, "", False, True),))
    Pieces.of_merges({}, (("Symbols", names, "p" * 999, "s" * 999, "", False, False),))
    with pytest.raises(ValueError, match="by a factor of 1028"):
        Pieces.of_merges({}, (("Symbols", names, "p" * 200, "s" * 56, "", False, True),))


def test_there_are_as_many_symbols_as_characters_for_private_use():
    assert symbol(0) == "\U000f0001"
    assert symbol(131068) == "\U0010fffd"
    with pytest.raises(ValueError, match="more than 131069 symbols"):
        symbol(131069)


@pytest.mark.parametrize(
    "stage",
    [
        ("Split", "a", "sideways"),
        ("MetaspaceText", "", "always"),
        ("MetaspaceText", "ab日", "always"),
        ("Symbols", ("a",), "", "", "b", False, False),
    ],
)
def test_stages_that_are_none(stage):
    with pytest.raises((ValueError, KeyError)):
        Pieces.of_merges({}, (stage,))


@pytest.mark.parametrize("suffix", ["", "</w>"])
@pytest.mark.parametrize("prefix", ["", "##"])
@pytest.mark.parametrize("unknown", ["", "<unk>"])
def test_ids_come_out_before_the_end_where_nothing_cuts(prefix, suffix, unknown, tmp_path):
    rng = random.Random(prefix + suffix + unknown)
    for case in range(12):
        letters = ["a", "b", "Ã", "©"]
        words = [begin + x + end for x in letters for begin in {"", prefix} for end in {"", suffix}]
        merges = []
        for _ in range(9):
            left, right = rng.choice(words), rng.choice(words)
            made = left + right.removeprefix(prefix)
            if right.startswith(prefix) and made not in words and not left.endswith("</w>"):
                words.append(made)
                merges.append((left, right))
        known = [f"<0x{byte:02X}>" for byte in (*"##</w>日".encode(), 0xC3)] if case > 7 else []
        vocab = {text: id for id, text in enumerate(dict.fromkeys(["<unk>", *words, *known]))}
        names = "continuing_subword_prefix", "end_of_word_suffix", "unk_token"
        given = {name: x for name, x in zip(names, (prefix, suffix, unknown), strict=True) if x}
        given |= {"fuse_unk": bool(case % 2), "ignore_merges": case % 3 == 0}
        theirs = Tokenizer(models.BPE(vocab, merges, byte_fallback=case > 7, **given))
        if case % 4 == 1:
            theirs.pre_tokenizer = pre.ByteLevel(add_prefix_space=False, use_regex=False)
        encoding = streamtok.load(write(tmp_path / "tokenizer.json", theirs.to_str()))
        text = "".join(rng.choices(["a", "b", "é", "日", "ab", "ba", "bé"], k=4000))
        expected = theirs.encode(text)
        assert encoding.encode(text) == expected.ids
        assert encoding.count(text) == len(expected.ids)
        spans = encoding.encode_with_offsets(text)[1]
        stream, followed = encoding.stream_encoder(), encoding.stream_encoder()
        ids: list[int] = []
        places: list[list[int]] = []
        for at in range(0, len(text), 50):
            ids += stream.encode(text[at : at + 50])
            places += followed.encode_with_offsets(text[at : at + 50])[1].tolist()
            assert stream.pending < 3500 or (unknown and case > 7)
        assert ids or (unknown and case > 7)  # what is unknown comes after bytes that follow it
        assert ids + stream.flush() == expected.ids
        assert places + followed.encode_with_offsets("", final=True)[1].tolist() == spans.tolist()


def test_a_byte_that_is_two_symbols_is_given_out_whole(tmp_path):
    """The last symbol depends on whether the word ends; the one before it is of the same byte."""
    letters = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    points = [*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324)]
    tokens = [*map(chr, points), "\u0123</w>", "a\u0123</w>"]
    vocab = {token: id for id, token in enumerate(tokens)}
    model = {
        "type": "BPE",
        "vocab": vocab,
        "merges": ["a \u0123</w>"],
        "end_of_word_suffix": "</w>",
    }
    file = {
        "added_tokens": [],
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, letters, letters],
        },
        "model": model,
    }
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file))
    enc = streamtok.load(path, cache=False)
    data = "\u0327".encode() * 900
    ids = enc.encode(data)
    for cut in range(1000, 1800, 7):
        stream = enc.stream_encoder()
        assert stream.encode(data[:cut]) + stream.encode(data[cut:]) + stream.flush() == ids
