"""Rank tables in files: .tiktoken, tekken.json, nanochat's pickle."""

from __future__ import annotations

import base64
import importlib.util
import json
import pickle
from pathlib import Path

import pytest
import tiktoken
import tiktoken.load

import streamtok
from streamtok import formats

from ..conftest import twin_of
from ..encodings import SINGLES
from ..oracles import PLAIN, assert_same, refuses, write
from .reading import changed, read

DATA = Path(importlib.util.find_spec("mistral_common").origin).parent / "data"


# .tiktoken


def test_tiktoken_files(tmp_path):
    name = "r50k_base"
    enc = streamtok.get_encoding(name)
    path = tmp_path / f"{name}.tiktoken"
    formats.save_tiktoken(enc, path)
    made = formats.load(path, pattern=name, special_tokens=enc._special_tokens)
    assert made.digest == enc.digest
    assert made.name == name
    assert tiktoken.load.load_tiktoken_bpe(str(path)) == enc._mergeable_ranks
    assert made.encode(PLAIN[0]) == twin_of(name).encode(PLAIN[0])


def test_unknown_pattern_names_are_refused(tmp_path):
    path = tmp_path / "x.tiktoken"
    formats.save_tiktoken(streamtok.get_encoding("gpt2"), path)
    with pytest.raises(streamtok.PatternError, match="no pattern is named 'gpt3'"):
        formats.load(path, pattern="gpt3")
    assert formats.load(path, pattern=r"\w+|\W").encode("a b") == [64, 220, 65]


# tekken.json


def test_mistrals_own_tekken():
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    path = DATA / "tekken_240911.json"
    theirs = Tekkenizer.from_file(path)
    enc = formats.load(path)
    assert_same(enc, lambda text: theirs.encode(text, bos=False, eos=False), PLAIN)
    assert enc.n_vocab == theirs.n_words
    assert enc._special_tokens == {
        token["token_str"]: token["rank"] for token in theirs._all_special_tokens
    }
    assert enc.encode("<s>a", allowed_special="all") == [
        theirs.bos_id,
        *theirs.encode("a", False, False),
    ]


def tekken(**changes):
    vocab = [
        {"rank": b, "token_bytes": base64.b64encode(bytes([b])).decode(), "token_str": None}
        for b in range(256)
    ]
    config = {
        "pattern": r"\s+|\S+",
        "num_vocab_tokens": 256,
        "default_vocab_size": 258,
        "default_num_special_tokens": 2,
        "version": "v11",
    }
    special = [{"rank": 0, "token_str": "<s>", "is_control": True}]
    return json.dumps(
        changed({"config": config, "vocab": vocab, "special_tokens": special}, changes)
    )


def test_a_small_tekken():
    enc = read(tekken())
    assert enc._special_tokens == {"<s>": 0, "<SPECIAL_1>": 1}
    assert enc.encode("ab") == [99, 100]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab__7__rank": 8}, r"vocab\[7\]: expected rank 7, found 8"),
        ({"vocab__7__rank": True}, "expected an integer, found True"),
        ({"vocab__7__token_bytes": "A"}, r"vocab\[7\]: token_bytes: expected a token in base64"),
        ({"vocab__7__token_bytes": "QQ=="}, "the token b'A' already has rank 7"),
        ({"vocab__7__token_bytes": ""}, "0 bytes"),
        ({"vocab__7": 3}, r"vocab\[7\]: expected an object, found 3"),
        ({"config": []}, r"config: expected an object, found \[\]"),
        ({"config__default_vocab_size": 100}, "158 of the 256 single bytes"),
        ({"config__default_vocab_size": 1}, "leaves room for -1"),
        (
            {"config__default_num_special_tokens": 10**12},
            "default_num_special_tokens is 1000000000000: it must",
        ),
        ({"config__default_num_special_tokens": 0}, "special_tokens must have"),
        ({"config__pattern": "(?P<x>a)["}, "pattern"),
        ({"special_tokens": None}, "'v11' must have special_tokens"),
        ({"special_tokens__0__rank": 1}, "without a gap"),
        ({"special_tokens__0__token_str": "<SPECIAL_1>"}, "id 1 has no name, .* <SPECIAL_1>"),
        ({"special_tokens__0__token_str": "\ud800"}, "invalid utf-16 surrogate pair|expected"),
    ],
)
def test_unsound_tekken(changes, message):
    refuses(read, tekken(**changes), match=message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (tekken()[:-100].encode(), "t.json: Input data was truncated"),
        ('{"é":\n "日" 1}'.encode(), "line 2, column 6: expected ','"),
        (b'{"a": "\xff"}', "byte 7: not UTF-8"),
        (b'{"config": NaN}', "line 1, column 12: invalid character"),
        (b'{"a": ' + b"[" * 5_000_000, "nested too deep"),
        (b'{"config": {"default_num_special_tokens": ' + b"9" * 10_000 + b"}}", "t.json: "),
    ],
)
def test_json_that_is_damaged_or_hostile(tmp_path, data, message):
    refuses(formats.load, write(tmp_path / "t.json", data), match=message)


