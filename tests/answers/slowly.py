"""What the answers' laws say, by trying everything; and the encodings and texts to try."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import random
from typing import Any

import streamtok
from streamtok.engines.rules import TextRules
from streamtok.engines.template import NO_TEMPLATE, Template
from streamtok.normalizers import Form, Normalizer

from ..conftest import PACKED, encoding_of
from ..encodings import make_encoding, space_rules
from ..long.states.encodings import any_subject, random_ranks
from ..nasty import TEXTS


def any_encoding(rng: random.Random) -> tuple[streamtok.Encoding, bytes]:
    """An encoding of any kind, some with a template, and letters that matter to it."""
    encoding, letters = _any_encoding(rng)
    return (with_template(encoding) if rng.random() < 0.2 else encoding), letters


@functools.lru_cache(maxsize=64)
def with_template(encoding: streamtok.Encoding) -> streamtok.Encoding:
    pattern = encoding.pattern
    return make_encoding(
        pattern if pattern is not None and pattern.is_composed else encoding._pat_str,
        encoding.definition.vocabulary,
        encoding._special_tokens | {"<one>": 1 << 21, "<two>": (1 << 21) + 1},
        name=encoding.name,
        rules=encoding.definition.rules,
        template=Template((1 << 21,), ((1 << 21) + 1, 1 << 21)),
    )


def _any_encoding(rng: random.Random) -> tuple[streamtok.Encoding, bytes]:
    kind = rng.random()
    if kind < 0.6:
        subject = any_subject(rng)
        return subject.encoding, subject.letters
    if kind < 0.75:
        return with_rules(rng.randrange(8), "spaces"), b"ab \xe2\x96\x81"
    if kind < 0.95:
        return with_rules(rng.randrange(8), "NFC"), "ab e\u0301\u00e9".encode()
    return encoding_of(rng.choice(PACKED)), b"a 1\n"


@functools.cache
def with_rules(number: int, normalizer: str) -> streamtok.Encoding:
    """Random tokens behind a normalizer; half of them over the whole text, as SentencePiece's."""
    rng = random.Random(f"{normalizer} {number}")
    pattern = r"[\s\S]+" if number % 2 else encoding_of("cl100k_base")._pat_str
    of_spaces = normalizer == "spaces"
    rules = space_rules() if of_spaces else TextRules(normalizer=Normalizer([Form(normalizer)]))
    return make_encoding(
        pattern,
        random_ranks(rng, "ab é\n".encode()),
        {"<|endoftext|>": 5000},
        name=f"{normalizer} {number}",
        rules=rules,
    )


def any_text(rng: random.Random, letters: bytes, most: int = 8) -> bytes:
    """Nasty texts and runs of letters; not always UTF-8."""
    parts = []
    for _ in range(rng.randint(0, most)):
        if rng.random() < 0.5:
            parts.append(rng.choice(TEXTS))
        else:
            run = letters if rng.random() < 0.7 else bytes([rng.choice(letters)])
            parts.append(bytes(rng.choices(run, k=rng.choice([1, 3, 10, 40, 90]))))
    return b"".join(parts)


def any_settings(rng: random.Random, encoding: streamtok.Encoding) -> dict[str, Any]:
    errors = rng.choice(["replace", "surrogateescape"])
    settings: dict[str, Any] = {"errors": errors, "disallowed_special": ()}
    if rng.random() < 0.4:
        settings["allowed_special"] = "all"
    if encoding.definition.template != NO_TEMPLATE:
        settings["add_special_tokens"] = True
    return settings


def as_given(rng: random.Random, data: bytes) -> str | bytes:
    """The text as bytes, or as a str, with surrogates where it is no UTF-8."""
    if rng.random() < 0.5:
        return data
    text = data.decode("utf-8", "surrogateescape")
    if rng.random() < 0.3:
        leave_utf8(text)
    return text


def leave_utf8(text: str) -> int:
    """Let a str keep its UTF-8, as some libraries do; its size in bytes, 0 if it has none."""
    size = ctypes.c_ssize_t()
    with contextlib.suppress(UnicodeEncodeError):
        ctypes.pythonapi.PyUnicode_AsUTF8AndSize(ctypes.py_object(text), ctypes.byref(size))
    return size.value


def places_of(text: str | bytes) -> list[int]:
    """Where characters end, and 0."""
    if isinstance(text, str):
        pairs = itertools.pairwise(text)
        halves = {
            i
            for i, (a, b) in enumerate(pairs, 1)
            if "\ud800" <= a <= "\udbff" and "\udc00" <= b <= "\udfff"
        }
        return [i for i in range(len(text) + 1) if i not in halves]
    one_by_one = text.decode("utf-8", "surrogateescape")
    sizes = [len(one.encode("utf-8", "surrogateescape")) for one in one_by_one]
    return list(itertools.accumulate(sizes, initial=0))


def spelled(encoding: streamtok.Encoding, text: Any, settings: dict[str, Any]) -> list[bytes]:
    """The tokens of the text, without those of the template."""
    plain = {**settings, "add_special_tokens": False}
    return [encoding.decode_single_token_bytes(id) for id in encoding.encode(text, **plain)]


def token_places(encoding: streamtok.Encoding, text: Any, settings: dict[str, Any]) -> list[int]:
    """Where a token of the whole text ends together with a character, and 0."""
    tokens = spelled(encoding, text, settings)
    whole = b"".join(tokens)
    ends = set(itertools.accumulate(map(len, tokens), initial=0))
    found = []
    for place in places_of(text):
        own = b"".join(spelled(encoding, text[:place], settings))
        if len(own) in ends and whole.startswith(own):
            found.append(place)
    return found


def truncated(
    encoding: streamtok.Encoding,
    text: Any,
    budget: int,
    side: str,
    settings: dict[str, Any],
) -> tuple[Any, int, bool]:
    """The law of `truncate`."""
    count = len(encoding.encode(text, **settings))
    if count <= budget:
        return text, count, False
    places = token_places(encoding, text, settings)
    parts = [text[:p] for p in reversed(places)] if side == "right" else [text[p:] for p in places]
    for part in [*parts, text[:0]]:
        count = len(encoding.encode(part, **settings))
        if count <= budget:
            return part, count, True
    raise AssertionError("nothing has more than no tokens")
