"""Files with the sections that well-known families of models have, trained here on a few texts.

The sections are those of the published `tokenizer.json` files, and of what transformers writes.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, trainers
from tokenizers import pre_tokenizers as pre

import streamtok
from streamtok import formats
from streamtok.normalizers.charsmap import write_charsmap

from ..oracles import PLAIN, assert_same, corpus_texts, write

SPECIAL = ["<unk>", "<s>", "</s>", "<pad>", "[MASK]"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SAMPLES = [
    "Hello,  world! It's 12345 o'clock...\n\n\tdef f(x):\n        return x ** 2  # ``done''\r\n",
    " leading, and trailing   ", "日本語の文章、カタカナ。ﬁne ½ ①Ⅷ café e\u0301 한국어 русский", "",
    "a<s>b </s> [MASK] x", "\u2581a \u2581 \u2581\u2581b", "\u00a0\u3000 \u200b x", "x" * 120,
]  # fmt: skip

MAP = write_charsmap(
    {"ﬁ": "fi", "½": "1/2", "①": "1", "Ⅷ": "VIII", "\u3000": " ", "\u00a0": " ", "\u200b": " ",
     "\t": " ", "\n": " ", "\r": " ", "e\u0301": "é", "カ": "カ"}
)  # fmt: skip
PRECOMPILED = normalizers.Precompiled(MAP)
GPT2 = pre.ByteLevel(add_prefix_space=False)
LAST = pre.ByteLevel(add_prefix_space=False, use_regex=False)


def regex(pattern: str, behavior: str = "isolated", invert: bool = False) -> pre.Split:
    return pre.Split(Regex(pattern), behavior, invert)


def replaced(pattern: str, content: str) -> normalizers.Replace:
    return normalizers.Replace(Regex(pattern), content)


MARKS = pre.Metaspace()
WORDS = pre.Sequence([pre.WhitespaceSplit(), MARKS])
QUOTES = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
FOLDS = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
SPACES = replaced(" {2,}", " ")
BLANKS = replaced(r"\s{2,}|[\n\r\t]", " ")
RIGHT = normalizers.Strip(left=False, right=True)
TO_MARKS = normalizers.Replace(" ", "▁")
# family: (normalizer, pre-tokenizer), None where there is none
BYTE_LEVEL = {
    "GPT-2, OPT, MPT, Phi-2, CodeGen, Whisper, RoBERTa, BART": (None, GPT2),
    "GPT-NeoX, Pythia, OLMo, Mamba, ModernBERT": (normalizers.NFC(), GPT2),
    "Falcon": (
        None,
        pre.Sequence(
            [pre.Punctuation("contiguous"), GPT2, pre.Digits(False), regex("[0-9][0-9][0-9]")]
        ),
    ),
    "BLOOM": (None, pre.Sequence([regex(r" ?[^(\s|[.,!?…。，、।۔،])]+"), LAST])),
    "StarCoder, SmolLM, Granite": (None, pre.Sequence([pre.Digits(True), GPT2])),
    "Command R": (normalizers.NFC(), pre.Sequence([pre.Digits(True), GPT2])),
    "Llama 3, GLM-4": (None, pre.Sequence([regex(formats.PATTERNS["llama3"]), LAST])),
    "Qwen 2 to 3": (normalizers.NFC(), pre.Sequence([regex(formats.PATTERNS["qwen2"]), LAST])),
    "Llama 4, gpt-oss": (None, pre.Sequence([regex(formats.PATTERNS["o200k"]), LAST])),
    "Phi-4": (None, pre.Sequence([regex(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+", "removed", invert=True), LAST])),
    "Mistral Nemo": (None, pre.Sequence([regex(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"), LAST])),
}  # fmt: skip
CHARACTERS = {
    "Llama 2, Mistral 7B, Phi-3, TinyLlama": (
        normalizers.Sequence([normalizers.Prepend("▁"), TO_MARKS]), None,
    ),
    "Gemma": (TO_MARKS, pre.Split(" ", "merged_with_previous")),
    "SigLIP 2": (
        normalizers.Sequence([normalizers.Lowercase(), TO_MARKS]),
        pre.Split(" ", "merged_with_previous"),
    ),
    "Yi, Baichuan": (TO_MARKS, None),
}  # fmt: skip
# Merges of characters, and others are unknown.
UNKNOWN = {"NLLB": (normalizers.Sequence([PRECOMPILED, SPACES]), MARKS)}
UNIGRAM = {
    "T5, mT5, FLAN, XLM-R, BGE-M3, mE5, mBART, CamemBERT": (PRECOMPILED, WORDS),
    "mBART-50, Pegasus": (normalizers.Sequence([PRECOMPILED, SPACES]), MARKS),
    "ALBERT, XLNet": (normalizers.Sequence([*QUOTES, *FOLDS, PRECOMPILED]), WORDS),
    "RemBERT": (normalizers.Sequence([*QUOTES, SPACES, PRECOMPILED]), MARKS),
    "DeBERTa-v3": (
        normalizers.Sequence([normalizers.Strip(), PRECOMPILED, SPACES]),
        pre.Sequence([MARKS]),
    ),
    "DeBERTa-v3 of transformers 5, BARThez": (
        normalizers.Sequence([BLANKS, normalizers.NFC(), RIGHT]),
        pre.Sequence([MARKS]),
    ),
    "Big Bird": (
        normalizers.Sequence([normalizers.Strip(left=False, right=False), replaced(" {2,}", "▁")]),
        MARKS,
    ),
}
WORD_PIECE = {
    "BERT, MiniLM, BGE, E5, GTE, DistilBERT, ELECTRA": normalizers.BertNormalizer(),
    "BERT cased, LaBSE, multilingual": normalizers.BertNormalizer(lowercase=False),
    "MPNet": normalizers.BertNormalizer(strip_accents=None),
}
FAMILIES = {
    **{name: ("byte level", *parts) for name, parts in BYTE_LEVEL.items()},
    **{name: ("characters", *parts) for name, parts in CHARACTERS.items()},
    **{name: ("unknown", *parts) for name, parts in UNKNOWN.items()},
    **{name: ("Unigram", *parts) for name, parts in UNIGRAM.items()},
    **{name: ("WordPiece", one, pre.BertPreTokenizer()) for name, one in WORD_PIECE.items()},
}


@functools.cache
def trained(kind: str) -> str:
    """A file with a model of this kind, and without normalizer and pre-tokenizer."""
    texts = [text[:4000] for text in (*PLAIN, *corpus_texts()) if text]
    trainer: Any
    if kind == "byte level":
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = GPT2
        alphabet = pre.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=900, initial_alphabet=alphabet)
        decoder = decoders.ByteLevel()
    elif kind in ("characters", "unknown"):
        made = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
        made.pre_tokenizer = MARKS
        more = BYTES if kind == "characters" else []
        trainer = trainers.BpeTrainer(vocab_size=1400, special_tokens=[*SPECIAL, *more])
        decoder = decoders.Metaspace()
        if kind == "characters":
            marks = decoders.Replace("▁", " ")
            decoder = decoders.Sequence([marks, decoders.ByteFallback(), decoders.Fuse()])
    elif kind == "Unigram":
        made = Tokenizer(models.Unigram())
        made.pre_tokenizer = MARKS
        trainer = trainers.UnigramTrainer(
            vocab_size=6000, special_tokens=[*SPECIAL], unk_token="<unk>"
        )
        decoder = decoders.Metaspace()
    else:
        made = Tokenizer(models.WordPiece(unk_token="<unk>"))
        made.pre_tokenizer = pre.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=900, special_tokens=SPECIAL)
        decoder = decoders.WordPiece()
    made.train_from_iterator(texts, trainer)
    made.decoder = decoder
    file = json.loads(made.to_str())
    file["pre_tokenizer"] = None
    if kind == "characters":
        file["model"]["byte_fallback"] = True
        file["added_tokens"] = [t for t in file["added_tokens"] if t["content"] not in BYTES]
    return json.dumps(file)


def family(name: str) -> Tokenizer:
    kind, normalizer, pre_tokenizer = FAMILIES[name]
    made = Tokenizer.from_str(trained(kind))
    if normalizer is not None:
        made.normalizer = normalizer
    if pre_tokenizer is not None:
        made.pre_tokenizer = pre_tokenizer
    if "NeoX" in name:  # rows of spaces, as these models have them
        made.add_tokens([AddedToken(" " * size, normalized=True) for size in range(24, 1, -1)])
    return made


@pytest.mark.parametrize("name", FAMILIES)
def test_ids_whole_and_streamed(name: str, tmp_path: Path) -> None:
    theirs = family(name)
    path = write(tmp_path / "tokenizer.json", theirs.to_str())
    enc = streamtok.load(path)

    def expected(text: str) -> list[int]:
        return theirs.encode(text, add_special_tokens=False).ids

    samples = [*SAMPLES, *(text[:3000] for text in PLAIN)]
    assert_same(enc, expected, samples, allowed_special="all", round_trip=False)
    for text in samples:
        ids = expected(text)
        assert enc.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize("name", [name for name in FAMILIES if "mBART-50" in name])
def test_white_space_that_becomes_nothing_takes_no_room(name: str, tmp_path: Path) -> None:
    enc = streamtok.load(write(tmp_path / "tokenizer.json", family(name).to_str()))
    stream = enc.stream_encoder()
    sizes = []
    for part in ("\t " * 1750, "\t " * 1750):
        for at in range(0, len(part), 7):
            stream.encode(part[at : at + 7])
        sizes.append(len(stream.getstate()))
    assert stream.pending == 7000
    assert sizes[1] < sizes[0] + 100


LETTERS = [normalizers.ByteLevel(), normalizers.NFC(), normalizers.NFC()]


@pytest.mark.parametrize(
    "normalizer",
    [None, *map(normalizers.Sequence, ([normalizers.NFC()], FOLDS, LETTERS))],
)
def test_offsets_around_a_token_for_every_cut(normalizer: Any, tmp_path: Path) -> None:
    made = Tokenizer.from_str(trained("characters"))
    made.normalizer, made.pre_tokenizer = normalizer, MARKS
    made.add_tokens([AddedToken("aB", normalized=False)])
    enc = streamtok.load(write(tmp_path / "tokenizer.json", made.to_str()))
    text = "1.aB, e\u0301aB\n가、"
    whole = [x.tolist() for x in enc.encode_with_offsets(text, allowed_special="all")]
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            stream = enc.stream_encoder(allowed_special="all")
            found: list[list[Any]] = [[], []]
            for chunk in (text[:first], text[first:second], text[second:]):
                for kind, got in zip(found, stream.encode_with_offsets(chunk), strict=True):
                    kind += got.tolist()
            for kind, got in zip(found, stream.encode_with_offsets("", final=True), strict=True):
                kind += got.tolist()
            assert found == whole, (first, second)


def test_a_reason_sees_the_bytes_after_a_cut(tmp_path: Path) -> None:
    name = next(name for name in FAMILIES if "Llama 2" in name)
    enc = streamtok.load(write(tmp_path / "tokenizer.json", family(name).to_str()))
    with pytest.raises(UnicodeDecodeError) as whole:
        b"a\xe3\xe4".decode()
    stream = enc.stream_encoder()
    stream.encode(b"a\xe3")
    with pytest.raises(UnicodeDecodeError) as cut:
        stream.encode(b"\xe4")
    assert cut.value.reason == whole.value.reason
    assert (cut.value.start, cut.value.end) == (whole.value.start, whole.value.end)
