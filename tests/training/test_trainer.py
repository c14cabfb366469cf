"""Trainer: counts for any chunks, in threads; its state and its result."""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

import streamtok
from streamtok import Trainer
from streamtok.load import load_tiktoken_bpe
from streamtok.patterns.named import PATTERNS
from streamtok.reference import bpe as reference
from streamtok.training import saved_counts
from streamtok.vocabulary.sealed import seal

from ..doc_blocks import block_that_has, run_shell
from ..trained import counted, rustbpe_tokens, some_text

# State


def test_invalid_states(tmp_path):
    trainer = counted(["ab ab"], errors="replace")
    trainer.update(b"x\xe4")
    pattern, options, state = trainer.__getstate__()
    place, arrays = state
    assert Trainer.__new__(Trainer).__setstate__((pattern, options, state)) is None
    sizes, counts, firsts = arrays[1:]
    for wrong in (
        ((place[0] - 1, *place[1:]), arrays),
        ((*place[:2], b"x"), arrays),
        ((*place[:2], b"\xc0"), arrays),
        (place, (arrays[0], sizes, counts + np.uint64(1 << 63), firsts)),
        (place, (arrays[0], sizes, counts, firsts + np.uint64(1 << 40))),
        (place, (arrays[0], sizes, counts[:1], firsts)),
    ):
        with pytest.raises(ValueError):
            Trainer.__new__(Trainer).__setstate__((pattern, options, wrong))


def test_damaged_counts(tmp_path):
    path = tmp_path / "counts"
    counted(some_text()[:2]).save_counts(path)
    good = path.read_bytes()
    fields = msgspec.msgpack.decode(good[len(saved_counts._MAGIC) + 4 :])
    arrays = fields["arrays"]
    damaged = [b"", b"PK", good[:100], good[: len(good) // 2], b"x" + good[1:], good[:-1] + b"x"]
    for wrong in (
        {"more": 1}, {"errors": "ignore"}, {"source": "("}, {"place": [1, b"", b""]},
        {"place": [10**9, b"", b"x"]}, {"sequence": [[], False]}, {"arrays": [*arrays[:3], 5]},
        {"arrays": [*arrays[:2], ["<f8", *arrays[2][1:]], arrays[3]]},
    ):  # fmt: skip
        damaged.append(seal(saved_counts._MAGIC, fields | wrong))
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(streamtok.StateError, match="not a file of saved counts, or is damaged"):
            Trainer.load_counts(path)
    with pytest.raises(FileNotFoundError):
        Trainer.load_counts(tmp_path / "none")


# The result


def test_the_trained_encoding():
    texts = some_text()
    enc = streamtok.Encoding.train_from_iterator(
        iter(texts), 1000, "gpt2", special_tokens=["<|a|>", "<|b|>"], name="mine"
    )
    assert (enc.name, enc.n_vocab) == ("mine", 1000)
    assert enc.special_tokens_set == {"<|a|>", "<|b|>"}
    assert enc.encode("<|a|><|b|>", allowed_special="all") == [998, 999]
    ranks = enc._mergeable_ranks
    assert [ranks[bytes([i])] for i in range(256)] == list(range(256))
    for text in texts:
        ids = enc.encode(text, disallowed_special=())
        assert enc.decode(ids) == text
        assert ids == reference.encode_ordinary(ranks, PATTERNS["gpt2"], text)[: len(ids)]
    stream = enc.stream_encoder(disallowed_special=())
    streamed = [i for a in range(0, len(text), 7) for i in stream.encode(text[a : a + 7])]
    assert streamed + stream.flush() == ids
    again = pickle.loads(pickle.dumps(enc))
    assert again.digest == enc.digest


def test_ends_when_no_pair_is_left():
    enc = Trainer().train(1000, special_tokens=["<|x|>"])
    assert (enc.n_vocab, enc.encode("<|x|>", allowed_special="all")) == (257, [256])
    assert counted(["abab"]).merges(1000) == [(b"a", b"b"), (b"ab", b"ab")]
    assert counted(["abab"]).merges(1000, min_frequency=2) == [(b"a", b"b")]


def test_arguments():
    with pytest.raises(ValueError, match="must be at least 256"):
        Trainer().train(256, special_tokens=["<x>"])
    with pytest.raises(ValueError, match="raw, hf, first"):
        Trainer().train(300, tie="last")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="special tokens"):
        Trainer().train(300, special_tokens=["<x>", "<x>"])
    with pytest.raises(ValueError, match="min_frequency"):
        Trainer().train(300, min_frequency=-1)
    with pytest.raises(ValueError, match="max_token_length"):
        Trainer().train(300, max_token_length=1)
    trainer = Trainer()
    trainer.update("open")
    for wrong in ({"vocab_size": 300.5}, {"min_frequency": 0.5}, {"special_tokens": "text"}):
        with pytest.raises(TypeError):
            trainer.train(**{"vocab_size": 300, **wrong})
    assert trainer.pending == 4
    with pytest.raises(ValueError, match="num_threads"):
        Trainer(num_threads=0)
    with pytest.raises(ValueError, match="errors must be"):
        Trainer(errors="ignore")
    with pytest.raises(streamtok.UnsupportedPatternError):
        Trainer(r"(?<=a)b")
    with pytest.raises(streamtok.PatternError):
        Trainer("(")
    with pytest.raises(TypeError, match="not one text"):
        Trainer().update_documents("one text")
    with pytest.raises(TypeError):
        Trainer().update(5)  # type: ignore[arg-type]


def test_a_token_that_is_too_long():
    trainer = Trainer(r"[\s\S]+")
    trainer.update("a" * 200_000, final=True)
    with pytest.raises(streamtok.VocabularyError, match="more than 65535"):
        trainer.train(300)
    assert trainer.train(270).n_vocab == 270


# The documents


def blocks_of(name: str) -> list[str]:
    path = Path(__file__).resolve().parents[2] / "docs" / name
    return re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.DOTALL)


