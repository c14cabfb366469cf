"""The int objects in lists: ordinary ones, made once, to which all lists have references."""

from __future__ import annotations

import sys
import sysconfig

import pytest

import streamtok

from ..conftest import encoding_of
from ..encodings import SINGLES, make_encoding
from ..new_process import python

MANY = 1 << 15  # ids

# There, each list has its own: threads would wait for the counts of shared ones.
with_the_gil = pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="lists share no ints without the GIL"
)


def with_far_special(ranks: dict[bytes, int]) -> streamtok.Encoding:
    """An encoding with a special token whose id is far beyond those of all tokens."""
    return make_encoding(r"\w+|\W", ranks, {"<|far|>": 1_000_000})


@pytest.fixture
def far() -> streamtok.Encoding:
    return with_far_special(SINGLES)


def test_ids_are_plain_ints() -> None:
    enc = streamtok.get_encoding("cl100k_base")
    text = "All ids, from 0 to 100 000, are ints like others! " * 4000
    ids = enc.encode(text)
    assert len(ids) > MANY
    expected = enc.encode_to_numpy(text).tolist()
    assert ids == expected
    assert {type(x) for x in ids} == {int}
    assert [(x + 1, -x, x << 20, hash(x)) for x in ids[:500]] == [
        (x + 1, -x, x << 20, hash(x)) for x in expected[:500]
    ]


@pytest.mark.parametrize("size", [1, 31, 32, 33, 64, 100])
@pytest.mark.parametrize("at", [0, 1, 30, 31, 32, 63, 99])
def test_ids_that_are_not_among_them(far: streamtok.Encoding, size: int, at: int) -> None:
    far.encode("a" * MANY)
    if at >= size:
        at = size - 1
    text = "b" * at + "<|far|>" + "c" * (size - at - 1)
    expected = [98] * at + [1_000_000] + [99] * (size - at - 1)
    assert far.encode(text, allowed_special="all") == expected
    assert far.encode("<|far|>" * size, allowed_special="all") == [1_000_000] * size
    assert far.encode_batch([text] * 3, allowed_special="all") == [expected] * 3


@with_the_gil
def test_lists_give_their_references_back() -> None:
    enc = encoding_of("cl100k_base")
    text = "words and other words, 123 456. " * 2000
    enc.encode(text)
    rare = next(id for id in enc.encode(text) if id > 2048)  # smaller ones may be immortal
    before = sys.getrefcount(rare)
    kept = [enc.encode(text) for _ in range(3)] + enc.encode_batch([text] * 3, num_threads=2)
    assert sys.getrefcount(rare) == before + sum(ids.count(rare) for ids in kept)
    kept.clear()
    assert sys.getrefcount(rare) == before


def test_they_stay_when_a_larger_vocabulary_makes_room() -> None:
    """Those of a list are those of the next one, of any vocabulary."""
    python("""
        import operator, sysconfig
        import streamtok

        characters = [chr(c) for c in (*range(0x3400, 0x4DB0), *range(0x20000, 0x2A000))]
        ranks = {bytes([i]): i for i in range(256)} | {
            character.encode(): 256 + i for i, character in enumerate(characters)
        }
        enc = streamtok.Encoding("each", pat_str="(?s:.)", mergeable_ranks=ranks, special_tokens={})
        text = "".join(characters)
        some, whole = enc.encode(text[::100]), enc.encode(text)
        known = enc.encode_batch([text] * 3)
        for name in ("r50k_base", "o200k_base"):
            streamtok.get_encoding(name).encode("one more vocabulary. " * 1000)
            assert whole == enc.encode_to_numpy(text).tolist() == [*range(256, len(ranks))]
            assert known == [whole] * 3
            assert enc.decode(whole) == text
            for ids in (whole[::100], enc.encode_batch([text] * 3, num_threads=2)[1][::100]):
                assert ids == some
                shared = all(map(operator.is_, ids, some))
                assert shared or sysconfig.get_config_var("Py_GIL_DISABLED")
    """)


def test_without_memory_for_one_of_them() -> None:
    """The ones that were made are freed, and the next list makes them again."""
    pytest.importorskip("_testcapi", reason="this Python comes without its own test helpers")
    python("""
        import _testcapi, streamtok
        enc = streamtok.get_encoding("r50k_base")
        text = "the ints of one list, 0 1 2 3 and so on: " * 3000
        expected = enc.encode_to_numpy(text).tolist()
        refused = 0
        for after in range(24):
            _testcapi.set_nomemory(after, 0)
            try:
                found = enc.encode(text)
            except MemoryError:
                refused += 1
                found = expected
            finally:
                _testcapi.remove_mem_hooks()
            assert found == expected
        assert refused >= 5, refused
        assert enc.encode(text) == expected
    """)
