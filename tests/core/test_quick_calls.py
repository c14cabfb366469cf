"""The quick way of small texts gives what the long way gives, and the reference."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamtok._core._testing import kernels, levels
from streamtok._core.encode import ARRAY, COUNT, LIST
from streamtok.reference import bpe as reference

from ..conftest import PACKED, encoding_of, stream_ids, twin_of
from ..doors import outcome
from ..encodings import SINGLES, make_encoding
from .test_fast_paths import PIECES


class Text(str):
    """A str of another class."""


CALLS = [
    *("", "a", "hello world", "x" * 5000, "naïve café", "日本語のテキスト", "😀 ok", "\0"),
    *("a<b", "<|", "<|endoftext|>", "a <|endoftext|> b", "<|endoftext|", "<|fim_prefix|>é"),
    *("é" * 2047 + "x", "é" * 2047 + "xy", "é" * 2047 + "xyz", "日" * 1366, "a" * 4096, "a" * 4097),
    *(b"", b"bytes", "é".encode(), b"\xff", b"abc\xe2\x82", b"x" * 4097, b"<|endoftext|>"),
    *(
        bytearray(b"bytes"),
        memoryview(b"view"),
        Text("hello"),
        Text("<|endoftext|>"),
        None,
        3,
        ["a"],
    ),
]
SETTINGS = [
    *({}, {"disallowed_special": ()}, {"allowed_special": "all"}, {"errors": "replace"}),
    *({"errors": "surrogateescape"}, {"errors": "nonsense"}, {"disallowed_special": {"a"}}),
    *(
        {"allowed_special": {"<|endoftext|>"}},
        {"allowed_special": set()},
        {"errors": "".join("strict")},
    ),
    {"allowed_special": frozenset(), "disallowed_special": "all", "errors": "strict"},
]


@pytest.mark.parametrize("name", PACKED)
def test_quick_calls_equal_the_long_way(name: str) -> None:
    enc = encoding_of(name)
    for text in CALLS * 2:  # the second time, there is room for what is not ASCII
        for some in SETTINGS:
            full = {"allowed_special": frozenset(), "disallowed_special": "all", "errors": "strict"}
            full |= some
            slow = outcome(lambda: enc.definition.texts.encode(text, output=LIST, **full))  # noqa: B023
            assert outcome(lambda: enc.encode(text, **some)) == slow, (text, some)  # noqa: B023
        ordinary = enc.definition.specials.ordinary
        slow = outcome(lambda: enc.definition.engine.encode(text, ordinary, "strict", LIST))  # noqa: B023
        assert outcome(lambda: enc.encode_ordinary(text)) == slow, text  # noqa: B023


def listed(array: np.ndarray) -> list[int]:
    assert array.dtype == np.uint32
    assert array.flags.writeable
    return array.tolist()


@pytest.mark.parametrize("name", PACKED)
def test_quick_arrays_and_counts_equal_the_long_way(name: str) -> None:
    enc = encoding_of(name)
    threads = [{"num_threads": n} for n in (2, 0, -1, True)]
    for text in CALLS * 2:
        for some in [*SETTINGS, *threads, {"add_special_tokens": True}]:
            full = {"allowed_special": frozenset(), "disallowed_special": "all", "errors": "strict"}
            full |= {"add_special_tokens": False, "num_threads": 1}
            full |= some
            slow = outcome(lambda: listed(enc.definition.texts.encode(text, output=ARRAY, **full)))  # noqa: B023
            quick = outcome(lambda: listed(enc.encode_to_numpy(text, **some)))  # noqa: B023
            assert quick == slow, (text, some)
            full["disallowed_special"] = some.get("disallowed_special", ())  # its own default
            slow = outcome(lambda: enc.definition.texts.encode(text, output=COUNT, **full))  # noqa: B023
            assert outcome(lambda: enc.count(text, **some)) == slow, (text, some)  # noqa: B023


@settings(max_examples=200)
@given(
    st.text(st.characters(codec=None), max_size=60)
    | st.lists(st.sampled_from([*PIECES, "<|endoftext|>", "<|"]), max_size=40).map("".join)
    | st.binary(max_size=40)
)
def test_quick_calls_equal_the_reference(text: str | bytes) -> None:
    enc = encoding_of("cl100k_base")
    slow = outcome(lambda: enc.definition.texts.encode(text, frozenset(), "all", "strict", LIST))
    assert outcome(lambda: enc.encode(text)) == slow
    array = outcome(lambda: listed(enc.encode_to_numpy(text)))
    assert array == slow
    refused = outcome(lambda: enc.count(text, disallowed_special="all"))
    assert refused == (len(slow) if isinstance(slow, list) else slow)
    ordinary = outcome(lambda: enc.encode_ordinary(text))
    counted = outcome(lambda: enc.count(text))
    assert counted == (len(ordinary) if isinstance(ordinary, list) else ordinary)
    assert ordinary == outcome(
        lambda: enc.definition.texts.encode(text, frozenset(), (), "strict", LIST)
    )
    if isinstance(ordinary, list) and isinstance(text, bytes):
        assert ordinary == twin_of("cl100k_base").encode_ordinary(text.decode())


@pytest.fixture(params=levels())
def way_to_merge(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every way that new pieces of small texts can go."""
    with kernels(request.param):
        yield


