"""Files of merges: GPT-2's pair against tokenizers, minbpe's model against a copy of its loop."""

from __future__ import annotations

import json
import random

import pytest
from tokenizers import Tokenizer
from tokenizers import pre_tokenizers as pre
from tokenizers.models import BPE

import streamtok
from streamtok import formats

from ..encodings import SINGLES, make_encoding
from ..minbpe_twin import Twin
from ..oracles import PLAIN, assert_same, refuses, texts, write
from .families import family
from .reading import ids_of

# GPT-2's pair


def test_gpt2s_own_pair(tmp_path):
    gpt2 = streamtok.get_encoding("gpt2")
    merges, ids = tmp_path / "merges.txt", tmp_path / "vocab.json"
    formats.save_gpt2(gpt2, merges, ids)
    assert merges.read_bytes().startswith(b"#version: 0.2\n\xc4\xa0 t\n\xc4\xa0 a\nh e\n")
    assert json.loads(ids.read_text("utf-8"))["<|endoftext|>"] == 50256
    theirs = Tokenizer(BPE.from_file(str(ids), str(merges)))
    theirs.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
    enc = formats.load(merges)
    assert enc.definition.vocabulary == gpt2.definition.vocabulary
    assert enc.special_tokens_set == {"<|endoftext|>"}
    assert_same(enc, ids_of(theirs), PLAIN)
    assert formats.load(tmp_path).encode("hello world") == [31373, 995]


def shuffled_pair(tmp_path, seed):
    """A trained pair with shuffled ids and a few swapped merges."""
    rng = random.Random(seed)
    model = json.loads(family("GPT-2", 600).to_str())["model"]
    numbers = list(range(len(model["vocab"])))
    rng.shuffle(numbers)
    vocab = dict(zip(model["vocab"], numbers, strict=True))
    merges = [" ".join(pair) for pair in model["merges"]]
    for _ in range(20):
        i, j = rng.randrange(len(merges)), rng.randrange(len(merges))
        merges[i], merges[j] = merges[j], merges[i]
    merges += rng.sample(merges, 5)  # the later place counts
    return (
        write(tmp_path / "merges.txt", "#version: 0.2\n" + "\n".join(merges) + "\n"),
        write(tmp_path / "vocab.json", json.dumps(vocab)),
        vocab,
    )


def test_ids_in_another_order_than_the_merges(tmp_path):
    merges, ids, vocab = shuffled_pair(tmp_path, 1)
    theirs = Tokenizer(BPE.from_file(str(ids), str(merges)))
    theirs.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
    enc = formats.load(merges, pattern="gpt2")
    assert enc._special_tokens == {"<|endoftext|>": vocab["<|endoftext|>"]}
    assert_same(enc, ids_of(theirs))
    formats.save_gpt2(enc, merges, ids)
    assert formats.load(merges, pattern="gpt2").digest == enc.digest
    assert json.loads(ids.read_text("utf-8")) == vocab
    refuses(formats.load, tmp_path, match="give a pattern")
    assert formats.load(tmp_path, pattern="gpt2").digest == enc.digest
    merges.write_bytes(merges.read_bytes().partition(b"\n")[2])  # some files have no header
    assert formats.load(merges, pattern="gpt2").digest == enc.digest


@pytest.mark.parametrize(
    ("merges", "vocab", "message"),
    [
        (
            "#version: 0.2\na b c\n",
            None,
            "merges.txt, line 2: expected two tokens and a space, found 'a b c'",
        ),
        ("a b\n", None, "'ab' is not in the vocabulary"),
        (b"\xff\n", None, "byte 0: not UTF-8"),
        ("", "[]", "expected an object"),
        ("", '{"a": "b"}', "vocab.json: the id of 'a' must be in 0 … 4294967294, not 'b'"),
        ("", '{"a": 1}', "255 of the 256 single bytes"),
        ("", '{"a": 1, "b": 1}', "id 1 is given twice"),
        ("", '{"a": 1', "Input data was truncated"),
    ],
)
def test_unsound_pairs(tmp_path, merges, vocab, message):
    if vocab is None:
        vocab = json.dumps({c: i for i, c in enumerate(pre.ByteLevel.alphabet())})
    write(tmp_path / "vocab.json", vocab)
    refuses(formats.load, write(tmp_path / "merges.txt", merges), match=message)


