"""Spans of text that was changed: whole and cut, in all units, and beside those of `tokenizers`."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

import streamtok
from streamtok.engines.rules import TextRules, TokenFlags
from streamtok.engines.source_units import UNITS
from streamtok.normalizers import (
    BertChinese,
    BertClean,
    Form,
    Lowercase,
    Normalizer,
    Precompiled,
    Prepend,
    Replace,
    ReplaceRuns,
    Strip,
    StripAccents,
)

from ..charsmaps import write_charsmap
from ..encodings import make_encoding
from ..normalizers.oracles import NORMALIZERS
from ..normalizers.random_steps import STEPS, random_text

CHARSMAP = write_charsmap(
    {"e\u0301": "é", "ﬁ": "fi", "\r": " ", "\n": " ", "ab": " x", "om": "", "\t": "", "é": "e"}
)
LETTERS = [
    *"abeé\u0301\u0316Aİﬁ\u2581漢\x00\t \n\u3000가\u11a8½\U0001d15e",
    "ab", "e\u0301", "  ", "\r\n", "<s>", "x<s> ", "om",
]  # fmt: skip
TOKENS = ("<s>", "\n", "b", "ba")


def random_encoding(rng: random.Random) -> streamtok.Encoding:
    """Each byte is a token, after steps and added tokens with all flags."""
    flags = {text: TokenFlags(*(rng.random() < 0.3 for _ in range(4))) for text in TOKENS}
    some = rng.sample(TOKENS, rng.randint(0, 3))
    first, second = (
        [step(rng) for step in rng.sample(STEPS, rng.randint(0, most))] for most in (4, 2)
    )
    rules = TextRules(
        tuple((text, 300 + n) for n, text in enumerate(some)),
        normalizer=Normalizer(first) if first else None,
        second_normalizer=Normalizer(second) if second and rng.random() < 0.3 else None,
        token_flags=tuple((text, flags[text]) for text in some),
    )
    return make_encoding(rules=rules)


def rounded(span: tuple[int, int], data: bytes, unit: str) -> list[int]:
    """All characters that it touches."""
    start, end = span
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start -= 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    parts = [data[:start].decode(), data[:end].decode()]
    if unit == "character":
        return [len(part) for part in parts]
    return (
        [start, end] if unit == "byte" else [len(part.encode("utf-16-le")) // 2 for part in parts]
    )


def check(rng: random.Random, enc: streamtok.Encoding, text: str) -> None:
    """Whole and cut, in all units."""
    data = text.encode()
    in_bytes = enc.encode_with_offsets(text, "byte")[1].tolist()
    for unit in UNITS:
        ids, found = enc.encode_with_offsets(text, unit)
        spans = found.tolist()
        assert ids.tolist() == enc.encode(text)
        if unit != "byte":
            assert spans == [rounded(span, data, unit) for span in in_bytes]
        for _ in range(3):
            stream = enc.stream_encoder()
            cuts = sorted(rng.choices(range(len(data) + 1), k=rng.choice([1, 2, 9])))
            places = [0, *cuts, len(data)]
            parts = [stream.encode_with_offsets(data[a:b], unit=unit) for a, b in pairwise(places)]
            parts.append(stream.encode_with_offsets(b"", final=True, unit=unit))
            assert [id for part, _ in parts for id in part.tolist()] == ids.tolist(), cuts
            assert [span for _, part in parts for span in part.tolist()] == spans, cuts


@pytest.mark.parametrize("part", range(3))
def test_random_steps_and_tokens(part: int) -> None:
    compared = 0
    for seed in range(20 * part, 20 * part + 20):
        rng = random.Random(seed)
        try:
            enc = random_encoding(rng)
        except ValueError:  # a token that becomes nothing, or too much growth
            continue
        for _ in range(3):
            check(rng, enc, "".join(rng.choices(LETTERS, k=rng.randint(1, 6))))
            compared += 1
    assert compared > 20


@pytest.mark.parametrize(
    ("steps", "text", "expected"),
    [
        ([Precompiled(CHARSMAP), ReplaceRuns(" {2,}", " ")], "\r\n\r\n m", ["\r\n\r\n ", "m"]),
        ([BertClean(), StripAccents()], "\x00\u0301a\x00\u0301b", ["\x00\u0301a\x00\u0301", "b"]),
        ([Form("NFD"), StripAccents()], "xe\u0301\u0316", ["x", "e\u0301\u0316"]),
        ([Replace("ab", "b")], "xab", ["x", "ab"]),
        ([Strip(True, True), Prepend("_")], "  a ", ["  a ", "  a "]),
        ([Lowercase(), Form("NFD")], "xİy", ["x", "İ", "İ", "İ", "y"]),
        ([BertChinese(), Strip(True, True)], "漢", ["漢", "漢", "漢"]),
        # A second normalizer changes back what the first one has changed.
        (([Replace("\u2581", " ")], [Replace(" ", "\u2581")]), "\u2581a", ["\u2581"] * 3 + ["a"]),
    ],
)
def test_what_is_joined_or_left_out(steps: Any, text: str, expected: list[str]) -> None:
    first, second = steps if isinstance(steps, tuple) else (steps, None)
    rules = TextRules(
        normalizer=Normalizer(first), second_normalizer=Normalizer(second) if second else None
    )
    enc = make_encoding(rules=rules)
    _, spans = enc.encode_with_offsets(text)
    assert [text[start:end] for start, end in spans.tolist()] == expected
    check(random.Random(text), enc, text)


def test_spans_contain_those_of_tokenizers() -> None:
    """Of nearly all characters: what a form makes of some together, both say in their own way."""
    rng = random.Random(1)
    kinds: Counter[str] = Counter()
    for _ in range(40):
        theirs = Tokenizer(models.WordLevel({"u": 0}, "u"))
        names = rng.choices([*NORMALIZERS], k=rng.choice([1, 1, 2, 3]))
        theirs.normalizer = normalizers.Sequence([NORMALIZERS[name][1] for name in names])
        theirs.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        try:
            enc = streamtok.load(theirs)
        except streamtok.VocabularyError:  # it would make texts too long
            continue
        for _ in range(20):
            text = random_text(rng)[:40]
            spans = enc.encode_with_offsets(text)[1].tolist()
            for ours, wanted in zip(spans, theirs.encode(text).offsets, strict=True):
                kinds["all"] += 1
                kinds["equal"] += ours == [*wanted]
                kinds["other"] += not (ours[0] <= wanted[0] and wanted[1] <= ours[1])
    assert kinds["all"] > 5000
    assert kinds["equal"] > 0.93 * kinds["all"]
    assert kinds["other"] < 0.005 * kinds["all"]


@pytest.mark.parametrize("begin", ["", "<r>"])
@pytest.mark.parametrize("endless", ["\x00", " "])
def test_endless_text_of_one_span(begin: str, endless: str) -> None:
    """What is left out, and white space that a token takes, waits as all other text does."""
    rules = TextRules(
        (("<r>", 300),),
        normalizer=Normalizer([BertClean(), Strip(True, False)]),
        token_flags=(("<r>", TokenFlags(rstrip=True)),),
    )
    enc = make_encoding(rules=rules)
    stream = enc.stream_encoder(max_pending=100)
    stream.encode_with_offsets(begin)
    for _ in range(9):
        stream.encode_with_offsets(endless * 10)
    with pytest.raises(streamtok.PendingLimitExceeded) as caught:
        stream.encode_with_offsets(endless * 20)
    end = stream.bytes_in
    assert stream.pending <= end <= 100 < caught.value.pending <= end + 20
    _, spans = stream.encode_with_offsets("x", final=True)
    # What is left out belongs to the text after it, so the token before is certain.
    first = 3 if begin and endless == "\x00" else 0
    assert (spans[0, 0], spans[-1, 1]) == (first, end + 1)


@pytest.mark.parametrize("tokens", [[], ["<s>"]])
@pytest.mark.parametrize("takes", [0, 1, 2, 3])
def test_tokenizers_spans_of_added_tokens(takes: int, tokens: list[str]) -> None:
    """Without a normalizer, both give the same."""
    flags = {"lstrip": bool(takes & 1), "rstrip": bool(takes & 2)}
    vocab = {"[UNK]": 0, "a": 1, "b": 2}
    theirs = Tokenizer(models.WordLevel(vocab, "[UNK]"))
    theirs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    theirs.add_tokens([AddedToken("<m>", normalized=False, **flags)])
    theirs.add_tokens([AddedToken(token, normalized=True, **flags) for token in tokens])
    enc = streamtok.load(theirs)
    for text in ("a <m>  b", "<m>  <s> \n", " <m><m> \u3000a<s>", "b  <s>  <m>"):
        ids, spans = enc.encode_with_offsets(text, allowed_special="all")
        found = theirs.encode(text)
        assert ids.tolist() == found.ids
        assert [*map(tuple, spans.tolist())] == found.offsets, text
