"""Vocabularies in GGUF files.

`tests/long/real_vocabularies.py` compares llama.cpp's own files.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2

import streamtok
from streamtok.formats.gguf_patterns import LOOKED_UP, PRE_TOKENIZERS
from streamtok.formats.loading import BYTE_TEXTS
from streamtok.formats.merge_lists import to_merges
from streamtok.vocabulary.byte_alphabet import to_text

from ..gguf_files import gguf_file
from ..sentencepiece_models import trained
from ..trained import counted, some_text

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
TEXT = "Hello lower WORLD's 12345 naïve 日本 \n\n  x<tool> ▁!<|end|>\t¡"


def written(path: Path, model: str, *args, **keys) -> Path:
    """The path of a new file."""
    path.write_bytes(gguf_file(model, *args, **keys))
    return path


def byte_level(path: Path, pre: str | None = "gpt-2", **keys) -> tuple[Path, streamtok.Encoding]:
    """A file of BPE, and the encoding that was written, which has ids of its own order."""
    old = counted(some_text()[:20], "gpt2").train(400)
    vocabulary = old.definition.vocabulary
    tokens = [to_text(token) for token in vocabulary.to_list()] + ["<|end|>", "<tool>", ""]
    types = [NORMAL] * (len(tokens) - 3) + [CONTROL, USER_DEFINED, UNUSED]
    keys["merges"] = [f"{to_text(a)} {to_text(b)}" for a, b in to_merges(vocabulary)]
    if pre is not None:
        keys["pre"] = pre
    return written(path, "gpt2", tokens, types, **keys), old


def check_streams(enc: streamtok.Encoding, text: str) -> list[int]:
    ids = enc.encode(text, disallowed_special=())
    stream = enc.stream_encoder(disallowed_special=())
    assert [id for letter in text for id in stream.encode(letter)] + stream.flush() == ids
    return ids


def test_byte_level_bpe(tmp_path: Path) -> None:
    path, old = byte_level(
        tmp_path / "model.gguf", bos_token_id=400, eos_token_id=400, eot_token_id=401,
        add_bos_token=True, add_eos_token=True,
    )  # fmt: skip
    enc = streamtok.load(path)
    assert (enc.name, enc.n_vocab, enc._special_tokens) == ("model", 403, {"<|end|>": 400})
    before, after = TEXT.split("<tool>")
    ids = [*old.encode(before), 401, *old.encode(after)]
    assert check_streams(enc, TEXT) == ids
    assert enc.encode("<|end|>", allowed_special="all") == [400]
    assert enc.encode("a", add_special_tokens=True) == [400, *old.encode("a"), 400]
    assert enc.eos_tokens == (400, 401)
    assert enc.decode(ids) == TEXT
    assert streamtok.load(path, name="mine").name == "mine"


def test_all_pre_tokenizers(tmp_path: Path) -> None:
    for patterns in {patterns: None for patterns in PRE_TOKENIZERS.values()}:
        pre = next(name for name, known in PRE_TOKENIZERS.items() if known == patterns)
        enc = streamtok.load(byte_level(tmp_path / "model.gguf", pre)[0])
        assert enc.decode(check_streams(enc, TEXT)) == TEXT, pre
    assert PRE_TOKENIZERS.keys() >= LOOKED_UP


def test_the_default_pre_tokenizer(tmp_path: Path) -> None:
    """Without a name, llama.cpp cuts off punctuation and groups of three digits."""
    enc = streamtok.load(byte_level(tmp_path / "model.gguf", None)[0])
    assert enc.decode_tokens_bytes(enc.encode("1234"))[-1] == b"4"


@pytest.mark.parametrize(("kind", "model"), [("bpe", "llama"), ("unigram", "t5")])
def test_models_of_sentencepiece(kind: str, model: str, tmp_path: Path) -> None:
    data = trained(model_type=kind, byte_fallback=True, vocab_size=500)
    file = tmp_path / "x.model"
    file.write_bytes(data)
    old = streamtok.load(file)
    given = SentencePieceProcessor(model_proto=data)
    tokens = [given.id_to_piece(id) for id in range(given.vocab_size())]
    types = [
        UNKNOWN if given.is_unknown(id) else CONTROL if given.is_control(id)
        else BYTE if given.is_byte(id) else NORMAL
        for id in range(len(tokens))
    ]  # fmt: skip
    scores = [given.get_score(id) for id in range(len(tokens))]
    proto = sentencepiece_model_pb2.ModelProto.FromString(data)
    keys = {
        "remove_extra_whitespaces": proto.normalizer_spec.remove_extra_whitespaces,
        "add_space_prefix": proto.normalizer_spec.add_dummy_prefix,
        "bos_token_id": given.bos_id(),
        "eos_token_id": given.eos_id(),
    }
    if charsmap := proto.normalizer_spec.precompiled_charsmap:
        keys["precompiled_charsmap"] = list(charsmap)
    enc = streamtok.load(written(tmp_path / "x.gguf", model, tokens, types, scores, **keys))
    assert check_streams(enc, TEXT) == old.encode(TEXT)
    assert enc.decode(enc.encode("lower")) == "lower"
    around = [given.bos_id()] if model == "llama" else [], [given.eos_id()] if model == "t5" else []
    assert enc.encode("a", add_special_tokens=True) == [*around[0], *old.encode("a"), *around[1]]


def test_bpe_of_characters(tmp_path: Path) -> None:
    """Gemma 4's by merges, and what a model of scores does where the file says no more."""
    tokens = ["<unk>", *BYTE_TEXTS, "▁", "a", "b", "ab", "▁ab"]
    types = [UNKNOWN, *[BYTE] * 256, *[NORMAL] * 5]
    ids = {token: id for id, token in enumerate(tokens)}
    path = tmp_path / "x.gguf"
    enc = streamtok.load(written(path, "gemma4", tokens, types, merges=["a b", "▁ ab"]))
    after = [ids[text] for text in ("▁ab", "▁", "<0xC3>", "<0xA9>", "<0x0A>")]
    assert check_streams(enc, "ab ab é\n") == [ids["ab"], *after]
    assert enc.decode([ids["ab"], *after]) == "ab ab é\n"
    scores = [0.0] * 259 + [-3.0, -2.0, -1.0]
    enc = streamtok.load(written(path, "llama", tokens, types, scores, bos_token_id=0))
    assert check_streams(enc, "ab ab é\n") == [ids["▁ab"], *after]
    assert enc.encode("", add_special_tokens=True)[0] == 0


