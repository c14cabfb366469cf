"""The families of `families.py` against tokenizers: ids, texts, offsets, files written again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, normalizers

import streamtok
from streamtok import formats
from streamtok.formats.character_merges import CUT_BEFORE_SPACES

from ..oracles import PLAIN, assert_same, texts, write
from .families import BYTE_LEVEL, FAMILIES, FOLDS, MARKS, family, ids_of, trained

SAMPLES = [
    "Hello,  world! It's 12345 o'clock...\n\n\tdef f(x):\n        return x ** 2  # ``done''\r\n",
    " leading, and trailing   ", "日本語の文章、カタカナ。ﬁne ½ ①Ⅷ café e\u0301 한국어 русский", "",
    "a<s>b </s> [MASK] x", "\u2581a \u2581 \u2581\u2581b", "\u00a0\u3000 \u200b x", "x" * 120,
]  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_ids_whole_and_streamed(name: str, tmp_path: Path) -> None:
    theirs = family(name)
    path = write(tmp_path / "tokenizer.json", theirs.to_str())
    enc = streamtok.load(path)
    samples = [*SAMPLES, *(text[:3000] for text in texts())]
    assert_same(enc, ids_of(theirs), samples, allowed_special="all", round_trip=False)
    for text in samples:
        ids = ids_of(theirs)(text)
        assert enc.decode(ids) == theirs.decode(ids, skip_special_tokens=False)
    if name in ("Gemma", "Yi, Baichuan") or name.startswith("Llama 2"):
        assert enc._pat_str == CUT_BEFORE_SPACES


@pytest.mark.parametrize("name", [name for name in BYTE_LEVEL if name != "Falcon"])
def test_byte_level_vocabularies_are_written_again(name: str, tmp_path: Path) -> None:
    theirs = family(name)
    theirs.normalizer = None
    enc = streamtok.load(write(tmp_path / "tokenizer.json", theirs.to_str()))
    formats.save_huggingface(enc, tmp_path / "again.json")
    again = Tokenizer.from_file(str(tmp_path / "again.json"))
    for text in [*SAMPLES, *PLAIN]:
        assert ids_of(again)(text) == ids_of(theirs)(text)
    assert formats.load_huggingface(tmp_path / "again.json").digest == enc.digest


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
