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
from streamtok._core.encode import encode_delimited, find_documents
from streamtok.pipeline import documents
from streamtok.pipeline.documents import DocumentEncoder
from streamtok.pipeline.sources import Delimited, Documents

from ..api.test_threads import SPECIALS, nasty, with_specials
from ..encodings import make_encoding
from ..pipeline.test_documents import take_all

# Tokens and none; a part of a character; one that overlaps itself; one that no token can be.
DELIMITERS = [b"\n", b"\0", b" ", b"\n\n", b"\r\n", b"--", b"\n---\n", "é".encode(), b"\xa9"]
DELIMITERS += [b"<|end of text|>", b"|", b"of", b"\x1e" * 40]


def in_block(
    enc: streamtok.Encoding, data: bytes, delimiter: bytes, *, skip_empty: bool, **how: Any
) -> Any:
    """What `encode_delimited` gives, or None."""
    count, stop = find_documents(data, delimiter, 0, len(data))
    stream = enc.stream_encoder(**{k: v for k, v in how.items() if k.endswith("special")})
    return encode_delimited(
        enc.definition.encoder,
        stream.matcher,
        memoryview(data)[:stop],
        delimiter,
        count,
        how.get("errors", "strict"),
        how.get("prepend", -1),
        how.get("append", -1),
        skip_empty,
    )


def one_by_one(
    enc: streamtok.Encoding, data: bytes, delimiter: bytes, *, skip_empty: bool, **how: Any
) -> tuple[list[int], list[int]]:
    frame = {name: how.pop(name, -1) for name in ("prepend", "append")}
    ids: list[int] = []
    ends = []
    for text in data.split(delimiter)[:-1]:
        if text or not skip_empty:
            middle = enc.encode(text, **how)
            ids += [one for one in (frame["prepend"], *middle, frame["append"]) if one >= 0]
            ends.append(len(ids))
    return ids, ends


def lines(rng: random.Random, delimiter: bytes, count: int) -> bytes:
    """Documents of no bytes, of a word, of several hundred characters; a delimiter behind each."""
    sizes = [0, 0, 1, 5, 30, 60, 400]
    texts = [
        nasty(rng, rng.choice(sizes)).encode() if rng.random() < 0.9 else b"" for _ in range(count)
    ]
    return b"".join(text + delimiter for text in texts)


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


def test_special_tokens_are_those_of_each_document() -> None:
    """One that reaches over a delimiter is none, and does not hide another at its place."""
    newline = streamtok.get_encoding("cl100k_base").encode("\n")[0]
    specials = {**SPECIALS, "<|end\n": 100_310, "b\na": 100_311, "word": newline}
    base = streamtok.get_encoding("cl100k_base")
    enc = make_encoding(base.pattern, base.definition.vocabulary, specials)
    rng = random.Random(12)
    sets: list[Any] = ["all", {"<|end"}, {"a b", "<|end\n"}, {"word", "b\na"}]
    for _ in range(40):
        words = ["<|end", " of text|>", "\n", "a", " b", "b", "word", " ", "", "é"]
        text = "".join(rng.choice(words) for _ in range(200)).encode()
        for delimiter in (b"\n", b"\n\n", b" ", b"a", b"|>"):
            data = text + delimiter
            for allowed in sets:
                how = {"allowed_special": allowed, "disallowed_special": (), "skip_empty": False}
                found = in_block(enc, data, delimiter, **how)
                expected = one_by_one(enc, data, delimiter, **how)
                assert (found[0].tolist(), found[1].tolist()) == expected


def test_what_a_stream_must_see_is_left_to_it() -> None:
    enc = streamtok.get_encoding("cl100k_base")
    fine = b"fine\n" * 9
    assert in_block(enc, fine, b"\n", skip_empty=False) is not None
    for bad in (b"\xff\n", b"\xe6\x97\n", b"a<|endoftext|>\n"):
        assert in_block(enc, fine + bad + fine, b"\n", skip_empty=False) is None
    # Half a character in each document, though together they are whole.
    assert in_block(enc, "é".encode() * 2, "é".encode()[1:], skip_empty=False) is None
    assert in_block(enc, b"<|endo\nftext|>\n", b"\n", skip_empty=False) is not None
    ordinary = enc.definition.specials.ordinary
    for data, count in ((b"a\nb", 1), (b"a\n", 2)):
        rest = (data, b"\n", count, "strict", -1, -1, False)
        assert encode_delimited(enc.definition.encoder, ordinary, *rest) is None


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
    enc = with_specials()
    for round_ in range(8):
        data = lines(rng, delimiter, 40)
        if round_ % 2:
            data += nasty(rng, 50).encode()  # the last one has no delimiter
        if round_ % 4 == 2:
            data += b"ab \xff cd" + delimiter + b"\xe6\x97" + delimiter
        errors = rng.choice(["replace", "surrogateescape"])
        prepend, append = rng.choice([None, 7]), rng.choice([None, SPECIALS["a b"]])
        skip = rng.random() < 0.5
        stream = enc.stream_encoder(allowed_special="all", errors=errors)
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
                middle = enc.encode(text, allowed_special="all", errors=errors)
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


def test_documents_where_nothing_can_be_cut() -> None:
    """Without a pattern of its own, and with a document open before them."""
    enc = streamtok.get_encoding("cl100k_base")
    encoder = DocumentEncoder(enc.stream_encoder(), append=9)
    block = Documents(memoryview(b"world\n\nmore text\n"), b"\n", 3)
    ids, ends = encoder.encode([(b"hello ", False), block])
    expected = [[*enc.encode(text), 9] for text in ("hello world", "", "more text")]
    assert ids.tolist() == [i for row in expected for i in row]
    assert ends.tolist() == np.cumsum([len(row) for row in expected]).tolist()
    encoder._cuts = None
    ids, _ = encoder.encode([block])
    assert ids.tolist() == [*enc.encode("world"), 9, 9, *enc.encode("more text"), 9]


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
