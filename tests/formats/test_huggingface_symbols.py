"""Prefixes and suffixes of words, unknown tokens and bytes without a token: as in tokenizers."""

import json
import pickle
import random

import numpy as np
import pytest
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

import streamtok
from streamtok import formats

from ..conftest import stream_ids
from ..oracles import write

TEXT = "the cat sat on the mat, the naïve cat's hat: lower, low, newer\n" * 5
TEXTS = [
    *("", " ", "x", "the cat", "cats!", "the  THE\n", "naïve 日本 ünknown", "日日 a日", "low</w>"),
    *("lower newest", "a\u0301", "the " * 50, "x" * 300),
]


def gpt1() -> Tokenizer:
    """As GPT-1's: a suffix, characters, unknown ones."""
    made = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.BPEDecoder()
    made.train_from_iterator(
        [TEXT],
        trainers.BpeTrainer(vocab_size=60, special_tokens=["<unk>"], end_of_word_suffix="</w>"),
    )
    return made


def clip() -> Tokenizer:
    """As CLIP's: a suffix, and bytes."""
    letters = pre_tokenizers.ByteLevel.alphabet()
    vocab = {}
    for token in [*sorted(letters), *(letter + "</w>" for letter in sorted(letters))]:
        vocab[token] = len(vocab)
    merges = [("t", "h"), ("th", "e</w>"), ("c", "a"), ("ca", "t</w>"), ("Ã", "¯"), ("l", "ow</w>")]
    for token in ("th", "the</w>", "ca", "cat</w>", "Ã¯", "ow</w>", "low</w>", "<|end|>"):
        vocab[token] = len(vocab)
    merges.append(("o", "w</w>"))
    made = Tokenizer(models.BPE(vocab, merges, unk_token="<|end|>", end_of_word_suffix="</w>"))
    made.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    pattern = r"'s|'t|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|end|>"])
    return made


def wordpieces() -> Tokenizer:
    """With a prefix, no pre-tokenizer, and unknown characters that are fused."""
    made = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", fuse_unk=True))
    made.train_from_iterator(
        [TEXT],
        trainers.BpeTrainer(
            vocab_size=70, special_tokens=["<unk>"], continuing_subword_prefix="##"
        ),
    )
    return made


def left_out() -> Tokenizer:
    """Characters without a token are left out, and their neighbours merge."""
    vocab = {text: id for id, text in enumerate(["t", "h", "e", "th", "the", " "])}
    return Tokenizer(models.BPE(vocab, [("t", "h"), ("th", "e")]))


MAKERS = {"gpt1": gpt1, "clip": clip, "wordpieces": wordpieces, "left out": left_out}


@pytest.fixture(params=MAKERS)
def twins(request, tmp_path):
    """(theirs, ours)"""
    theirs = MAKERS[request.param]()
    path = write(tmp_path / "tokenizer.json", theirs.to_str())
    return theirs, formats.load_huggingface(path)


def test_ids_and_streams(twins):
    theirs, ours = twins
    rng = random.Random(1)
    for text in TEXTS:
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text, allowed_special="all") == ids, text
        assert ours.count(text, allowed_special="all") == len(ids)
        cuts = [sorted(rng.choices(range(len(text) + 1), k=3)) for _ in range(5)]
        for cut in (*cuts, list(range(len(text)))):
            chunks = [text[a:b] for a, b in zip([0, *cut], [*cut, len(text)], strict=True)]
            assert stream_ids(ours.stream_encoder(allowed_special="all"), chunks) == ids, text


def test_decoding(twins):
    theirs, ours = twins
    ends_words = isinstance(theirs.decoder, decoders.BPEDecoder)
    for text in TEXTS:
        ids = ours.encode(text, allowed_special="all")
        if theirs.decoder is None:
            expected = "".join(theirs.id_to_token(id) for id in ids)
        else:
            expected = theirs.decode(ids, skip_special_tokens=False)
        if ends_words and ids and theirs.id_to_token(ids[-1]).endswith("</w>"):
            expected += " "
        assert ours.decode(ids) == expected
        decoder = ours.stream_decoder()
        assert "".join(map(decoder.decode, ([id] for id in ids))) + decoder.flush() == expected
    with pytest.raises(KeyError):
        ours.decode([ours.n_vocab])


