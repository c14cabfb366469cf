"""Many documents in one block: ids, ends, counts and errors are those of each document by itself.

The reference splits the text with `bytes.split` and encodes one document after the other.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamtok
from streamtok._core.encode import find_documents
from streamtok.jobs import documents
from streamtok.jobs.documents import DocumentEncoder
from streamtok.jobs.sources import Delimited, Documents

from ..api.test_threads import SPECIALS, nasty
from ..encodings import make_encoding
from ..jobs.test_documents import take_all

# Tokens and none; a part of a character; one that overlaps itself; one that no token can be.
DELIMITERS = [b"\n", b"\0", b" ", b"\n\n", b"\r\n", b"--", b"\n---\n", "é".encode(), b"\xa9"]
DELIMITERS += [b"<|end of text|>", b"|", b"of", b"\x1e" * 40]


# One that reaches over a delimiter is none, and does not hide another at its place.
MORE_SPECIALS = {**SPECIALS, "<|end\n": 100_310, "b\na": 100_311}
PARTS = ["<|end", " of text|>", "\n", "a", " b", "b", "word", " ", "", "é"]


def lines(rng: random.Random, delimiter: bytes, count: int) -> bytes:
    """Documents of no bytes, of a word, of several hundred characters; a delimiter behind each."""
    sizes = [0, 0, 0, 1, 5, 30, 60, 400]
    texts = [nasty(rng, rng.choice(sizes)) for _ in range(count)]
    texts += ["".join(rng.choices(PARTS, k=rng.choice(sizes))) for _ in range(count)]
    rng.shuffle(texts)
    return b"".join(text.encode() + delimiter for text in texts)


@given(
    data=st.binary(max_size=60).map(lambda b: bytes(b"ab-\n"[x % 4] for x in b)),
    delimiter=st.sampled_from([b"\n", b"--", b"ab", b"aab", b"-\n-", b"abab", b"\n\n"]),
    start=st.integers(0, 70),
    wanted=st.integers(0, 70),
)
def test_documents_are_found_as_by_split(
    data: bytes, delimiter: bytes, start: int, wanted: int
) -> None:
    if start > len(data):
        with pytest.raises(ValueError, match="beyond"):
            find_documents(data, delimiter, start, wanted)
        return
    count, stop = 0, start
    for text in data[start:].split(delimiter)[:-1]:
        if stop - start >= wanted:
            break
        count, stop = count + 1, stop + len(text) + len(delimiter)
    assert find_documents(data, delimiter, start, wanted) == (count, stop)
    with pytest.raises(ValueError, match="at least one byte"):
        find_documents(data, b"", 0, 1)


def encoded(
    encoder: DocumentEncoder, splitter: Delimited, data: bytes, rng: random.Random, size: int
) -> tuple[list[int], list[int]]:
    """(ids, ends) of data in blocks of any size."""
    ids: list[int] = []
    ends: list[int] = []

    def take(left: int) -> None:
        while encoder.n_tasks > left:
            one = encoder.take()
            ends.extend((one.ends + len(ids)).tolist())
            ids.extend(one.ids.tolist())

    at = 0
    while at < len(data):
        step = rng.randrange(1, size)
        encoder.add(splitter.split(data[at : at + step]))
        take(rng.choice([0, 0, 5]))
        at += step
    encoder.add(splitter.finish())
    take(0)
    return ids, ends


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_blocks_of_any_size_give_the_same(
    delimiter: bytes, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "TASK", 700)
    rng = random.Random(f"{delimiter!r} {threads}")
    base = streamtok.get_encoding("cl100k_base")
    enc = make_encoding(base.pattern, base.definition.vocabulary, MORE_SPECIALS)
    for round_ in range(8):
        data = lines(rng, delimiter, 20)
        if round_ % 2:
            data += nasty(rng, 50).encode()  # the last one has no delimiter
        if round_ % 4 == 2:
            data += b"ab \xff cd" + delimiter + b"\xe6\x97" + delimiter
        errors = rng.choice(["replace", "surrogateescape"])
        prepend, append = rng.choice([None, 7]), rng.choice([None, SPECIALS["a b"]])
        skip = rng.random() < 0.5
        allowed: Any = rng.choice(["all", {"<|end"}, {"a b", "<|end\n"}, {"b\na"}])
        how = {"allowed_special": allowed, "disallowed_special": (), "errors": errors}
        stream = enc.stream_encoder(**how)
        encoder = DocumentEncoder(
            stream, prepend=prepend, append=append, skip_empty=skip, num_threads=threads
        )
        texts = data.split(delimiter)
        if not texts[-1]:
            texts.pop()
        expected: list[int] = []
        ends = []
        for text in texts:
            if text or not skip:
                middle = enc.encode(text, **how)
                expected += [x for x in (prepend, *middle, append) if x is not None]
                ends.append(len(expected))
        splitter = Delimited(delimiter)
        size = rng.choice([10, 300, 5_000, 100_000])
        assert encoded(encoder, splitter, data, rng, size) == (expected, ends)
        assert encoder.documents == len(ends)
        assert encoder.bytes == sum(map(len, texts))
        assert splitter.records == len(texts)
        assert splitter.consumed == len(data)
        encoder.release()


def test_documents_after_one_that_is_open() -> None:
    enc = streamtok.get_encoding("cl100k_base")
    encoder = DocumentEncoder(enc.stream_encoder(), append=9)
    block = Documents(memoryview(b"world\n\nmore text\n"), b"\n", 3)
    ids, ends = encoder.encode([(b"hello ", False), block])
    expected = [[*enc.encode(text), 9] for text in ("hello world", "", "more text")]
    assert ids.tolist() == [i for row in expected for i in row]
    assert ends.tolist() == np.cumsum([len(row) for row in expected]).tolist()


def add_all(encoder: DocumentEncoder, splitter: Delimited, data: bytes, size: int) -> None:
    """As the pipeline does it: what came before an error is taken before the error is raised."""
    for at in range(0, len(data), size):
        try:
            encoder.add(splitter.split(data[at : at + size]), splitter.places)
        except ValueError:
            take_all(encoder)
            raise
        while encoder.is_ahead:
            encoder.take()
    take_all(encoder)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [50, 1_000, 100_000])
def test_errors_say_which_document_and_where(threads: int, size: int) -> None:
    enc = streamtok.get_encoding("cl100k_base")
    good = [b"line %d of them" % i for i in range(900)]
    for bad, error, match in (
        (b"\xff", UnicodeDecodeError, "invalid start byte"),
        (b"<|endoftext|>", ValueError, "at byte 5"),
    ):
        texts = [*good]
        texts[700] = b"line " + bad + b" of them"
        data = b"\n".join(texts)
        encoder = DocumentEncoder(enc.stream_encoder(), num_threads=threads)
        splitter = Delimited(b"\n")
        splitter.name = "this one"
        with pytest.raises(error, match=match) as caught:
            add_all(encoder, splitter, data, size)
        if isinstance(caught.value, UnicodeDecodeError):
            assert caught.value.start == 5
        assert encoder.documents == 700
        assert encoder.failed_place == "this one line 701"
        encoder.release()