def test_encodings_that_a_pair_cannot_express(tmp_path):
    paths = tmp_path / "a", tmp_path / "b"
    enc = make_encoding(r"\S+|\s+", SINGLES | {b"abc": 256})
    refuses(formats.save_gpt2, enc, *paths, match="no merges make b'abc' of made, id 256")
    assert not list(tmp_path.iterdir())
    merges, _, _ = shuffled_pair(tmp_path, 0)
    for special, message in ({"<x>": 3}, "'<x>' with id 3 is not in"), ({"a": -1}, "id -1 is not"):
        refuses(formats.load, merges, pattern="gpt2", special_tokens=special, match=message)
    refuses(formats.load, merges.rename(tmp_path / "m.txt"), match="merges without their ids")


# minbpe


def minbpe_model(pattern: str, specials: dict[str, int], count: int = 300) -> str:
    """The first merges of GPT-2, in the form that minbpe saves."""
    table = streamtok.get_encoding("gpt2").definition.vocabulary
    numbers = dict(SINGLES)
    lines = ["minbpe v1", pattern, str(len(specials))]
    lines += [f"{text} {number}" for text, number in specials.items()]
    for left, right in formats.merge_lists.to_merges(table)[:count]:
        lines.append(f"{numbers[left]} {numbers[right]}")
        numbers[left + right] = len(numbers)
    return "\n".join(lines) + "\n"


GPT4 = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)


@pytest.mark.parametrize("pattern", [GPT4, ""])
def test_minbpe(tmp_path, pattern):
    path = write(tmp_path / "x.model", minbpe_model(pattern, {"<|end|>": 1000, "<é>": 1001}))
    theirs = Twin(path)
    enc = formats.load(path)
    samples = [text[:3000] for text in texts()] if pattern else PLAIN
    assert_same(enc, theirs.encode_ordinary, samples)
    assert enc._special_tokens == theirs.special_tokens
    assert enc.encode("a<é>", allowed_special="all")[-1] == 1001


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("minbpe v2\n", "unknown format"),
        ("minbpe v1\n.\n", "ends before the merges"),
        (b"minbpe v1\n\xff\n0\n", "line 2: the pattern is not UTF-8"),
        ("minbpe v1\n(\n0\n", "pattern"),
        ("minbpe v1\n.\nx\n", "line 3: expected the number of special tokens, found b'x'"),
        ("minbpe v1\n.\n999999999\n", "promises 999999999 special tokens, but the file ends"),
        ("minbpe v1\n.\n1\na b 3\n", "line 4: expected a special token and its id"),
        ("minbpe v1\n.\n1\na 3x\n", "line 4: expected a special token and its id"),
        ("minbpe v1\n.\n2\na 3\na 4\n", "line 5: the special token 'a' is given twice"),
        ("minbpe v1\n.\n0\n97\n", "line 4: expected the ids of two tokens to merge, found b'97'"),
        ("minbpe v1\n.\n0\n97 256\n", "line 4: id 256 is not defined yet: expected ids below 256"),
        ("minbpe v1\n.\n0\n97 98\n97 98\n", "line 5: .*ids 256 and 257 are both b'ab'"),
        (
            "minbpe v1\n.\n0\n97 97\n" + "".join(f"{i} {i}\n" for i in range(256, 300)),
            "65536 bytes",
        ),
        ("minbpe v1\n.\n0\n97 " + "9" * 5000 + "\n", "line 4"),
    ],
)
def test_unsound_minbpe_models(tmp_path, data, message):
    refuses(formats.load, write(tmp_path / "x.model", data), match=message)
