"""Tests of streamtok.cli.measure."""

import pytest

import streamtok
from streamtok.cli import measure as bench
from streamtok.cli.main import main

TEXT = ("Streaming tokenizers, 12345 words… naïve café: 東京 и Москва 🎉\n" * 40).encode()


@pytest.fixture(scope="module")
def encoding():
    return streamtok.get_encoding("cl100k_base")


@pytest.fixture(scope="module")
def rows(encoding):
    return {(r.way, r.chunk_size): r for r in bench.measure(TEXT, encoding, (7, 64), rounds=1)}


def naive_ids(encoding, size):
    chunks = [TEXT[start : start + size] for start in range(0, len(TEXT), size)]
    return chunks, [encoding.encode(chunk.decode("utf-8", "replace")) for chunk in chunks]


@pytest.mark.parametrize("size", [7, 64])
def test_incremental_is_exact(rows, encoding, size):
    row = rows["incremental", size]
    assert row.tokens == len(encoding.encode(TEXT))
    assert (row.wrong_tokens, row.broken_chunks) == (0, 0)
    assert row.chunks == -(-len(TEXT) // size)  # the flush is none
    assert row.us_per_chunk > 0
    assert row.mb_per_s == pytest.approx(len(TEXT) / (row.us_per_chunk * row.chunks))


@pytest.mark.parametrize("size", [7, 64])
def test_naive_is_counted_right(rows, encoding, size):
    row = rows["naive", size]
    chunks, ids = naive_ids(encoding, size)
    tokens = sum(map(len, ids))
    assert row.tokens == tokens > len(encoding.encode(TEXT))
    broken = sum(encoding.decode_bytes(x) != chunk for x, chunk in zip(ids, chunks, strict=True))
    assert row.broken_chunks == broken > 0
    assert row.cuts == len(chunks) - 1
    assert 0 < row.cuts_inside_tokens <= row.cuts
    assert tokens - len(encoding.encode(TEXT)) < row.wrong_tokens < tokens


def test_cuts_inside_tokens(encoding):
    data = b"hello world"  # two tokens, of 5 and 6 bytes
    rows = {(r.way, r.chunk_size): r for r in bench.measure(data, encoding, (5, 4), rounds=1)}
    assert rows["naive", 5].cuts_inside_tokens == 1  # 5 is a boundary, 10 is none
    assert rows["naive", 4].cuts_inside_tokens == 2
    assert rows["naive", 5].wrong_tokens == rows["naive", 5].tokens - 1  # "hello" is right


def test_tokens_after_a_cut_character_are_found(encoding):
    data = "abc é is a letter".encode()  # abc| é| is| a| letter
    rows = {r.way: r for r in bench.measure(data, encoding, (5,), rounds=1)}
    row = rows["naive"]
    assert row.broken_chunks == 2
    # "abc" stands at 0, and " is" at 6, although 3 bytes stand for 1 before it.
    assert row.wrong_tokens == row.tokens - 2


def test_offline_is_right(rows):
    row = rows["offline", len(TEXT)]
    assert (row.chunks, row.wrong_tokens, row.broken_chunks) == (1, 0, 0)


def test_nothing_is_timed_when_ids_differ(encoding, monkeypatch):
    monkeypatch.setattr(bench, "_time", lambda *_: pytest.fail("timed"))
    other = streamtok.get_encoding("gpt2")
    monkeypatch.setattr(
        bench, "_ways", lambda *_: [bench._Way("offline", len(TEXT), lambda: other.encode)]
    )
    with pytest.raises(ValueError, match="differ"):
        bench.measure(TEXT, encoding, (64,))


@pytest.mark.parametrize(("data", "sizes"), [(b"", (64,)), (b"a", (0,))])
def test_bad_arguments(encoding, data, sizes):
    with pytest.raises(ValueError, match="must not be empty"):
        bench.measure(data, encoding, sizes)


def test_not_utf8(encoding):
    with pytest.raises(UnicodeDecodeError):
        bench.measure(b"a\xff", encoding)


def test_main(tmp_path, capsys):
    path = tmp_path / "text"
    path.write_bytes(b"\xff" + TEXT)
    assert main(["bench", str(path), "-e", "r50k_base", "--chunk-sizes", "256"]) == 0
    out = capsys.readouterr().out
    assert "U+FFFD" in out
    assert "incremental" in out
    table, columns, _ = out.partition("\nway ")
    assert columns
    assert max(map(len, table.splitlines()[1:])) <= 80
