"""Spans of random tokenizers, whole and cut, beside the law said slowly (`spans_by_law.py`)."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

import streamtok
from streamtok.engines.rules import TextRules, TokenFlags
from streamtok.engines.source_units import UNITS
from streamtok.normalizers import (
    BertAccents,
    BertChinese,
    BertClean,
    Form,
    JoinedSpaces,
    LongestMap,
    Lowercase,
    MetaspaceText,
    Nmt,
    Normalizer,
    Precompiled,
    PrefixSpace,
    Prepend,
    Replace,
    ReplaceRuns,
    Strip,
    StripAccents,
    UnknownRuns,
)
from streamtok.normalizers.charsmap import write_charsmap

from ..encodings import make_encoding
from .spans_by_law import spans_by_law

CHARSMAP = write_charsmap(
    {"e\u0301": "é", "ﬁ": "fi", "\r": " ", "\n": " ", "ab": " x", "om": "", "\t": "", "é": "e"}
)
STEPS = [
    *(Form(name) for name in ("NFC", "NFD", "NFKC", "NFKD")),
    *(BertAccents(), BertChinese(), BertClean(), Lowercase(), Nmt(), StripAccents()),
    *(Strip(True, True), Strip(False, True), Strip(True, False), JoinedSpaces(False)),
    *(
        Replace("a", ""),
        Replace("b", "ab"),
        Replace("ab", "b"),
        Replace("ba", "bbc"),
        Replace(" ", "\u2581"),
    ),
    *(Replace("  ", " "), Replace("\u2581", " "), Replace("aa", "a")),
    *(ReplaceRuns(r"\s+", " "), ReplaceRuns(" {2,}", " "), ReplaceRuns("[ab]{2,}", "<>")),
    *(ReplaceRuns("[a-f]", ""), Precompiled(CHARSMAP), LongestMap(CHARSMAP, ("ab",), False)),
    *(Prepend("\u2581"), PrefixSpace(), MetaspaceText("\u2581", "always")),
    UnknownRuns("abef \u2581\u0301", "?"),
]
LETTERS = [
    *(
        "a",
        "b",
        "ab",
        "e",
        "é",
        "e\u0301",
        "\u0301",
        "\u0316",
        "A",
        "İ",
        "ﬁ",
        "\u2581",
        "漢",
        "\x00",
        "\t",
    ),
    *(" ", "  ", "\n", "\r\n", "\u3000", "<s>", "x<s> ", "om", "가", "\u11a8", "½", "\U0001d15e"),
]
TOKENS = ("<s>", "\n", "b", "ba")


def random_encoding(rng: random.Random) -> streamtok.Encoding:
    """Each byte is a token, after steps and added tokens with all flags."""
    flags = {text: TokenFlags(*(rng.random() < 0.3 for _ in range(4))) for text in TOKENS}
    some = rng.sample(TOKENS, rng.randint(0, 3))
    first, second = (rng.sample(STEPS, rng.randint(0, most)) for most in (4, 2))
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


def of_characters(ids: list[int], spans: list[list[int]]) -> list[list[int]]:
    """From the first byte of each character to the last one, which may be tokens of their own."""
    whole: list[list[int]] = []
    for id, (start, end) in zip(ids, spans, strict=True):
        if 0x80 <= id < 0xC0:
            whole[-1][1] = end
        else:
            whole.append([start, end])
    return whole


def check(rng: random.Random, enc: streamtok.Encoding, text: str) -> None:
    """Whole and cut, in all units."""
    stages: Any = enc.definition.engine.stages(enc.definition.specials.matcher((), ()), "strict")  # type: ignore[attr-defined]
    data = text.encode()
    law = spans_by_law(stages, text)
    for unit in UNITS:
        ids, found = enc.encode_with_offsets(text, unit)
        spans = found.tolist()
        assert ids.tolist() == [id for id, _ in law]
        wanted = [rounded(span, data, unit) for _, span in law]
        if unit == "byte":
            spans = [rounded(span, data, unit) for span in spans]
        assert of_characters(ids.tolist(), spans) == of_characters(ids.tolist(), wanted)
        spans = found.tolist()
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
        if hasattr(enc.definition.engine, "stages"):
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
    assert (spans[0, 0], spans[-1, 1]) == (0, end + 1)


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
