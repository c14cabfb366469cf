"""The quick way of small texts gives what the long way gives."""

from __future__ import annotations

import numpy as np
import pytest

from streamtok._core.encode import ARRAY, COUNT, LIST

from ..conftest import PACKED, encoding_of
from ..doors import outcome


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


def listed(array: np.ndarray) -> list[int]:
    assert array.dtype == np.uint32
    assert array.flags.writeable
    return array.tolist()


@pytest.mark.parametrize("name", PACKED)
def test_quick_calls_equal_the_long_way(name: str) -> None:
    enc = encoding_of(name)
    texts, ordinary = enc.definition.texts, enc.definition.specials.ordinary
    defaults = {"allowed_special": frozenset(), "disallowed_special": "all", "errors": "strict"}
    more = [*({"num_threads": n} for n in (2, 0, -1, True)), {"add_special_tokens": True}]
    for text in CALLS * 2:  # the second time, there is room for what is not ASCII
        for some in [*SETTINGS, *more]:
            full = {**defaults, "num_threads": 1, "add_special_tokens": False, **some}
            slow = outcome(lambda: listed(texts.encode(text, output=ARRAY, **full)))  # noqa: B023
            quick = outcome(lambda: listed(enc.encode_to_numpy(text, **some)))  # noqa: B023
            assert quick == slow, (text, some)
            if "num_threads" not in some:
                assert outcome(lambda: enc.encode(text, **some)) == slow, (text, some)  # noqa: B023
            full["disallowed_special"] = some.get("disallowed_special", ())  # its own default
            slow = outcome(lambda: texts.encode(text, output=COUNT, **full))  # noqa: B023
            assert outcome(lambda: enc.count(text, **some)) == slow, (text, some)  # noqa: B023
        slow = outcome(lambda: enc.definition.engine.encode(text, ordinary, "strict", LIST))  # noqa: B023
        assert outcome(lambda: enc.encode_ordinary(text)) == slow, text  # noqa: B023
