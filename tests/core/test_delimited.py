"""Many documents in one block: where they end, and which of them is refused.

Their ids are compared with those of each document by itself in `tests/long/calls`.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamtok
from streamtok._core.encode import find_documents
from streamtok.jobs.documents import DocumentEncoder
from streamtok.jobs.sources.splitters import Delimited, Documents

from ..jobs.test_documents import take_all


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
            encoder.add(splitter.split(data[at : at + size]), splitter.positions)
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
        assert encoder.failed_position == "this one line 701"
        encoder.release()
