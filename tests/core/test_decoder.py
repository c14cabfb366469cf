"""Decoding the short way gives what the slow way gives, which iterators always go."""

from __future__ import annotations

import enum
import itertools
import random
import sys
import threading
from typing import Any

import numpy as np
import pytest

import streamtok
from streamtok._core.encode import Decoder, UnknownId
from streamtok.engines.rules import TextRules

from ..conftest import PACKED, encoding_of
from ..doors import outcome
from ..encodings import SINGLES, make_encoding

BYTES = make_encoding()
SIZES = [0, 1, 2, 3, 24, 25, 255, 256, 257, 511, 512, 513, 1024, 1025, 5000]


def mixed() -> streamtok.Encoding:
    """Tokens of about the 15 bytes of an entry, and far longer; special ones among and beyond."""
    ranks = dict(SINGLES)
    for size in (*range(2, 40), 300, 5000):
        ranks[b"ab"[: size % 2 + 1] * size] = len(ranks) + 3 * (len(ranks) // 7)
    free = sorted(set(range(max(ranks.values()))) - set(ranks.values()))
    specials = {
        "<|short|>": free[0],
        "<|a long special token|>": free[1],
        "x": max(ranks.values()) + 10,
        "<|far off|>": 4_000_000_000,
    }
    return make_encoding(r"[\s\S]", ranks, specials)


MIXED = mixed()
KNOWN = sorted({*MIXED._mergeable_ranks.values(), *MIXED._special_tokens.values()})
NEAR = [id for id in KNOWN if id < 1 << 31]


def decoder_of(encoding: streamtok.Encoding) -> Decoder:
    return encoding.definition.decoder


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_rows_are_as_iterators(size: int, skip: bool) -> None:
    rng = random.Random(size)
    decoder = decoder_of(MIXED)
    for known in (NEAR, KNOWN, NEAR[:256], NEAR[-8:]):
        ids = rng.choices(known, k=size)
        slow = decoder.decode(iter(ids), skip)
        assert decoder.decode(ids, skip) == decoder.decode(tuple(ids), skip) == slow
        for dtype in ["uint32", "int64", "uint64", ">u4", "<i8", ">i8"]:
            assert decoder.decode(np.array(ids, dtype), skip) == slow, dtype
        if known is not KNOWN:
            for dtype in ["int32", "uint16", "int16"]:
                assert decoder.decode(np.array(ids, dtype), skip) == slow, dtype
        if not skip:
            assert MIXED.decode_bytes(ids) == slow
            assert MIXED.decode(ids) == MIXED.decode(iter(ids)) == slow.decode("utf-8", "replace")
            assert MIXED.decode(np.array(ids, np.uint32)) == slow.decode("utf-8", "replace")


def test_arrays_as_they_lie_in_memory() -> None:
    ids = random.Random(3).choices(NEAR, k=3000)
    array = np.array(ids, np.uint32)
    slow = MIXED.decode_bytes(iter(ids))
    raw = bytearray(1 + array.nbytes)
    raw[1:] = array.tobytes()
    unaligned = np.frombuffer(raw, np.uint32, offset=1)
    assert not unaligned.flags.aligned
    read_only = array.copy()
    read_only.flags.writeable = False
    spread = np.repeat(array, 2)[::2]
    backwards = array[::-1].copy()[::-1]
    for row in (unaligned, read_only, spread, backwards, array.view(np.recarray)):
        assert MIXED.decode_bytes(row) == MIXED.decode_bytes(memoryview(row)) == slow
    assert MIXED.decode_bytes(np.zeros(0, np.float64)) == b""
    for wrong in (array.reshape(2, -1), np.uint32(5), array.astype(float), array.astype(bool)):
        with pytest.raises(TypeError):
            MIXED.decode(np.asarray(wrong))


class Colour(enum.IntEnum):
    RED = 65


class Index:
    def __init__(self, value: int):
        self.value = value

    def __index__(self) -> int:
        return self.value


@pytest.mark.parametrize("before", [0, 1, 511, 512, 2000])
def test_what_is_unusual_is_as_from_an_iterator(before: int) -> None:
    odd = [
        *(True, False, Colour.RED, Index(66), np.uint32(67), np.int64(68), 0, 255),
        *(-1, 256, 2**30 - 1, 2**30, 2**31, 2**32 - 1, 2**32, 2**40, 2**64, -(2**64), 10**40),
        *("x", 1.5, None, b"a", np.float64(1), Index(-5), Index(2**32), [1]),
    ]
    for encoding, (first, last) in itertools.product(
        (BYTES, MIXED), itertools.product(odd, [None, 65, -1, 2**20, "y"])
    ):
        ids = [66] * before + [first] + [67, last][: 2 * (last is not None)]
        for method in (encoding.decode, encoding.decode_bytes):
            wanted = outcome(method, iter(ids))
            assert outcome(method, ids) == outcome(method, tuple(ids)) == wanted
    for value in (-1, 256, 2**31, 2**32 - 1, 2**32, 2**63 - 1):
        ids = [66] * before + [value, 256, -1]
        spread = np.repeat(np.array(ids), 2)[::2]
        assert outcome(BYTES.decode, np.array(ids)) == outcome(BYTES.decode, spread)
    with pytest.raises(UnknownId) as caught:
        BYTES.decode([66] * before + [300, 301])
    assert (caught.value.id, caught.value.position) == (300, before)


def test_the_first_id_may_be_whatever_is_an_integer() -> None:
    enc = make_encoding(rules=TextRules(first_texts=((65, "x"),)))
    for ids in ([65, 66], (Index(65), 66), [Index(65), Index(66)], np.array([65, 66])):
        for given in (ids, iter(ids)):
            assert enc.stream_decoder().decode(given) == "xB"
        assert enc.decode(ids) == enc.decode(iter(ids)) == "xB"


def test_a_list_that_changes_under_the_hands() -> None:
    class Clears:
        def __index__(self) -> int:
            ids.clear()
            return 65

    ids: list[Any] = [66] * 1000 + [Clears()] + [67] * 1000
    assert BYTES.decode_bytes(ids) == b"B" * 1000 + b"A" + b"C" * 1000
    assert ids == []


def test_an_array_that_changes_under_the_hands() -> None:
    """The bytes may be of either; nothing is read or written where nothing is."""
    few, many = NEAR[0], max(NEAR, key=lambda id: len(MIXED.decode_single_token_bytes(id)))
    ids = np.full(1 << 17, few, np.uint32)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            ids[::97] = many
            ids[::97] = few

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            assert len(MIXED.decode_bytes(ids)) >= len(ids)
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("name", PACKED)
def test_whole_vocabularies(name: str) -> None:
    enc = encoding_of(name)
    ids = sorted({*enc.definition.vocabulary.ids.tolist(), *enc._special_tokens.values()})
    random.Random(name).shuffle(ids)
    slow = enc.decode_bytes(iter(ids))
    assert enc.decode_bytes(ids) == enc.decode_bytes(np.array(ids, np.uint32)) == slow
    assert enc.decode(ids) == enc.decode(np.array(ids)) == slow.decode("utf-8", "replace")
    for id in ids[:5000]:
        assert enc.decode_bytes([id]) == enc.decode_single_token_bytes(id)


def check_text(data: bytes) -> None:
    for errors in ("replace", "strict", "ignore", "backslashreplace", "surrogateescape"):
        wanted = outcome(data.decode, "utf-8", errors)
        found = outcome(BYTES.decode, list(data), errors)
        assert found == wanted
        if isinstance(wanted, str):  # the same width of characters, too
            assert sys.getsizeof(found) == sys.getsizeof("".join(list(wanted)))


def test_every_short_sequence() -> None:
    """All pairs of bytes, and longer sequences of those at which something changes, in a text of
    one, two and four bytes a character, and at its very end."""
    edges = b"a\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xc3\xdf\xe0\xed\xef\xf0\xf4\xf5\xff"
    sequences = [bytes(pair) for pair in itertools.product(range(256), repeat=2)]
    for first in (0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF):
        sequences += [bytes((first, *rest)) for rest in itertools.product(edges, repeat=2)]
    for first in (0xF0, 0xF1, 0xF3, 0xF4, 0xF5):
        sequences += [bytes((first, *rest)) for rest in itertools.product(edges, repeat=3)]
    decode = BYTES.decode
    for sequence in sequences:
        for data in (sequence, sequence + b"x", "日".encode() + sequence, "👍".encode() + sequence):
            assert decode(list(data)) == data.decode("utf-8", "replace")
    rng = random.Random(1)
    sequences += [b"a" * 63, b"abc " * 20, *map(str.encode, "é\xff\u0100\ud7ff\uffff\U0010ffff")]
    for _ in range(2000):
        check_text(b"".join(rng.choices([*rng.choices(sequences, k=3), *sequences[-8:]], k=6)))


def test_short_texts_are_the_ones_that_python_keeps() -> None:
    for char in map(chr, range(256)):
        assert BYTES.decode(list(char.encode())) is char
    assert BYTES.decode([]) == ""


def test_errors_that_are_no_handler() -> None:
    for errors in (None, 5, "nonsense", "repl\0ace", "".join(["repl", "ace"])):
        for data in (b"ab", b"\xff", b""):
            wanted = outcome(lambda data=data, errors=errors: data.decode("utf-8", errors))
            assert outcome(BYTES.decode, list(data), errors)[:1] == wanted[:1]


def test_not_made_by_its_own_init() -> None:
    bare = streamtok.Encoding.__new__(streamtok.Encoding)
    calls = [(bare.decode, [1]), (bare.decode_bytes, [1])]
    calls += [(call, "a") for call in (bare.encode, bare.encode_ordinary, bare.count)]
    for method, argument in calls:
        with pytest.raises(ValueError, match="not made"):
            method(argument)


def test_made_once() -> None:
    specials = {"<end>": 300}
    enc = make_encoding(".", BYTES.definition.vocabulary, specials, name="once")
    with pytest.raises(ValueError, match="made already"):
        enc.__init__("twice", pat_str=".", mergeable_ranks={}, special_tokens={})  # type: ignore[misc]
    assert enc.name == "once"
    assert enc.decode([*enc.encode("ab"), 300]) == "ab<end>"
