"""Special tokens: the longest wins, in whole texts and at every cut of a stream."""

from __future__ import annotations

import base64
import itertools
import random
import re

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtok
from streamtok._core._testing import kernels, levels
from streamtok._core.encode import SpecialMatcher
from streamtok.engines.rules import TextRules

from ..conftest import stream_ids
from ..doors import COUNTS, IDS
from ..encodings import SINGLES, make_encoding

PATTERN = r" ?\p{L}+|\s+(?!\S)|\s+|[^\s\p{L}]+"


def with_the_longest(encoding: streamtok.Encoding, text: str, allowed: set[str]) -> list[int]:
    """The ids of a text: of the special tokens that begin leftmost, the longest counts."""
    specials = encoding._special_tokens
    find = re.compile("|".join(map(re.escape, sorted(specials, key=len, reverse=True)))).search
    ids, begin, at = [], 0, 0
    while found := find(text, at):
        at = found.start() + 1
        if found[0] in allowed:
            ids += [*encoding.encode_ordinary(text[begin : at - 1]), specials[found[0]]]
            begin = at = found.end()
    return ids + encoding.encode_ordinary(text[begin:])


@pytest.mark.parametrize("seed", range(40))
def test_the_longest_special_token_wins(seed):
    rng = random.Random(seed)
    size = rng.choice([1, 2, 3, 4, 5, 7, 16, 40])
    texts = {"<a>"}
    while len(texts) < size:
        base = rng.choice(sorted(texts))
        more = "".join(rng.choices("ab<>| é", k=rng.randint(1, 9)))
        texts.add((base + more)[:40] if rng.random() < 0.7 else more)
    ours = make_encoding(PATTERN, special={text: 300 + i for i, text in enumerate(sorted(texts))})
    for _ in range(30):
        text = "".join(rng.choices([*sorted(texts), "x", " "], k=3))
        for allowed in [texts, set(rng.sample(sorted(texts), rng.randint(0, len(texts))))]:
            chosen = {"allowed_special": allowed, "disallowed_special": ()}
            expected = with_the_longest(ours, text, allowed)
            assert ours.encode(text, **chosen) == expected
            for cut in range(len(text)):
                stream = ours.stream_encoder(**chosen)
                assert stream_ids(stream, [text[:cut], text[cut:]]) == expected


SPECIALS = ["<|a|>", "<|a|>b", "<|a", "\n\n<x>", " <x>", "<x> ", "é<", "<|a|><|a|>", "aa"]


@settings(max_examples=120)
@given(
    parts=st.lists(
        st.sampled_from([*SPECIALS, "<", "|", "a", " ", "\n", "é", "b", "x>"]), max_size=8
    ),
    specials=st.sets(st.sampled_from(SPECIALS), min_size=1),
    allowed=st.sets(st.sampled_from(SPECIALS)),
    disallowed=st.sets(st.sampled_from([*SPECIALS, "x>", "><"])),
    cuts=st.lists(st.integers(0, 60), max_size=5),
)
def test_allowed_and_disallowed_in_streams(parts, specials, allowed, disallowed, cuts):
    enc = make_encoding(PATTERN, special={text: 300 + i for i, text in enumerate(sorted(specials))})
    data = "".join(parts).encode()
    chosen = {"allowed_special": allowed, "disallowed_special": disallowed}
    must_raise = any(text.encode() in data for text in disallowed)
    try:
        whole = enc.encode(data, **chosen)
        assert not must_raise
    except ValueError:
        assert must_raise
        whole = None
    bounds = [0, *sorted(min(c, len(data)) for c in cuts), len(data)]
    chunks = [data[a:b] for a, b in itertools.pairwise(bounds)]
    try:
        assert stream_ids(enc.stream_encoder(**chosen), chunks) == whole
    except ValueError as error:
        assert must_raise, error  # noqa: PT017


