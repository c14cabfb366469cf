"""The native reader of a tokenizer.json against Python's parser: the same tables and errors."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtok
from streamtok import VocabularyError
from streamtok._core.json_tables import TextIds, read_tables
from streamtok.formats import json_value, load_huggingface
from streamtok.formats.huggingface_models import (
    Model,
    TableModel,
    byte_level_vocabulary,
    character_vocabulary,
)
from streamtok.formats.json_value import (
    MAX_VALUES,
    Entries,
    MergeRows,
    parse_json,
    parse_tokenizer,
)
from streamtok.vocabulary.byte_alphabet import CHARACTERS, to_bytes, to_text

from ..long.loader_fuzz import damaged, sound_files
from .test_merge_lists import merge_lists

TEXTS = st.text(
    st.one_of(
        st.sampled_from('ab "\\/\n\t\x00\x7f\x80é\u07ff\u0800▁\uffff😀'),
        st.characters(codec="utf-8"),
    ),
    max_size=20,
)


def as_file(vocab: object, merges: object, **more: object) -> bytes:
    model = {"type": "BPE", "vocab": vocab, "merges": merges, **more}
    return json.dumps({"version": "1.0", "added_tokens": [], "model": model}).encode()


@settings(max_examples=150)
@given(
    texts=st.lists(TEXTS, unique=True, max_size=60),
    data=st.data(),
    is_ascii=st.booleans(),
    indent=st.sampled_from([None, 0, 3, "\t", "\r\n"]),
    vocab_first=st.booleans(),
)
def test_tables_and_rest_are_what_pythons_parser_finds(texts, data, is_ascii, indent, vocab_first):
    ids = {text: data.draw(st.integers(0, 2**32 - 2)) for text in texts}
    known = sorted(ids)
    pairs = [
        [text[:cut], text[cut:]]
        for text in known
        for cut in range(len(text) + 1)
        if text[:cut] in ids and text[cut:] in ids
    ]
    merges = [
        " ".join(pair) if " " not in pair[0] + pair[1] and data.draw(st.booleans()) else pair
        for pair in pairs
    ]
    tables = [("vocab", ids), ("merges", merges)]
    model = {"type": "BPE", **dict(tables if vocab_first else tables[::-1]), "dropout": None}
    file = {"a": [1.5, {"model": {"vocab": {}}}, '"}{'], "model": model, "z": "}]"}
    raw = json.dumps(file, ensure_ascii=is_ascii, indent=indent).encode()
    found = read_tables(raw, MAX_VALUES)
    assert found is not None
    rest, table, rows = found
    model["vocab"] = model["merges"] = None  # type: ignore[assignment]
    assert json.loads(rest) == file
    assert table.to_dict() == ids
    assert list(table.to_dict()) == list(ids)
    assert len(table) == len(ids)
    assert MergeRows(rows, table).to_list() == pairs
    for row, (text, number) in enumerate(ids.items()):
        assert table.row(text) == row
        assert table.text(row) == text
        assert table.get(text) == number
        assert rows[rows[:, 2] == row].shape[0] == sum("".join(p) == text for p in pairs)
    blob, offsets, numbers = table.arrays()
    assert [blob[a:b].decode() for a, b in itertools.pairwise(offsets)] == [*ids]
    assert numbers.tolist() == list(ids.values())
    assert table.row("not there" * 9) == -1
    assert table.get("\ud800", 7) == 7


UNUSUAL = [
    b'', b'{}', b'[]', b'null', b'{"model":', b'{"model":{}}', b'{"model":[]}',
    b'{"model":{"vocab":{}}}', b'{"model":{"vocab":{},"merges":[]}',
    b'{"model":{"vocab":{},"merges":[]}}x', b'{"model":{"vocab":{},"merges":[]}}\x00',
    b'{"model":{"vocab":{},"merges":[],"vocab":{}}}',
    b'{"model":{"vocab":{},"merges":[]},"model":{"vocab":{},"merges":[]}}',
    b'{"model":{"voc\\u0061b":{},"vocab":{},"merges":[]}}', b'{"model":{"vocab":{"\\',
    b'{"model":{"vocab":{"\\u00', b'{"model":{"vocab":{"\\ud800\\',
    b'\xef\xbb\xbf{"model":{"vocab":{},"merges":[]}}',
]  # fmt: skip
TABLES = [
    (b'{"a":1,}', b'[]'), (b'{"a":1,"a":2}', b'[]'), (b'{"a":1,"\\u0061":2}', b'[]'),
    (b'{"a":01}', b'[]'), (b'{"a":-1}', b'[]'), (b'{"a":1.0}', b'[]'), (b'{"a":1e3}', b'[]'),
    (b'{"a":4294967295}', b'[]'), (b'{"a":99999999999999999999}', b'[]'), (b'{"a":null}', b'[]'),
    (b'{"a" 1}', b'[]'), (b'{"a\n":1}', b'[]'), (b'{"\\x":1}', b'[]'), (b'{"\\ud800":1}', b'[]'),
    (b'{"\\udc00":1}', b'[]'), (b'{"\\ud800\\u0041":1}', b'[]'), (b'{"\\u00g0":1}', b'[]'),
    (b'{"\xff":1}', b'[]'), (b'{"a":1}', b'["a b"]'), (b'{"a":1}', b'["a"]'),
    (b'{"a":1,"aa":2}', b'["a a "]'), (b'{"a":1,"aa":2}', b'[["a"]]'),
    (b'{"a":1,"aa":2}', b'[["a","a","a"]]'), (b'{"a":1,"aa":2}', b'[["a","a",]]'),
    (b'{"a":1,"aa":2}', b'["a a",]'), (b'{"a":1,"aa":2}', b'["a a"'), (b'{"a":1}', b'{}'),
    (b'[]', b'[]'), (b'{"a":1}', b'[1]'),
]  # fmt: skip
UNUSUAL += [b'{"model":{"vocab":%b,"merges":%b}}' % tables for tables in TABLES]


@pytest.mark.parametrize("raw", UNUSUAL)
def test_what_is_unusual_is_left_to_pythons_parser(raw):
    assert read_tables(raw, MAX_VALUES) is None
    assert outcome(parse_tokenizer, raw) == outcome(parse_json, raw)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model":{"vocab":{"a":1},"merges":[],}}',
        b'{"x":nul,"model":{"vocab":{"a":1},"merges":[]}}',
        b'{"x":NaN,\n"model":{"vocab":{"a":1},\n"merges":[]}}',
        b'{"model":{"vocab":{"a":1},"merges":[]},\n\n"x":{"y":1,"y":2}}',
        b'{"model":{"vocab":{"a":1},"merges":[]},\n\n"x":1 2}',
        b'{"model":{"vocab":{"a":1},"merges":[]},"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_damage_in_the_rest_is_reported_at_its_place_in_the_file(raw):
    assert read_tables(raw, MAX_VALUES) is not None
    with pytest.raises(VocabularyError) as found:
        parse_tokenizer(raw, "x.json")
    with pytest.raises(VocabularyError) as expected:
        parse_json(raw, "x.json")
    assert str(found.value) == str(expected.value)


def test_a_file_of_too_many_values_is_refused():
    raw = as_file({"a": 1, ",[{": 2}, [])
    count = sum(map(raw.count, (b",", b"[", b"{")))
    assert read_tables(raw, count) is not None
    assert read_tables(raw, count - 1) is None


def test_every_cut_of_a_file_ends_well():
    raw = as_file({'\u2581a\\"': 1, "b😀\n": 22, '\u2581a\\"b😀\n': 3}, [['\u2581a\\"', "b😀\n"]])
    for cut in range(len(raw)):
        assert read_tables(raw[:cut], MAX_VALUES) is None
    assert read_tables(raw, MAX_VALUES) is not None


def outcome(call, *args, **kwargs):
    """The value, as plain objects, or the error."""
    try:
        value = call(*args, "x.json", **kwargs)
    except VocabularyError as error:
        return str(error)
    return repr(value)


@settings(max_examples=80)
@given(
    listed=merge_lists(),
    ignore_merges=st.booleans(),
    outside=st.lists(st.sampled_from(["日本", "\u2581x", "a b", "\x00"]), unique=True),
    dropped=st.integers(0, 2),
    data=st.data(),
)
def test_vocabularies_are_those_of_the_slow_way(listed, ignore_merges, outside, dropped, data):
    tokens, merges = listed
    ids = {to_text(token): number for token, number in tokens.items()}
    ids |= {text: len(tokens) + i for i, text in enumerate(outside)}
    if data.draw(st.booleans()):
        ids = dict(data.draw(st.permutations(list(ids.items()))))
    pairs = [(to_text(left), to_text(right)) for left, right in merges]
    raw = as_file(ids, [list(pair) for pair in pairs])
    found = read_tables(raw, MAX_VALUES)
    assert found is not None
    lost = data.draw(st.permutations(sorted(ids)))[:dropped]
    entries = Entries(found[1])
    used = {part for pair in pairs for part in (*pair, "".join(pair))}
    for text in lost:
        if text not in used and len(to_bytes(text) or "xx") > 1:
            del entries[text], ids[text]
    assert entries.to_dict() == ids
    assert len(entries) == len(ids)
    rows = MergeRows(found[2], found[1])
    vocabulary = byte_level_vocabulary(TableModel(entries, rows, ignore_merges, False, "x"))
    expected = byte_level_vocabulary(Model(ids, pairs, ignore_merges, False, "x"))
    assert vocabulary.is_rank_table == expected.is_rank_table
    assert vocabulary.digest == expected.digest
    # The parts that were found on the way make the same table.
    settings_of = {"pat_str": r"[\s\S]+", "special_tokens": {}}
    one = streamtok.Encoding("x", mergeable_ranks=vocabulary, **settings_of)
    other = streamtok.Encoding("x", mergeable_ranks=expected, **settings_of)
    assert (one._table.lefts() == other._table.lefts()).all()
    assert one._table.longest_unreachable == other._table.longest_unreachable


@st.composite
def character_models(draw):
    """Texts with ids, pairs of them that merge, with duplicates and several for a text."""
    parts = draw(st.lists(st.sampled_from("ab▁…é日😀<"), unique=True, min_size=1))
    pairs = []
    for _ in range(draw(st.integers(0, 20))):
        pair = draw(st.sampled_from(parts)), draw(st.sampled_from(parts))
        if len("".join(pair)) <= 6:
            pairs.append(pair)
            parts.append("".join(pair))
    if draw(st.booleans()):
        pairs = draw(st.permutations(pairs))
    lost = draw(st.lists(st.text("ab▁日", min_size=1, max_size=4)))
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    if draw(st.integers(0, 9)) == 0:
        fallback = fallback[: ord("b")]
    texts = [*dict.fromkeys([*fallback, *parts, *lost])]
    if draw(st.booleans()):
        texts = draw(st.permutations(texts))
    return dict(zip(texts, itertools.count(draw(st.integers(0, 3))), strict=False)), pairs


@settings(max_examples=150)
@given(model=character_models(), ignore_merges=st.booleans(), folds=st.booleans())
def test_vocabularies_of_characters_are_those_of_the_slow_way(model, ignore_merges, folds):
    ids, pairs = model
    found = read_tables(as_file(ids, [list(pair) for pair in pairs]), MAX_VALUES)
    assert found is not None
    plain = Model(ids, pairs, ignore_merges, True, "x.json")
    rows = MergeRows(found[2], found[1])
    tables = TableModel(Entries(found[1]), rows, ignore_merges, True, "x.json")

    def digest(model):
        try:
            return character_vocabulary(model, folds, model.parts()).digest
        except VocabularyError as error:
            return str(error)

    assert digest(tables) == digest(plain)


BYTES = {CHARACTERS[byte]: byte for byte in range(256)}


@pytest.mark.parametrize(
    ("ids", "merges"),
    [
        ({**BYTES, "ab": 3}, [["a", "b"]]),
        ({**BYTES, "": 256}, []),
        ({**BYTES, "a" * 65536: 256}, []),
        ({**BYTES, "日": 3}, []),
        ({**BYTES, "日": 256, "日a": 257}, [["日", "a"]]),
        ({k: v for k, v in BYTES.items() if k != "a"}, []),
        ({}, []),
    ],
)
def test_tables_that_are_refused_are_refused_in_the_same_words(ids, merges):
    found = read_tables(as_file(ids, merges), MAX_VALUES)
    assert found is not None

    def slow(source):
        pairs = [(left, right) for left, right in merges]
        return byte_level_vocabulary(Model(ids, pairs, True, False, source))

    def quick(source):
        rows = MergeRows(found[2], found[1])
        return byte_level_vocabulary(TableModel(Entries(found[1]), rows, True, False, source))

    assert outcome(quick) == outcome(slow)
    assert outcome(quick).startswith("x.json: ")


def test_damaged_files_end_as_in_the_slow_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    data, _ = sound_files(tmp_path)["tokenizer.json"]
    rng = random.Random(5)
    path = tmp_path / "x.json"
    n_loaded = 0
    for _ in range(60):
        path.write_bytes(damaged(data, rng))
        results = []
        for read in (read_tables, lambda data, limit: None):
            with monkeypatch.context() as patch:
                patch.setattr(json_value, "read_tables", read)
                try:
                    results.append(load_huggingface(path).digest)
                    n_loaded += 1
                except (VocabularyError, streamtok.PatternError) as error:
                    results.append(str(error))
        assert results[0] == results[1]
    assert n_loaded


def test_a_table_of_texts_is_not_made_by_hand():
    with pytest.raises(ValueError, match="512 characters"):
        read_tables(as_file({"a": 1}, []), 99)[1].in_bytes(b"")
    with pytest.raises(IndexError):
        read_tables(as_file({"a": 1}, []), 99)[1].text(1)
    assert len(TextIds()) == 0
    assert TextIds().row("a") == -1
