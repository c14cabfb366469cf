"""Tests of streamtok.cli.measure, and of the benchmark code that defines the figures."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import streamtok
from streamtok.cli import measure as bench

sys.path.append(str(Path(__file__).resolve().parents[2]))  # last: an installed streamtok goes first
from benchmarks import assets, big_file, corpus, peers

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
    assert (row.extra_tokens, row.wrong_tokens, row.broken_chunks) == (0, 0, 0)
    assert row.ops == -(-len(TEXT) // size)  # the flush is none
    assert row.ns_per_op > 0
    assert row.mb_per_s == pytest.approx(len(TEXT) / (row.ns_per_op * row.ops) * 1e3)


@pytest.mark.parametrize("size", [7, 64])
def test_naive_is_counted_right(rows, encoding, size):
    row = rows["naive", size]
    chunks, ids = naive_ids(encoding, size)
    tokens = sum(map(len, ids))
    assert row.tokens == tokens
    assert row.extra_tokens == tokens - len(encoding.encode(TEXT)) > 0
    broken = sum(encoding.decode_bytes(x) != chunk for x, chunk in zip(ids, chunks, strict=True))
    assert row.broken_chunks == broken > 0
    assert row.cuts == len(chunks) - 1
    assert 0 < row.cuts_inside_tokens <= row.cuts
    assert max(0, row.extra_tokens) < row.wrong_tokens < tokens


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


def test_offline_is_right_and_allocations_are_seen(rows, encoding):
    row = rows["offline", len(TEXT)]
    assert (row.ops, row.extra_tokens, row.wrong_tokens, row.broken_chunks) == (1, 0, 0, 0)
    assert row.bytes_per_op >= 8 * row.tokens  # a list of that many pointers
    assert row.allocs_per_op >= 1


def test_tiktoken_is_measured_too(rows):
    assert rows["tiktoken offline", len(TEXT)].tokens == rows["offline", len(TEXT)].tokens
    assert rows["tiktoken naive", 7].wrong_tokens == rows["naive", 7].wrong_tokens


def test_nothing_is_timed_when_ids_differ(encoding, monkeypatch):
    monkeypatch.setattr(bench, "_time", lambda *_: pytest.fail("timed"))
    offline = bench.Offline(TEXT, encoding)
    monkeypatch.setattr(bench, "Offline", lambda *_: offline)
    offline.ids = offline.ids[:-1]
    with pytest.raises(ValueError, match="differ"):
        bench.measure(TEXT, encoding, (64,))


@pytest.mark.parametrize(("data", "sizes"), [(b"", (64,)), (b"a", (0,))])
def test_bad_arguments(encoding, data, sizes):
    with pytest.raises(ValueError, match="must not be empty"):
        bench.measure(data, encoding, sizes)


def test_not_utf8(encoding):
    with pytest.raises(UnicodeDecodeError):
        bench.measure(b"a\xff", encoding)


@pytest.mark.parametrize("markdown", [False, True])
def test_main(tmp_path, capsys, markdown):
    path = tmp_path / "text"
    path.write_bytes(b"\xff" + TEXT)
    assert bench.main(str(path), "r50k_base", [256], markdown) == 0
    out = capsys.readouterr().out
    assert "U+FFFD" in out
    assert "incremental" in out
    assert ("| --- |" in out.replace("  ", "")) == markdown


# benchmarks/


def test_halves_are_all_of_the_text():
    data = corpus.load("logs", 400_000)
    first, second = corpus.halves(data)
    assert len(first) + len(second) == len(data)
    assert abs(len(first) - len(second)) < 70_000
    assert data.startswith(first[:1000])


def test_corpus_without_files(monkeypatch, tmp_path):
    monkeypatch.setenv("STREAMTOK_CORPUS", str(tmp_path))
    assert corpus.folder() is None
    for name in ("logs", "json", "multilingual"):
        data = corpus._GENERATORS[name]()
        assert data == corpus._GENERATORS[name]()
        assert len(data) > 500_000
        data.decode()


def test_slices_do_not_overlap():
    texts = corpus.slices("".join(map(chr, range(0x100, 0x1100))).encode(), 10, 100)
    assert len(texts) == 100
    assert len(set("".join(texts))) == 1000


def test_tokenizer_json_has_every_merge(encoding):
    merges = json.loads(assets._tokenizer_json(encoding, "x"))["model"]["merges"]
    assert len(merges) >= len(encoding._vocabulary) - 256
    assert merges[0] == ["Ġ", "Ġ"]


def test_part_of_a_corpus_is_from_all_of_it():
    data, part = corpus.load("logs"), corpus.load("logs", 200_000)
    assert 100_000 < len(part) <= 220_000
    lines = data.splitlines()
    places = [lines.index(line) / len(lines) for line in part.splitlines()[::100]]
    assert min(places) < 0.1
    assert max(places) > 0.9
    assert set(part.splitlines()) <= set(lines)


def test_prompts_and_log_lines():
    prompts = corpus.prompts(200, 50, 300_000)
    assert len(prompts) == 50
    assert all(150 < len(text.encode()) <= 200 for text in prompts)
    lines = corpus.log_lines(20)
    assert len(set(lines)) == 20
    assert all(90 <= len(line.encode()) <= 110 and line.endswith("\n") for line in lines)


def test_hard_and_endless_texts_differ():
    first, second = (corpus.hard_pretokens(3000, seed) for seed in (20, 21))
    assert [name for name in first if first[name] == second[name]] == []
    words = [set(corpus.endless_words(10_000, seed).split()) for seed in (0, 1)]
    assert len(words[0] & words[1]) < 0.3 * len(words[0])


def test_as_array():
    for ids in ([1, 2], np.array([1, 2]), b"\1\0\0\0\2\0\0\0"):
        assert peers.as_array(ids).tolist() == [1, 2]
        assert peers.as_array(ids).dtype == np.uint32
    parts = [np.array([1], np.uint32), np.array([], np.uint32), np.array([2], np.uint32)]
    assert peers.as_array(parts).tolist() == [1, 2]


def test_modes_of_streamtok(encoding, tmp_path):
    peer = peers.Streamtok("cl100k_base", tmp_path)
    text = TEXT.decode() * 50
    for name in peer.modes:
        found = peer.mode(name)(peer.prepare(name, text))
        found = found if name == "count" else peers.as_array(found).tolist()
        assert found == (encoding.count(text) if name == "count" else encoding.encode(text))
    assert len(peer.prepare("stream, 4 KiB", text)) == -(-len(text.encode()) // 4096)


@pytest.mark.parametrize(("text", "size"), [("1GB", 10**9), ("1.5 mb", 1_500_000), ("7", 7)])
def test_parse_size(text, size):
    assert big_file.parse_size(text) == size


def test_big_file_is_checked(tmp_path, encoding):
    path, out = tmp_path / "text", tmp_path / "ids"
    path.write_bytes(TEXT)
    ids = encoding.encode_to_numpy(TEXT)
    out.write_bytes(ids.astype("<u4").tobytes())
    assert big_file.is_round_trip(path, out, "cl100k_base")
    out.write_bytes(ids[:-1].astype("<u4").tobytes())
    assert not big_file.is_round_trip(path, out, "cl100k_base")