def test_copies_and_the_packed_form(twins, tmp_path):
    _, ours = twins
    formats.save_packed(ours, tmp_path / "x.streamtok")
    for again in (formats.load_packed(tmp_path / "x.streamtok"), pickle.loads(pickle.dumps(ours))):
        assert again.digest == ours.digest
        for text in TEXTS:
            ids = again.encode(text, allowed_special="all")
            assert ids == ours.encode(text, allowed_special="all")
            assert again.decode(ids) == ours.decode(ids)
    stream = ours.stream_encoder()
    ids = stream.encode("the ca")
    other = ours.stream_encoder()
    other.setstate(stream.getstate())
    assert ids + other.encode("t lo") + other.flush() == ours.encode("the cat lo")


def test_they_are_not_written(twins, tmp_path):
    with pytest.raises(streamtok.VocabularyError, match="keep the original file"):
        formats.save_huggingface(twins[1], tmp_path / "x")
    with pytest.raises(streamtok.VocabularyError):
        formats.save_tiktoken(twins[1], tmp_path / "x")
    with pytest.raises(streamtok.VocabularyError):
        formats.save_gpt2(twins[1], tmp_path / "x", tmp_path / "y")
    assert not (tmp_path / "x").exists()


def test_offsets_where_there_are_no_splits(tmp_path):
    path = write(tmp_path / "tokenizer.json", wordpieces().to_str())
    ours = formats.load_huggingface(path)
    ids, spans = ours.encode_with_offsets("the cat")
    assert [("the cat")[a:b] for a, b in spans.tolist()] == [
        ours.decode([id]).replace("##", "") for id in ids
    ]


@pytest.mark.parametrize("is_byte_level", [False, True])
def test_offsets_of_unknown_symbols(is_byte_level, tmp_path):
    """An unknown symbol comes out with the next one, but is where its own character is."""
    vocab = {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "\u00c3": 4}
    theirs = Tokenizer(models.BPE(vocab, [("a", "b")], unk_token="<unk>"))
    if is_byte_level:
        theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    theirs.add_tokens([AddedToken("XX", normalized=False)])
    enc = formats.load_huggingface(write(tmp_path / "tokenizer.json", theirs.to_str()))
    for text in ("a日ếab", "日", "é日XXa日bééab", "日日XX日", "xa\u0301"):
        found = theirs.encode(text)
        ids, spans = enc.encode_with_offsets(text, allowed_special="all")
        assert ids.tolist() == found.ids
        assert [*map(tuple, spans.tolist())] == found.offsets
        stream = enc.stream_encoder(allowed_special="all")
        parts = [stream.encode_with_offsets(char) for char in text]
        parts.append(stream.encode_with_offsets("", final=True))
        assert np.array_equal(np.concatenate([part[1] for part in parts]), spans)


HIDDEN = [["h", "e"], ["t", "h"], ["th", "e"]]  # "the" becomes t and he


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"merges": [["t", "h"], ["t", "zz"]]}, "'zz' is not in the vocabulary"),
        ({"unk_token": "<unk>"}, "unk_token '<unk>' is not in the vocabulary"),
        ({"continuing_subword_prefix": "##"}, "must begin with '##'"),
        ({"vocab": {"t": 0, "h": 0}}, "id 0 is given twice: to b'h' and to b't'"),
        ({"vocab": {"é": -1}}, "the id of 'é' must be in 0 … 4294967294, not -1"),
        (
            {"merges": [["t", "he"], ["th", "e"], *HIDDEN], "end_of_word_suffix": "e"},
            "of other symbols",
        ),
    ],
)
def test_refusals(changes, message, tmp_path):
    file = json.loads(left_out().to_str())
    vocab = file["model"]["vocab"] | {"he": 6} | changes.get("vocab", {})
    file["model"] |= changes | {"vocab": vocab}
    path = write(tmp_path / "tokenizer.json", json.dumps(file))
    with pytest.raises(streamtok.VocabularyError, match=message):
        formats.load_huggingface(path)