@pytest.mark.parametrize("seed", range(6))
def test_new_pretokens_of_small_texts_equal_the_reference(way_to_merge: None, seed: int) -> None:
    rng = random.Random(seed)
    letters = "abcé日"[: rng.randint(2, 5)]

    def word(longest: int) -> str:
        return "".join(rng.choices(letters, k=rng.randint(1, longest)))

    tokens = {(" " * rng.randint(0, 1) + word(9)).encode() for _ in range(150)}
    parts = {token[:end] for token in tokens for end in range(2, len(token) + 1)}
    order = rng.sample(sorted(parts), len(parts))
    ranks = dict(SINGLES)
    step = rng.choice([1, 3])  # ids in a row, or not
    ranks |= {token: 256 + step * i for i, token in enumerate(order)}
    pattern = r" ?\w+|\s+|[^\w\s]+"
    enc = make_encoding(pattern, ranks)
    # Sixteen go side by side, and four such groups at a time.
    for count in [*range(1, 30), 60, *range(1, 30), 64, 65, 81, 130, 200]:
        longest = rng.choice([3, 15, 16, 40, 70])
        text = " ".join(word(longest) for _ in range(count))
        if rng.random() < 0.5:  # up to where texts are not copied any more
            text = text[: rng.randint(1, 140)]
        expected = reference.encode(ranks, pattern, text, special_tokens={}, allowed_special=())
        for encode in (
            enc.encode,
            lambda text: enc.encode(text.encode()),
            lambda text: enc.encode_to_numpy(text).tolist(),
            lambda text: stream_ids(enc.stream_encoder(), [text[:7], text[7:]]),
        ):
            enc.definition.encoder.release()  # everything is new again
            assert encode(text) == expected, text
            assert encode(text) == expected, text  # and now known
            assert enc.definition.texts.encode(text, frozenset(), (), "strict", LIST) == expected


@pytest.mark.parametrize("name", PACKED)
def test_lone_pretokens_of_every_size_equal_tiktoken(way_to_merge: None, name: str) -> None:
    enc, twin = encoding_of(name), twin_of(name)
    rng = random.Random(name)
    enc.definition.encoder.release()
    for size in range(1, 71):
        for letters in ("etaoinshrdlu", "日本語のё", "=-#*/"):
            piece = "".join(rng.choices(letters, k=size))
            expected = twin.encode_ordinary(piece)
            assert enc.encode_ordinary(piece) == expected
            assert enc.encode_ordinary(piece) == expected


@pytest.mark.parametrize("errors", ["strict", "replace", "surrogateescape"])
def test_quick_stream_equals_the_long_way(errors: str) -> None:
    enc = encoding_of("cl100k_base")
    rng = random.Random(errors)
    for _ in range(300):
        quick, slow = (enc.stream_encoder(errors=errors, max_pending=3000) for _ in range(2))
        for _ in range(rng.randint(1, 8)):
            chunk, final = rng.choice(CALLS), rng.random() < 0.2
            if rng.random() < 0.5:
                fast = outcome(lambda: quick.encode(chunk, final))  # noqa: B023
            else:
                fast = outcome(lambda: quick.encode_to_numpy(chunk, final).tolist())  # noqa: B023
            assert fast == outcome(lambda: slow.take(chunk, final, LIST))  # noqa: B023
            assert quick.getstate() == slow.getstate()
            if rng.random() < 0.2:
                quick = pickle.loads(pickle.dumps(quick)) if rng.random() < 0.5 else quick.copy()