@pytest.mark.parametrize("text", ["x" * 1025, "é" * 513, "ab" * 40_000])
def test_what_is_too_long_to_be_found_is_refused_by_name(text):
    made = {"pat_str": PATTERN, "mergeable_ranks": SINGLES}
    calls = [
        lambda: streamtok.Encoding("x", special_tokens={text: 300}, **made),
        lambda: streamtok.Encoding(
            "x", special_tokens={}, rules=TextRules(added_tokens=((text, 300),)), **made
        ),
        lambda: streamtok.Trainer("gpt2", num_threads=1).train(260, special_tokens=[text]),
        lambda: SpecialMatcher([], (), [text]),
        lambda: streamtok.get_encoding("gpt2").encode("x", disallowed_special=[text]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=rf"at most 1024 bytes; '{text[:10]}.*… has \d+$"):
            call()


@pytest.mark.parametrize("seed", range(12))
def test_a_long_text_is_searched_as_a_short_one(seed):
    """The search pauses every 16 KiB, also inside a token, and inside what is none after all."""
    rng = random.Random(seed)
    texts = ["<" + "x" * 1023, "<" + "x" * 500 + ">", "<>", "y" * 300, "y" * 299 + "z"]
    texts = rng.sample(texts, rng.randint(1, len(texts)))
    specials = [(text, i) for i, text in enumerate(sorted(texts, key=len, reverse=True))]
    refused = rng.choice([[], ["x" * 900 + "!"], ["!?"]])
    matcher = SpecialMatcher(specials, set(texts), refused)
    order = [text for text, _ in specials]
    found = re.compile("|".join(map(re.escape, order)))
    parts = [*texts, *(text[:-1] for text in texts), "<", "x" * 700, "y" * 1500, ".", "z>"]
    for border in (16_384, 32_768):
        for before in (0, 1, 2, 255, 500, 1_023, 1_024):
            text = "." * (border - before) + "".join(rng.choices(parts, k=4))
            expected = [(m.start(), m.end(), order.index(m[0])) for m in found.finditer(text)]
            spans = matcher.split(text.encode())
            assert [span for span in spans if span[2] >= 0] == expected


def test_megabytes_of_special_tokens(tmp_path):
    texts = [f"{i:04}" + "-" * 990 for i in range(2_500)]
    path = tmp_path / "many.tiktoken"
    path.write_text("".join(f"{base64.b64encode(t).decode()} {i}\n" for t, i in SINGLES.items()))
    specials = {text: 300 + i for i, text in enumerate(texts)}
    enc = streamtok.load(path, pattern=PATTERN, special_tokens=specials)
    text = f"{texts[7]}a{texts[2_499]}{texts[0]}"
    assert enc.encode(text, allowed_special="all") == [307, 97, 2_799, 300]
    assert stream_ids(enc.stream_encoder(allowed_special="all"), [*text]) == [307, 97, 2_799, 300]
    assert enc.decode([2_799]) == texts[2_499]


@pytest.mark.parametrize("bad", [{"": 300}, {"<x>": -1}, {"<x>": 2**32}, {"<x>": "1"}])
def test_bad_special_tokens(bad):
    with pytest.raises(ValueError, match="special token"):
        make_encoding(PATTERN, special=bad)


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("texts", [("<|a|>",), ("<|a|>", "<|", "<|<|b"), ("<|a|>", "<b>"), ("<",)])
def test_what_they_begin_with_is_found_at_every_place(level: int, texts: tuple[str, ...]) -> None:
    rng = random.Random(len(texts))
    matcher = SpecialMatcher([(text, i) for i, text in enumerate(texts)], frozenset(texts), ())
    with kernels(level):
        for size in [*range(70), 127, 128, 129, 130, 200, 500]:
            for share in (0.5, 0.05, 0.002):
                letters = [
                    rng.choice("<|a>b") if rng.random() < share else "." for _ in range(size)
                ]
                text = "".join(letters)
                at = rng.randint(0, size)
                text = text[:at] + rng.choice(texts) + text[at:]
                expected = re.split("(" + "|".join(map(re.escape, texts)) + ")", text)
                found = matcher.split(text.encode())
                assert [text[begin:end] for begin, end, _ in found] == expected
                assert [token for _, _, token in found[1::2]] == [
                    texts.index(special) for special in expected[1::2]
                ]


# What the settings may be. tiktoken raises the same for all that is wrong here.

WITHOUT_SETTINGS = ("encode_ordinary", "ordinary_batch", "JSON lines")
DOORS = {name: door for name, door in (IDS | COUNTS).items() if name not in WITHOUT_SETTINGS}
DOORS["with_unstable"] = lambda enc, text, how: enc.encode_with_unstable(text, **how)


@pytest.fixture(scope="module")
def twin():
    enc = streamtok.get_encoding("gpt2")
    return tiktoken.Encoding(
        "gpt2",
        pat_str=enc._pat_str,
        mergeable_ranks=enc._mergeable_ranks,
        special_tokens=enc._special_tokens,
    )


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"allowed_special": "none"}, TypeError),
        ({"allowed_special": ""}, TypeError),
        ({"allowed_special": "<|endoftext|>"}, TypeError),
        ({"allowed_special": "none", "disallowed_special": ()}, TypeError),
        ({"allowed_special": b"all"}, TypeError),
        ({"allowed_special": None}, TypeError),
        ({"allowed_special": 1}, TypeError),
        ({"disallowed_special": {""}}, ValueError),
        ({"disallowed_special": ["", "x"]}, ValueError),
        ({"disallowed_special": {1}}, TypeError),
        ({"disallowed_special": 1}, TypeError),
        ({"disallowed_special": {b"a"}}, TypeError),
    ],
    ids=str,
)
def test_settings_that_mean_nothing_are_refused_at_every_door(door, how, error, twin):
    enc = streamtok.get_encoding("gpt2")
    for text in ("a", "<|endoftext|>"):
        with pytest.raises(error):
            twin.encode(text, **how)
        with pytest.raises(error, match=r"special|iterable"):
            DOORS[door](enc, text, how)


@pytest.mark.parametrize("door", DOORS)
def test_all_and_any_collection_of_texts_are_allowed(door):
    enc = streamtok.get_encoding("gpt2")
    expected = DOORS[door](enc, "<|endoftext|>", {"allowed_special": "all"})
    every_kind = [
        "".join(["al", "l"]), {"<|endoftext|>"}, frozenset(["<|endoftext|>"]), ["<|endoftext|>"],
        ("<|endoftext|>", "other"), {"<|endoftext|>": 1}, {"<|endoftext|>": 1}.keys(),
    ]  # fmt: skip
    for allowed in every_kind:
        assert DOORS[door](enc, "<|endoftext|>", {"allowed_special": allowed}) == expected
    with pytest.raises(ValueError, match="disallowed special token"):
        DOORS[door](enc, "<|endoftext|>", {"allowed_special": [], "disallowed_special": "all"})


@pytest.mark.parametrize("door", DOORS)
def test_disallowing_none_is_disallowing_nothing(door, twin):
    enc = streamtok.get_encoding("gpt2")
    text = "a<|endoftext|>"
    expected = DOORS[door](enc, text, {"disallowed_special": ()})
    assert DOORS[door](enc, text, {"disallowed_special": None}) == expected
    assert enc.encode(text, disallowed_special=None) == twin.encode(text, disallowed_special=None)