# nanochat


@pytest.fixture
def pickled():
    return tiktoken.Encoding(
        "nano",
        pat_str=formats.PATTERNS["nanochat"],
        mergeable_ranks=twin_of("r50k_base")._mergeable_ranks,
        special_tokens={"<|bos|>": 50256},
    )


@pytest.mark.parametrize("protocol", [3, 5])
def test_nanochats_pickle(tmp_path, pickled, protocol):
    path = write(tmp_path / "tokenizer.pkl", pickle.dumps(pickled, protocol))
    enc = formats.load(path)
    assert formats.load(tmp_path).digest == enc.digest
    assert enc.name == "nano"
    assert_same(enc, pickled.encode_ordinary, PLAIN)
    assert enc._special_tokens == pickled._special_tokens


class Calls:
    def __init__(self, function, *args):
        self.made = function, args

    def __reduce__(self):
        return self.made


def hostile_pickles():
    sound = pickle.dumps(
        tiktoken.Encoding("x", pat_str="a|b", mergeable_ranks=SINGLES, special_tokens={}), 4
    )
    state = {"name": "x", "pat_str": "a", "mergeable_ranks": SINGLES, "special_tokens": {}}
    head = b"\x80\x03ctiktoken.core\nEncoding\n)\x81"
    for changes, message in (
        ({"name": Calls(print, "called")}, "found 'builtins'.'print'"),
        ({"more": 1}, "unknown field of tiktoken.Encoding: 'more'"),
        ({"name": 3}, "the field 'name' must be a str"),
        ({"pat_str": 5}, "the field 'pat_str' must be a str"),
        ({"mergeable_ranks": {b"a": 0}}, "255 of the 256"),
        ({"mergeable_ranks": {"a": 0}}, "a token must be bytes"),
        ({"mergeable_ranks": SINGLES | {b"ab": b"x"}}, "must be an int"),
        ({"special_tokens": {"a": "b"}}, "must be .*, found 'a': 'b'"),
        ({"special_tokens": {"a": 2**40}}, "'a' must be in .*, not 1099511627776"),
        ({"pat_str": "("}, "pattern"),
    ):
        yield head + pickle.dumps(state | changes, 3)[2:-1] + b"b.", message
    for data, message in (
        (head + pickle.dumps("cl100k_base", 3)[2:-1] + b"b.", "use streamtok.get_encoding"),
        (head + b".", "has no state"),
        (pickle.dumps(Calls(eval, "1"), 0), "unknown format"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "found 'os'.'system' .which was not imported"),
        (pickle.dumps(SINGLES, 4), "Encoding, but a pickled dict"),
        (pickle.dumps([1, 2], 4), "unexpected opcode 93"),
        (b"\x80\x04)r\xff\xff\xff\xff.", "but a pickled tuple"),  # a long memo takes no memory
        (b"\x80\x04ctiktoken.core\nEncoding\n.", "a pickled type"),
        (b"\x80\x04}(b.", "x.pkl"),  # a state for a dictionary
        (b"\x80\x04u.", "x.pkl"),  # no mark
        (b"\x80\x04X\x02\x00\x00\x00\xff\xff.", "Encoding: .* decode"),
        (b"\x80\x04S" + b"a" * 9_000 + b"\n.", "unexpected opcode 83$"),
        *((cut, "not a pickled tiktoken.Encoding: ") for cut in (sound[:1], sound[:500])),
    ):
        yield data, message


@pytest.mark.parametrize(("data", "message"), list(hostile_pickles()))
def test_other_pickles_are_refused(tmp_path, capsys, data, message):
    refuses(formats.load, write(tmp_path / "x.pkl", data), match=message)
    assert "called" not in capsys.readouterr().out
