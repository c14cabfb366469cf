"""Vocabulary: rank tables, invalid tables, both file forms, and the three bundled vocabularies."""

from __future__ import annotations

import hashlib
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamtok import errors
from streamtok._core.encode import TokenTable
from streamtok.errors import VocabularyError
from streamtok.vocabulary import bundled
from streamtok.vocabulary.bundled import (
    BUNDLED_NAMES,
    load_bundled,
    load_p50k,
    loads_bundled,
)
from streamtok.vocabulary.ranks_file import (
    dumps_tiktoken,
    loads_tiktoken,
)
from streamtok.vocabulary.table import Vocabulary

from ..doc_blocks import load_tool
from ..encodings import SINGLES

dumps_bundled = load_tool("pack_vocabularies").dumps_bundled

# name: the published SHA-256 of OpenAI's .tiktoken file, and its number of lines
PUBLISHED = {
    "r50k_base": ("306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930", 50256),
    "cl100k_base": ("223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", 100256),
    "p50k_base": ("94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069", 50280),
    "o200k_base": ("446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d", 199998),
}
SMALL = {**SINGLES, b"ab": 256, b"abc": 257, "é".encode(): 258}


# From and to rank tables


@given(
    tokens=st.lists(st.binary(min_size=2, max_size=255), max_size=20, unique=True),
    shift=st.integers(0, 2**32 - 2 - 300),
)
def test_round_trips(tokens: list[bytes], shift: int) -> None:
    ranks = {token: rank for rank, token in enumerate([*SINGLES, *tokens])}
    table = Vocabulary.from_ranks(ranks)
    assert table.to_ranks() == ranks
    assert loads_tiktoken(dumps_tiktoken(table)) == table
    assert loads_bundled(dumps_bundled(table)) == table
    shifted = Vocabulary.from_ranks({token: rank + shift for token, rank in ranks.items()})
    assert shifted.to_ranks() == {token: rank + shift for token, rank in ranks.items()}
    assert loads_tiktoken(dumps_tiktoken(shifted)) == shifted
    assert (shifted == table) is (shift == 0)
    for array in (table.ids, table.offsets):
        assert array.dtype == np.uint32
        assert array.flags.c_contiguous
    extremes = {**SINGLES, b"x" * 65535: np.int64(256), b"ab": 2**32 - 2}
    assert Vocabulary.from_ranks(extremes).to_ranks() == extremes


