"""The families of `families.py` against tokenizers: ids and texts."""

from __future__ import annotations

import pytest

from streamtok.formats.character_merges import CUT_BEFORE_SPACES

from ..oracles import texts
from .families import FAMILIES, family
from .reading import check, ids_of, read

SAMPLES = [
    "Hello,  world! It's 12345 o'clock...\n\n\tdef f(x):\n        return x ** 2  # ``done''\r\n",
    " leading, and trailing   ", "日本語の文章、カタカナ。ﬁne ½ ①Ⅷ café e\u0301 한국어 русский", "",
    "a<s>b </s> [MASK] x", "\u2581a \u2581 \u2581\u2581b", "\u00a0\u3000 \u200b x", "x" * 120,
]  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_ids_whole_and_streamed(name: str) -> None:
    theirs = family(name)
    samples = [*SAMPLES, *(text[:3000] for text in texts())]
    enc = check(theirs, samples)
    for text in samples:
        ids = ids_of(theirs)(text)
        assert enc.decode(ids) == theirs.decode(ids, skip_special_tokens=False)
    if name in ("Gemma", "Yi, Baichuan") or name.startswith("Llama 2"):
        assert enc._pat_str == CUT_BEFORE_SPACES


def test_a_reason_sees_the_bytes_after_a_cut() -> None:
    stream = read(family("Llama 2")).stream_encoder()
    stream.encode(b"a\xe3")
    with pytest.raises(UnicodeDecodeError) as whole:
        b"a\xe3\xe4".decode()
    with pytest.raises(UnicodeDecodeError) as cut:
        stream.encode(b"\xe4")
    parts = [(each.value.reason, each.value.start, each.value.end) for each in (cut, whole)]
    assert parts[0] == parts[1]
