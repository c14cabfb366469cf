"""Where tokens come from: exact for whole texts, the same in streams, for any cut and encoding."""

from __future__ import annotations

import functools
import pickle
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

import streamtok
from streamtok import StateError, UnsupportedPatternError
from streamtok.engines.rules import NO_RULES, TextRules, TokenFlags
from streamtok.engines.source_units import UNITS
from streamtok.normalizers import Form, Lowercase, Normalizer, Replace
from streamtok.vocabulary.byte_alphabet import to_text

from ..conftest import PACKED, encoding_of
from ..nasty import TEXTS
from .slowly import any_encoding, any_settings, any_text, as_given, cut, looks_behind

GPT2 = streamtok.get_encoding("gpt2")
seeds = st.integers(0, 2**32)


def characters(text: str | bytes, errors: str) -> list[tuple[int, int, int, bool]]:
    """Of each character as encoded: its bytes there, bytes and characters of the text, whether it
    was repaired.
    """
    if isinstance(text, bytes) and errors == "replace":
        found = []
        at = 0
        while at < len(text):
            for size in (1, 2, 3, 4):
                try:
                    text[at : at + size].decode()
                    found.append((size, size, 1, False))
                    break
                except UnicodeDecodeError:
                    pass
            else:
                size = 1  # Python says how much of it is one error
                try:
                    text[at:].decode()
                except UnicodeDecodeError as error:
                    assert error.start == 0
                    size = error.end
                found.append((3, size, 1, True))
            at += size
        return found
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors)
    found = []
    at = 0
    while at < len(text):
        pair = text[at : at + 2]
        if len(pair) == 2 and "\ud800" <= pair[0] <= "\udbff" and "\udc00" <= pair[1] <= "\udfff":
            found.append((4, 4, 2, False))
            at += 2
            continue
        one = text[at]
        is_byte = errors == "surrogateescape" and "\udc80" <= one <= "\udcff"
        size = 1 if is_byte else len(one.encode("utf-8", "surrogatepass"))
        found.append((size, size, 1, False))
        at += 1
    return found


def slowly(
    encoding: streamtok.Encoding, text: str | bytes, unit: str, errors: str, ids: list[int]
) -> list[list[int]]:
    """The law, for an encoding that does not change text and leaves nothing out."""
    places = []  # of each byte as encoded: the place where it begins and ends
    at = 0
    for size, n_bytes, n_characters, is_repaired in characters(text, errors):
        if unit == "byte" and not is_repaired:
            places += [(at + i, at + i + 1) for i in range(size)]
            at += size
            continue
        width = {"byte": n_bytes, "character": n_characters, "utf16": 2 if size == 4 else 1}[unit]
        places += [(at, at + width)] * size
        at += width
    spans = []
    byte = 0
    for id in ids:
        size = len(encoding.decode_single_token_bytes(id))
        spans.append([places[byte][0], places[byte + size - 1][1]])
        byte += size
    assert byte == len(places)
    return spans


def in_stream(
    rng: random.Random, encoding: streamtok.Encoding, text: Any, unit: str, options: dict[str, Any]
) -> tuple[list[int], list[list[int]]]:
    """What a stream says, in chunks, through saved states."""
    stream = encoding.stream_encoder(**options)
    ids, spans = [], []
    for chunk in [*cut(rng, text, rng.choice([1, 3, 20])), None]:
        given: Any = text[:0] if chunk is None else chunk
        found = stream.encode_with_offsets(given, chunk is None, unit=unit)
        ids += found[0].tolist()
        spans += found[1].tolist()
        how = rng.random()
        if how < 0.3:
            stream = pickle.loads(pickle.dumps(stream))
        elif how < 0.4:
            stream = stream.copy()
        elif how < 0.6:
            twin = encoding.stream_encoder(**options)
            twin.setstate(stream.getstate())
            stream = twin
    return ids, spans


def is_plain(encoding: streamtok.Encoding) -> bool:
    pattern = encoding.pattern
    return encoding._rules == NO_RULES and pattern is not None and pattern.is_total


@settings(max_examples=400, deadline=None)
@given(seeds, st.sampled_from(UNITS))
def test_streams_and_whole_texts_agree(seed: int, unit: str) -> None:
    rng = random.Random(seed)
    encoding, letters = any_encoding(rng)
    options = any_settings(rng, encoding)
    text = as_given(rng, any_text(rng, letters))
    try:
        ids, spans = encoding.encode_with_offsets(text, unit, **options)
    except UnsupportedPatternError as error:
        assert encoding._rules != NO_RULES, error
        return
    wanted = encoding.encode(text, **options)
    assert ids.tolist() == wanted
    assert spans.shape == (len(ids), 2)
    assert spans.dtype == np.int64
    assert (spans[:, 0] <= spans[:, 1]).all()
    if is_plain(encoding):
        assert spans.tolist() == slowly(encoding, text, unit, options["errors"], wanted)
    if encoding.pattern is not None and encoding.pattern.is_total:
        found = in_stream(rng, encoding, text, unit, options)
        assert found == (wanted, spans.tolist())


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("unit", UNITS)
def test_nasty_texts(name: str, unit: str) -> None:
    encoding = encoding_of(name)
    rng = random.Random(name)
    for errors in ("replace", "surrogateescape"):
        for data in [*TEXTS, b"".join(TEXTS)]:
            text = as_given(rng, data)
            options: dict[str, Any] = {"errors": errors, "disallowed_special": ()}
            ids, spans = encoding.encode_with_offsets(text, unit, **options)
            wanted = slowly(encoding, text, unit, errors, ids.tolist())
            assert spans.tolist() == wanted
            assert in_stream(rng, encoding, text, unit, options) == (ids.tolist(), wanted)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60), st.sampled_from(PACKED))
def test_the_bytes_of_a_span_are_its_token(text: str, name: str) -> None:
    encoding = encoding_of(name)
    ids, spans = encoding.encode_with_offsets(text, "byte", disallowed_special=())
    data = text.encode()
    tokens = [data[start:stop] for start, stop in spans]
    assert tokens == encoding.decode_tokens_bytes(ids.tolist())


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_hugging_face_says_the_same(text: str) -> None:
    """`tokenizers` gives characters. A character that tokens share belongs to each, as here."""
    theirs = hugging_face()
    found = theirs.encode(text, add_special_tokens=False)
    ids, spans = GPT2.encode_with_offsets(text, disallowed_special=())
    assert ids.tolist() == found.ids
    assert [tuple(span) for span in spans.tolist()] == found.offsets


@functools.cache
def hugging_face() -> Tokenizer:
    """GPT-2 in `tokenizers`."""
    import tempfile
    from pathlib import Path

    from streamtok import formats

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tokenizer.json")
        formats.save_huggingface(GPT2, path)
        theirs = Tokenizer.from_file(str(path))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False)
    return theirs
