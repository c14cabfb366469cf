"""Counting takes no memory for the ids, even where the whole text is one pre-token."""

from __future__ import annotations

import sys

import pytest

from ..encodings import SINGLES, make_encoding
from ..new_process import python

TIGHT = """
import random, resource, sys
import streamtok
enc = streamtok.get_encoding("gpt2")
size, room = int(sys.argv[3]), 12_000_000
kind, is_text = sys.argv[1], sys.argv[2] == "str"
if kind == "letters":
    letters = bytes(97 + i % 26 for i in range(256))
    data = random.Random(1).randbytes(size).translate(letters)
else:
    data = {"a": b"a" * size, "blanks": b"\\n" + b" " * size}[kind]
if is_text:
    data = data.decode()
stream = enc.stream_encoder()
for at in range(0, len(data), 1 << 20):
    stream.encode_to_numpy(data[at : at + (1 << 20)])
n = stream.tokens_out + len(stream.flush())
enc.count("some words " * 1000)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + room, -1))
assert enc.count(data) == n
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and limits of address space")
@pytest.mark.parametrize(
    ("kind", "type_", "size"),
    [
        ("a", "bytes", 40_000_000),
        ("letters", "str", 20_000_000),
        ("blanks", "str", 20_000_000),
    ],
)
def test_an_endless_pretoken_is_counted_in_little_memory(kind: str, type_: str, size: int) -> None:
    assert python(TIGHT, kind, type_, size, timeout=120) == "done\n"


DOUBLED = {b"a" * 2**i: 255 + i for i in range(1, 16)}  # half as long as what is counted at a time
PAIRS = {a + b: 256 + i for i, (a, b) in enumerate([(b"a", b"b"), (b"b", b"a"), (b"ab", b"ab")])}


@pytest.mark.parametrize("ranks", [DOUBLED, PAIRS], ids=["doubled", "pairs"])
@pytest.mark.parametrize("unit", [b"a", b"ab", b"aab", b"a" * 70_000 + b"b", b"abaabb"])
@pytest.mark.parametrize("size", [(1 << 16) + 1, 200_000, 1_000_001])
def test_a_count_is_the_number_of_ids(ranks: dict[bytes, int], unit: bytes, size: int) -> None:
    enc = make_encoding(r"[\s\S]+", SINGLES | ranks, {"<s>": 999})
    data = (unit * (size // len(unit) + 1))[:size]
    n = len(enc.encode_to_numpy(data))
    assert enc.count(data) == n
    assert enc.count(bytearray(data + b"<s>" + data), allowed_special="all") == 2 * n + 1
    # What a count leaves behind is no setting of the next call.
    assert len(enc.encode(data)) == n
    with pytest.raises(UnicodeDecodeError) as error:
        enc.count(data + b"\xff")
    assert error.value.start == size
    with pytest.raises(ValueError, match="disallowed special token '<s>'"):
        enc.count(data + b"<s>", disallowed_special="all")
    assert len(enc.encode(data)) == n