@pytest.mark.parametrize(
    ("ranks", "error", "message"),
    [
        ({**SINGLES, b"x" * 65536: 256}, ValueError, r"id 256 has 65536 bytes: it must have 1 …"),
        ({**SINGLES, b"": 256}, ValueError, r"the token of id 256 has 0 bytes"),
        ({**SINGLES, b"ab": 255}, ValueError, r"rank 255 is given twice: to b'ab' and to b'\\xff'"),
        ({**SINGLES, b"ab": -1}, ValueError, r"the rank of b'ab' is -1: it must be in 0 …"),
        ({**SINGLES, b"ab": 2**32 - 1}, ValueError, r"the rank of b'ab' is 4294967295: it must"),
        ({**SINGLES, b"ab": 2**70}, ValueError, r"the rank of b'ab' is \d+: it must be in"),
        *(
            ({**SINGLES, token: 256}, TypeError, "a token must be bytes, not")
            for token in ("ab", 5, None, (97, 98))
        ),
        *(
            ({**SINGLES, b"ab": rank}, TypeError, "the rank of b'ab' must be an int, not")
            for rank in ("256", 256.0, None, b"1")
        ),
        (
            {token: rank for token, rank in SMALL.items() if token not in (b"\n", b"a")},
            ValueError,
            r"^2 of the 256 .* not in the vocabulary: 0x0a, 0x61$",
        ),
        ({}, ValueError, r"^256 of the 256 .*: 0x00, 0x01, .*, 0x07, …$"),
    ],
)
def test_ranks_that_are_refused(ranks: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        Vocabulary.from_ranks(ranks)
    assert error is TypeError or isinstance(caught.value, VocabularyError)


# The object


def test_arrays_that_do_not_fit_are_refused() -> None:
    good = Vocabulary.from_ranks(SMALL)
    tokens, offsets, ids = good.tokens, good.offsets, good.ids
    assert Vocabulary(tokens, offsets, ids) == good
    falling, repeated = offsets.copy(), ids.copy()
    falling[5] = 2**31
    repeated[5] = repeated[4]
    empty = np.zeros(0, np.uint32)
    for bad in [
        (tokens[:-1], offsets, ids),
        (tokens, offsets[:-1], ids),
        (tokens, offsets + np.uint32(1), ids),
        (tokens, falling, ids),
        (tokens, offsets, repeated),
        (tokens, offsets, ids + np.uint32(2**32 - 1 - 258)),
        (tokens, empty, empty),
        (b"", np.zeros(1, np.uint32), empty),
    ]:
        with pytest.raises(VocabularyError):
            Vocabulary(*bad)
    wrong_types: list[Any] = [
        (bytearray(tokens), offsets, ids),
        (tokens, offsets.astype(np.int64), ids),
        (tokens, offsets, ids.reshape(1, -1)),
    ]
    for wrong in wrong_types:
        with pytest.raises(TypeError):
            Vocabulary(*wrong)


def test_immutable() -> None:
    table = Vocabulary.from_ranks(SMALL)
    before = table.digest
    with pytest.raises(AttributeError, match="immutable"):
        table.tokens = b""
    with pytest.raises(AttributeError, match="immutable"):
        del table.ids
    with pytest.raises(AttributeError, match="immutable"):
        table.other = 1
    for array in (table.ids, table.offsets):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    given = table.ids.copy()
    copied = Vocabulary(table.tokens, table.offsets, given)
    given[0] = 99
    assert copied == table
    assert table.digest == before


def test_equality_hash_and_digest() -> None:
    table, same = Vocabulary.from_ranks(SMALL), Vocabulary.from_ranks(SMALL)
    renumbered = Vocabulary.from_ranks({**SMALL, "é".encode(): 300})
    recut = Vocabulary.from_ranks({**SINGLES, b"a" * 2: 256, b"a" * 3: 257})
    recut_too = Vocabulary.from_ranks({**SINGLES, b"a" * 3: 256, b"a" * 2: 257})
    assert recut.tokens == recut_too.tokens
    assert table == same
    assert hash(table) == hash(same)
    assert table.digest == same.digest
    assert len({table.digest, renumbered.digest, recut.digest, recut_too.digest}) == 4
    assert len({table, same, renumbered, recut, recut_too}) == 4
    assert table != SMALL
    # Saved streams contain it, so it must never change.
    assert table.digest == "14a7a26d0e4e8f89c4bd38eba196f3d5a96e0828aa664da195c2e7b6bff550f7"
    again = pickle.loads(pickle.dumps(table))
    assert (again, again.digest) == (table, table.digest)
    assert repr(again) == "<Vocabulary of 259 tokens, 263 bytes>"


# .tiktoken files


def test_tiktoken_lines_may_be_in_any_form_that_tiktoken_reads() -> None:
    data = dumps_tiktoken(Vocabulary.from_ranks(SMALL))
    assert data.endswith(b"\nYWJj 257\nw6k= 258\n")
    lines = data.splitlines()
    for same in (
        b"\n".join(lines),
        b"\r\n".join(lines),
        b"\n\n".join(reversed(lines)),
        data.replace(b" ", b"\t  "),
    ):
        assert loads_tiktoken(same) == Vocabulary.from_ranks(SMALL)


BAD_LINES = [
    b"YWI=", b"YWI= ", b"YWI= 300 1", b" 300", b"YWI 300", b"Y*WI= 300", b"YWI= x", b"YWI= 3_00",
    b"YWI= -300", b"YWI= +300", b"YWI= 3.0", b"YWI= " + b"9" * 5000, b"\xff\xfe 300", b"\0", b"   ",
    b"x" * 100,
]  # fmt: skip


@pytest.mark.parametrize("line", BAD_LINES)
def test_bad_tiktoken_line_is_named(line: bytes) -> None:
    data = dumps_tiktoken(Vocabulary.from_ranks(SINGLES)) + line + b"\nYWJj 257\n"
    with pytest.raises(VocabularyError, match=r"^bad, line 257: expected a token") as info:
        loads_tiktoken(data, "bad")
    assert len(str(info.value)) < 200


def test_contradicting_tiktoken_lines_are_named() -> None:
    sound = dumps_tiktoken(Vocabulary.from_ranks(SINGLES))
    for extra, message in [
        (b"AA== 256\n", r"^bad, line 257: the token b'\\x00' is already on line 1$"),
        (b"YWI= 7\n", "^bad, line 257: rank 7 is already on line 8$"),
        (b"YWI= 4294967295\n", "^bad: the rank of b'ab' is 4294967295"),
    ]:
        with pytest.raises(VocabularyError, match=message):
            loads_tiktoken(sound + extra, "bad")
    with pytest.raises(VocabularyError, match=r"^bad: 1 of the 256 .*: 0xff"):
        loads_tiktoken(sound[:-10], "bad")
    with pytest.raises(VocabularyError, match=r"^bad: 256 of the 256"):
        loads_tiktoken(b"", "bad")


# Bundled vocabularies


@pytest.mark.parametrize("name", PUBLISHED)
def test_bundled_data_rebuilds_the_published_file(name: str) -> None:
    published, count = PUBLISHED[name]
    table = load_p50k() if name == "p50k_base" else load_bundled(name)
    data = dumps_tiktoken(table)
    assert hashlib.sha256(data).hexdigest() == published
    assert len(table) == count
    assert loads_tiktoken(data) == Vocabulary.from_ranks(table.to_ranks()) == table


def test_package_holds_the_bundled_names_and_is_small() -> None:
    assert {*BUNDLED_NAMES, "p50k_base"} == {*PUBLISHED}
    assert sum(os.path.getsize(bundled.bundled_path(name)) for name in BUNDLED_NAMES) < 3_000_000
    with pytest.raises(VocabularyError, match=r"no bundled vocabulary is named '\.\./x'.* r50k"):
        load_bundled("../x")


def test_every_flipped_bit_and_every_truncation_is_noticed() -> None:
    data = dumps_bundled(Vocabulary.from_ranks(SMALL))
    assert loads_bundled(data, "here.vocab") == Vocabulary.from_ranks(SMALL)
    for position in range(len(data)):
        with pytest.raises(VocabularyError, match=r"^here\.vocab "):
            loads_bundled(data[:position], "here.vocab")
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            with pytest.raises(VocabularyError, match=r"^here\.vocab "):
                loads_bundled(bytes(damaged), "here.vocab")
    for wrong in (data + b"\0", data * 2, b"", b"version https://git-lfs", b"\0" * 1000):
        with pytest.raises(VocabularyError, match=r"^here\.vocab "):
            loads_bundled(wrong, "here.vocab")


def test_damaged_package_data_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = Path(bundled.bundled_path("r50k_base")).read_bytes()
    path = tmp_path / "r50k_base.vocab"
    monkeypatch.setattr(bundled, "bundled_path", lambda name: str(tmp_path / f"{name}.vocab"))
    with pytest.raises(VocabularyError, match=r"r50k_base cannot be read: .*r50k_base\.vocab"):
        load_bundled("r50k_base")
    middle = len(sound) // 2
    flipped = sound[:middle] + bytes([sound[middle] ^ 16]) + sound[middle + 1 :]
    for damaged, message in [
        (sound[:-1], f"has {len(sound) - 1} bytes instead of {len(sound)}"),
        (flipped, "checksum is wrong"),
        (sound[:20], "or is cut short"),
        (sound[:7] + b"\x01" + sound[8:], "version 1 of the bundled format: expected version 3"),
    ]:
        path.write_bytes(damaged)
        with pytest.raises(VocabularyError, match=message) as info:
            load_bundled("r50k_base")
        assert str(path) in str(info.value)


def test_what_cannot_be_bundled_is_refused() -> None:
    with pytest.raises(VocabularyError, match="can be bundled"):
        dumps_bundled(Vocabulary.from_ranks({**SINGLES, b"ab": 257}))
    table = Vocabulary.from_ranks(SMALL)
    lefts = TokenTable(table.tokens, table.offsets, table.ids).lefts()
    listed = Vocabulary(table.tokens, table.offsets, table.ids, lefts=lefts)
    with pytest.raises(VocabularyError, match="can be bundled"):
        dumps_bundled(listed)


# Exceptions


MORE = {
    "UnsupportedPatternError": {"construct": "look-behind", "position": 3},
    "PendingLimitExceeded": {"offset": 10, "pending": 20, "limit": 15},
}


@pytest.mark.parametrize("name", errors.__all__)
def test_errors_can_be_pickled(name: str) -> None:
    kind = getattr(errors, name)
    takes = (3, "<|end|>") if name == "DisallowedSpecialError" else ("text",)
    error = kind(*takes, **MORE.get(name, {}))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__