def test_the_recipes_of_the_documentation(tmp_path, monkeypatch):
    """The examples in docs/training.md, with nanochat's flow, run as they are."""
    safetensors = pytest.importorskip("safetensors.numpy")
    monkeypatch.chdir(tmp_path)
    Path("corpus.txt").write_text("\n".join(some_text()), "utf-8")
    rows = np.random.default_rng(1).standard_normal((50_257, 4), np.float32)
    safetensors.save_file({"wte.weight": rows}, "model.safetensors")
    names: dict = {"documents": some_text()}
    blocks = blocks_of("training.md")
    assert len(blocks) >= 3
    for block in blocks:
        exec(compile(block, "training.md", "exec"), names)
    tokenizer = names["tokenizer"]
    ids = tokenizer.encode(["hello world", "é"], prepend="<|bos|>", num_threads=2)
    assert [row[0] for row in ids] == [tokenizer.bos] * 2
    assert [tokenizer.enc.decode(row[1:]) for row in ids] == ["hello world", "é"]
    assert tokenizer.encode("hello", prepend=tokenizer.bos, append="<|bos|>")[-1] == tokenizer.bos
    small, old = names["small"], names["old"]
    changed = safetensors.load_file("small.safetensors")["wte.weight"]
    assert len(changed) == small.n_vocab < 15_000
    assert small.n_vocab - 1 == small.encode_single_token("<|tool|>")
    for text in ("the", "<|endoftext|>"):
        found, before = small.encode_single_token(text), old.encode_single_token(text)
        assert (changed[found] == rows[before]).all()
    assert (names["old_ids"] >= old.n_vocab).sum() > 90
    ranks = tokenizer.enc._mergeable_ranks
    nanochat = names["documents"], tokenizer.enc.n_vocab - 9, PATTERNS["nanochat"]
    assert list(ranks) == rustbpe_tokens(*nanochat)


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_the_commands_of_the_documentation(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "a.txt").write_text("low lower lowest\n", "utf-8")
    (tmp_path / "data" / "a.jsonl").write_text('{"text": "low lower lowest"}\n', "utf-8")
    run_shell(block_that_has("training.md", "sh", "--jsonl text"), tmp_path)
    loaded = streamtok.load(tmp_path / "tokenizer.json")
    assert loaded.special_tokens_set == {"<|endoftext|>"}
    assert len(load_tiktoken_bpe(str(tmp_path / "from-jsonl.tiktoken"))) < 300


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_the_recipe_for_shards(tmp_path: Path) -> None:
    """The counts of shards, merged, train what one machine trains."""
    texts = "".join(some_text()[:6]), "".join(some_text()[6:])
    for number, text in enumerate(texts):
        (tmp_path / f"shard-{number}.txt").write_text(text, "utf-8")
    run_shell(block_that_has("training.md", "sh", "--save-counts"), tmp_path)
    trainer = Trainer("cl100k")
    trainer.update_documents(texts)
    merged = load_tiktoken_bpe(str(tmp_path / "merged.tiktoken"))
    assert merged == trainer.train(500)._mergeable_ranks


@pytest.mark.parametrize("text", ["low", "x", "\u00e9", " lower"])
def test_a_special_token_that_is_learnt_is_refused(text: str) -> None:
    """It would have two ids; or, with one, the text of users would become it."""
    trainer = Trainer("cl100k")
    trainer.update_documents(["low lower lowest \u00e9\u00e9 \u00e9"] * 5)
    with pytest.raises(streamtok.VocabularyError, match=f"the special token '{text}' is a token"):
        trainer.train(300, special_tokens=["<s>", text])
    if len(text.encode()) > 1:  # one byte is always a token
        assert trainer.train(258, special_tokens=["<s>", text]).encode_single_token(text) == 257
    docs = ["low lower lowest"] * 5
    with pytest.raises(streamtok.VocabularyError, match="two ids"):
        streamtok.Encoding.train_from_iterator(docs, 300, special_tokens=["low"])
