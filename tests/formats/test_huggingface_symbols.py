"""Prefixes and suffixes of words, unknown tokens and bytes without a token: as in tokenizers."""

import json

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

from streamtok import formats

from ..oracles import PLAIN, refuses
from .reading import check, read, refused

TEXT = "the cat sat on the mat, the naïve cat's hat: lower, low, newer\n" * 5


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


@pytest.mark.parametrize("make", [gpt1, clip])
def test_ids_and_texts(make, tmp_path):
    """`tests/tokenizer_files.py` makes others."""
    theirs = make()
    samples = [*PLAIN, "the  THE cats!\n", "naïve 日本 ünknown", "日日 a日", "low</w>", "a\u0301"]
    ours = check(theirs, samples)
    for text in samples:
        ids = ours.encode(text, allowed_special="all")
        expected = theirs.decode(ids, skip_special_tokens=False)
        if make is gpt1 and theirs.id_to_token(ids[-1]).endswith("</w>"):
            expected += " "
        assert ours.decode(ids) == expected
        decoder = ours.stream_decoder()
        assert "".join(map(decoder.decode, ([id] for id in ids))) + decoder.flush() == expected
    with pytest.raises(KeyError):
        ours.decode([ours.n_vocab])
    path = tmp_path / "x"
    refuses(formats.save_huggingface, ours, path, match="keep the original file")
    refuses(formats.save_tiktoken, ours, path, match=".")
    refuses(formats.save_gpt2, ours, path, path, match=".")
    assert not path.exists()


@pytest.mark.parametrize("is_byte_level", [False, True])
def test_offsets_of_unknown_symbols(is_byte_level):
    """An unknown symbol comes out with the next one, but is where its own character is."""
    vocab = {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "\u00c3": 4}
    theirs = Tokenizer(models.BPE(vocab, [("a", "b")], unk_token="<unk>"))
    if is_byte_level:
        theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    theirs.add_tokens([AddedToken("XX", normalized=False)])
    enc = read(theirs)
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
def test_refusals(changes, message):
    vocab = {text: id for id, text in enumerate(["t", "h", "e", "th", "the", " "])}
    file = json.loads(Tokenizer(models.BPE(vocab, [("t", "h"), ("th", "e")])).to_str())
    vocab = file["model"]["vocab"] | {"he": 6} | changes.get("vocab", {})
    file["model"] |= changes | {"vocab": vocab}
    refused(file, message)
