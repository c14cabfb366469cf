"""The families of `families.py` against tokenizers: ids, texts, offsets, files written again."""

from __future__ import annotations

from pathlib import Path

import pytest

import streamtok
from streamtok.formats.character_merges import CUT_BEFORE_SPACES

from ..oracles import assert_same, texts, write
from .families import FAMILIES, family, ids_of

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
