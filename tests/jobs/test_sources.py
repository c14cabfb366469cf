"""Every source yields its whole text at every cut, and names errors with their place."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import io
import json
import lzma
import random
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtok
from streamtok.errors import ArchiveError, DocumentError
from streamtok.jobs.argument_types import parse_delimiter
from streamtok.jobs.sources.compression import unpack
from streamtok.jobs.sources.json_lines import JsonLines
from streamtok.jobs.sources.splitters import (
    Delimited,
    Documents,
    Part,
    Splitter,
    Start,
    Whole,
    together,
)

from ..conftest import chunked
from ..long.crash import make_text

TEXT = make_text(random.Random(5), 300_000).encode()
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}


# Compression


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
def test_packed_is_unpacked(kind, size):
    text = TEXT if size > 7 else TEXT[:2000]
    assert b"".join(unpack(iter(chunked(PACK[kind](text), size)), "x")) == text


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("size", [3, 1 << 16])
def test_members_in_a_row_are_one_text(kind, size):
    pack = PACK[kind]
    data = pack(b"one ") + pack(b"") + b"\0" * 8 + pack(TEXT[:5000]) + b"\0" * 4
    assert b"".join(unpack(iter(chunked(data, size)), "x")) == b"one " + TEXT[:5000]


@pytest.mark.parametrize("kind", PACK)
def test_what_is_cut_off_is_never_taken_for_whole(kind):
    data = PACK[kind](TEXT[:3000])
    for end in range(11, len(data)):
        with pytest.raises(
            ArchiveError, match=rf"x: the {kind} data is incomplete: it ends at byte {end}"
        ):
            list(unpack(iter(chunked(data[:end], 64)), "x"))


@pytest.mark.parametrize("kind", PACK)
def test_damage_is_named(kind):
    data = bytearray(PACK[kind](TEXT))
    data[len(data) // 2] ^= 0xFF
    with pytest.raises(ArchiveError, match=rf"x: damaged {kind} data near byte \d+"):
        list(unpack(iter(chunked(bytes(data), 1000)), "x"))


@pytest.mark.parametrize("kind", PACK)
def test_what_follows_a_member_must_be_one(kind):
    data = PACK[kind](b"one")
    with pytest.raises(ArchiveError, match=rf"byte {len(data)}: expected {kind} data or the end"):
        list(unpack(iter([data + b"and some text"]), "x"))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"B",
        b"BZ",
        b"BZh",
        b"BZh9 is a text",
        b"\x1f\x8b",
        b"\xfd7zX",
        b"(\xb5",
        b"plain",
        b"P",
        b"P*M",
        b"Z*",
        b"P*Mx is a text",
        b"_*",
    ],
)
def test_what_only_begins_like_packed_is_text(text):
    for size in (1, 100):
        assert b"".join(unpack(iter(chunked(text, size)), "x")) == text


def test_no_more_is_read_than_is_needed_to_tell():
    def live():
        yield b"h"
        raise AssertionError("the next block may never come")

    assert next(unpack(live(), "x")) == b"h"


@pytest.mark.parametrize("kind", PACK)
def test_a_bomb_is_unpacked_bit_by_bit(kind):
    data = PACK[kind](bytes(30_000_000))
    sizes = [len(block) for block in unpack(iter(chunked(data, 1 << 16)), "x")]
    assert sum(sizes) == 30_000_000
    assert max(sizes) < 9_000_000


# Documents


def one_by_one(parts: list[Part]) -> list[tuple[str | bytes, bool]]:
    """The parts, with each of many documents by itself."""
    found: list[tuple[str | bytes, bool]] = []
    for part in parts:
        if isinstance(part, Documents):
            texts = part.texts()
            assert part.number == len(texts) > 0
            found += [(text, True) for text in texts]
        else:
            found.append(part)
    return found


def documents_of(splitter: Splitter, blocks: Iterator[bytes]) -> list[bytes | str]:
    """The documents put together again; `consumed` is checked on the way."""
    found: list[bytes | str] = []
    open_: Any = None
    total = 0
    for block in blocks:
        total += len(block)
        for text, is_end in one_by_one(splitter.split(block)):
            open_ = text if open_ is None else open_ + text
            if is_end:
                found.append(open_)
                open_ = None
        assert splitter.consumed <= total
    for text, is_end in one_by_one(splitter.finish()):
        open_ = text if open_ is None else open_ + text
        assert is_end
        found.append(open_)
        open_ = None
    assert open_ is None
    assert splitter.consumed == total
    return found


@given(
    data=st.binary(max_size=40).map(lambda b: bytes(b"ab-\n"[x % 4] for x in b)),
    delimiter=st.sampled_from([b"\n", b"--", b"ab", b"aab", b"-\n-", b"abab", b"\n\n"]),
    size=st.integers(1, 9),
)
def test_delimited_is_split(data, delimiter, size):
    expected = data.split(delimiter)
    if not expected[-1]:
        expected.pop()
    splitter = Delimited(delimiter)
    assert documents_of(splitter, chunked(data, size)) == expected
    assert splitter.records == len(expected)


@given(data=st.binary(max_size=30).map(lambda b: bytes(b"ab-\n"[x % 4] for x in b)), at=st.data())
def test_a_new_splitter_goes_on(data, at):
    place = at.draw(st.integers(0, len(data)))
    first = Delimited(b"ab-")
    parts = one_by_one(first.split(data[:place]))
    is_open = bool(parts and not parts[-1][1])
    second = Delimited(b"ab-", Start(first.consumed, first.records, first.crc, is_open))
    parts += one_by_one(second.split(data[first.consumed :]) + second.finish())
    whole = Delimited(b"ab-")
    expected = documents_of(whole, iter([data]))
    found = b"".join(b"%s%s" % (text, b"|" if end else b"") for text, end in parts)
    assert found.split(b"|")[:-1] == expected
    assert (second.consumed, second.records, second.crc) == (
        whole.consumed, whole.records, whole.crc
    )  # fmt: skip


def test_whole_is_one_document_even_when_empty():
    assert documents_of(Whole(), iter([b"a", b"b"])) == [b"ab"]
    assert Whole().finish() == [(b"", True)]


def as_text(found: list[bytes | str]) -> list[str]:
    """Documents that were str before they were put together."""
    return [one.decode() if isinstance(one, bytes) else one for one in found]


def test_texts_together():
    for texts in (["a", "", "é\U0001f389\n"], ["", ""], ["x" * 1000] * 1000):
        (part,) = together(texts)
        assert isinstance(part, Documents)
        assert [one.decode() for one in part.texts()] == texts
        assert part.number == len(texts)
    lone = [
        [], ["one"], ["a\0b", "c"], ["\0", ""], [b"\xff", b""], ["a", b"b"],
        ["x" * 600_000] * 2,
    ]  # fmt: skip
    for texts in lone:
        assert together(texts) == [(text, True) for text in texts]


@settings(max_examples=50)
@given(texts=st.lists(st.text(max_size=20), max_size=8), size=st.integers(1, 200))
def test_json_lines(texts, size):
    rows = [json.dumps({"id": 1, "a": {"b": [text]}}) for text in texts]
    data = "\r\n".join(rows).encode() + b"\n \n\n"
    assert as_text(documents_of(JsonLines("a.b.0", "x"), chunked(data, size))) == texts
    utf8 = "\n".join(json.dumps({"t.x": text}, ensure_ascii=False) for text in texts)
    data = b"\xef\xbb\xbf" + utf8.encode("utf-8", "replace")
    found = documents_of(JsonLines("t.x", "x"), chunked(data, size))
    assert as_text(found) == [text.encode("utf-8", "replace").decode() for text in texts]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text": "a"', "invalid JSON: Expecting ',' delimiter at character 12"),
        (b'{"other": "a"}', "no field 'text'"),
        (b'{"text": null}', "the field 'text' holds null"),
        (b'{"text": 3}', "holds a number"),
        (b'{"text": [true]}', "holds a list"),
        (b'["text"]', "no field 'text'"),
        (b'{"text": "\xff"}', "not UTF-8: byte 10"),
        (b'{"text": "a\tb"}', "invalid JSON: Invalid control character at character 11"),
        (b'{"text": "a', "invalid JSON: Unterminated string starting at character 9"),
        (b'{"text": "\\x"}', r"invalid JSON: Invalid \\escape at character 10"),
        (b'\xef\xbb\xbf{"text": "a"}', "invalid JSON: unexpected byte order mark at character 0"),
        (b"[" * 100_000, "nested too deeply|no JSON"),
    ],
)
def test_a_bad_line_is_named_or_counted(line, message):
    data = b'{"text": "one"}\n' + line + b'\n{"text": "two"}\n'
    with pytest.raises(DocumentError, match=rf"^rows line 2: .*({message})"):
        documents_of(JsonLines("text", "rows"), iter([data]))
    bad = []
    splitter = JsonLines("text", "rows", on_bad=bad.append)
    assert as_text(documents_of(splitter, chunked(data, 5))) == ["one", "two"]
    assert [one.position for one in bad] == [{"offset": 16}]
    assert re.search(message, bad[0].reason)
    assert splitter.records == 3


ODD_LINES = [
    '{"t": "a"}', ' {"t": "b"}', '{"t": "c"} \t\r', '{"t": "d"} x', '{"t": "e"}\x0b',
    '{"t": "f"}\xa0',
    '{"t": NaN, "u": "g"}', r'{"t": "\ud800"}', '{"t": "h", "t": "i"}', '{"t.u": "j", "t": "J"}',
    '{"t": {"u": "k"}}', '{"t": 1}', '{"t": null}', '["l"]', '"t"', "", " ", "\xa0",
    "\ufeff", "{", "{}", '{"n": 1e999, "t": "o"}',
    '\ufeff{"t": "m"}', '{"t": "n\x00"}', r'{"t": "n\u0000"}', '{"t": "tab\t"}',
    '{"t": "p", "n": ' + "9" * 5000 + "}", '{"t": ' * 3000, '{"n": ' * 3000 + "1" + "}" * 3000,
    '{"t": ["q", "r"]}', '{"t": "\u2028\x85 s"}', '{"t": "\U0001f389"}',
]  # fmt: skip


@settings(max_examples=200)
@given(
    lines=st.lists(st.sampled_from(ODD_LINES), max_size=12),
    field=st.sampled_from(["t", "t.u", "t.1", "u"]),
    size=st.sampled_from([7, 100, 10_000]),
)
def test_json_lines_fast_and_slow(lines, field, size):
    """What is read without looking twice is what is read line by line, errors and counts too."""

    class Slow(JsonLines):
        def _add_fast(self, texts, lines):
            for line in lines.split("\n"):
                self._add(texts, line.encode())

    data = "\n".join(lines).encode()
    for skips in (False, True):
        found = []
        for kind in (JsonLines, Slow):
            bad = []
            splitter = kind(field, "rows", on_bad=bad.append if skips else None)
            try:
                texts = as_text(documents_of(splitter, chunked(data, size)))
            except DocumentError as error:
                texts = str(error)
            skipped = [(one.position, one.reason) for one in bad]
            found.append((texts, splitter.records, skipped, splitter.consumed))
        assert found[0] == found[1]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (r"\n", b"\n"),
        (r"\r\n\t\0\\", b"\r\n\t\0\\"),
        (r"--\x1e\xff", b"--\x1e\xff"),
        ("<|end|>", b"<|end|>"),
        ("é", "é".encode()),
    ],
)
def test_delimiters_with_escapes(typed, meant):
    assert parse_delimiter(typed) == meant


@pytest.mark.parametrize("typed", ["\\", r"\q", r"\x", r"\x1", r"\xgg", r"\x 1"])
def test_unknown_escapes(typed):
    with pytest.raises(ArgumentTypeError, match=r"escape|hexadecimal"):
        parse_delimiter(typed)


# Python objects


class Live(io.RawIOBase):
    """A raw file that gives a few bytes at a time."""

    def __init__(self, data: bytes):
        self._file = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._file.readinto(memoryview(buffer)[:1000])


@pytest.mark.parametrize(
    "make",
    [
        lambda: io.BytesIO(TEXT),
        lambda: io.BufferedReader(Live(TEXT)),
        lambda: Live(TEXT),
        lambda: io.StringIO(TEXT.decode(), newline=""),
        lambda: gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(TEXT))),
        lambda: iter(chunked(TEXT, 777)),
        lambda: [TEXT.decode()],
    ],
    ids=["BytesIO", "BufferedReader", "RawIOBase", "StringIO", "gzip", "iterator", "list"],
)
def test_iterencode_takes_what_gives_text(make):
    enc = streamtok.get_encoding("cl100k_base")
    whole = enc.encode(TEXT)
    assert [one for ids in enc.iterencode(make()) for one in ids] == whole

    async def collect():
        return [one async for ids in enc.aiterencode(make()) for one in ids]

    assert asyncio.run(collect()) == whole


def test_aiterencode_takes_stream_readers_and_async_iterators():
    enc = streamtok.get_encoding("cl100k_base")

    async def main():
        reader = asyncio.StreamReader(limit=1000)  # a line of this text is longer

        async def feed():
            for chunk in chunked(TEXT, 5000):
                reader.feed_data(chunk)
                await asyncio.sleep(0)
            reader.feed_eof()

        async def chunks():
            for chunk in chunked(TEXT, 5000):
                yield chunk

        feeder = asyncio.create_task(feed())
        read = [one async for ids in enc.aiterencode(reader) for one in ids]
        await feeder
        assert read == enc.encode(TEXT)
        assert [one async for ids in enc.aiterencode(chunks()) for one in ids] == read

    asyncio.run(main())