def test_word_piece(tmp_path: Path) -> None:
    old = counted(["low lower lowest naive wide"] * 3, "bert").train_wordpiece(60)
    model = old.definition.vocabulary.model
    assert model is not None
    bounds = model.offsets.tolist()
    named = {
        int(id): model.blob[a:b].decode()
        for id, a, b in zip(model.ids, bounds, bounds[1:], strict=False)
    }
    named |= {id: text for text, id in old._special_tokens.items()}
    tokens, types = [], []
    for _, text in sorted(named.items()):
        is_special = text in old._special_tokens
        types.append(CONTROL if is_special else NORMAL)
        piece = text[2:] if text.startswith("##") else f"▁{text}"
        tokens.append(text if is_special else piece)
    enc = streamtok.load(
        written(
            tmp_path / "x.gguf", "bert", tokens, types, unknown_token_id=1, cls_token_id=2,
            seperator_token_id=3, pre="bert-bge",
        )
    )  # fmt: skip
    text = "low lower wided zzz lowest low"
    assert check_streams(enc, text) == old.encode(text)
    assert enc.encode("LÖW", add_special_tokens=True) == [2, *old.encode("low"), 3]


def test_what_is_refused(tmp_path: Path) -> None:
    path, _ = byte_level(tmp_path / "x.gguf", "kimi-k2")
    ends = written(tmp_path / "ends.gguf", "gpt2", ["a"], [1], merges=["a b"], eos_token_id=-1)
    for wrong, message in (
        (path, r"x\.gguf: tokenizer\.ggml: pre: the pre-tokenizer 'kimi-k2' is not supported"),
        (written(tmp_path / "rwkv.gguf", "rwkv", ["a"], [1]), "the tokenizer model 'rwkv' is not"),
        (written(tmp_path / "twice.gguf", "gpt2", ["a", "a"], [1, 1]), "'a' is given twice"),
        (written(tmp_path / "bare.gguf", "llama", ["a"], [1]), "1 tokens and 0 scores"),
        (written(tmp_path / "nan.gguf", "t5", ["a"], [1], [float("nan")]), "must all be finite"),
        (written(tmp_path / "types.gguf", "bert", ["a", "b"], [1]), "2 tokens and 1 types"),
        (written(tmp_path / "kinds.gguf", "gpt2", [1], [1]), "tokens: expected values of type str"),
        (ends, "'b' is not in the vocabulary"),
    ):
        with pytest.raises(streamtok.VocabularyError, match=message):
            streamtok.load(wrong)
    with pytest.raises(streamtok.VocabularyError, match="has its own pattern"):
        streamtok.load(path, pattern="gpt2")


def test_damaged_files(tmp_path: Path) -> None:
    path, _ = byte_level(tmp_path / "x.gguf")
    data = path.read_bytes()
    start = data.index(b"tokenizer.ggml.merges") + len("tokenizer.ggml.merges")
    changes = {  # offset: what is there instead
        4: struct.pack("<I", 1), 16: struct.pack("<Q", 1 << 60), 24: struct.pack("<Q", 1 << 63),
        start: struct.pack("<I", 99), start + 4: struct.pack("<I", 9),
        start + 8: struct.pack("<Q", 1 << 60), start + 24: b"\xff",
    }  # fmt: skip
    wrong = [data[:at] + new + data[at + len(new) :] for at, new in changes.items()]
    for other in [*(data[:size] for size in (4, 20, 200, 3000)), *wrong]:
        path.write_bytes(other)
        with pytest.raises(
            streamtok.VocabularyError, match=r"a damaged GGUF file|version 1 of GGUF"
        ):
            streamtok.load(path)
