"""`Encoding` is tiktoken's: same names, arguments, results and exceptions."""

from __future__ import annotations

import array
import ctypes
import inspect
import multiprocessing
import pickle

import numpy as np
import pytest

import streamtok

from ..conftest import encoding_of
from ..encodings import SINGLES
from ..nasty import TEXTS
from ..new_process import python

TEXT = "hello world, it's 12345 — naïve 日本語 👍\n\n  def f():\n\treturn <|x|>\r\n"


def make(**changes):
    made = {"pat_str": r"\w+|\W", "mergeable_ranks": SINGLES, "special_tokens": {}}
    return streamtok.Encoding("made", **{**made, **changes})


def outcome(function, *args, **settings):
    try:
        return function(*args, **settings)
    except Exception as error:
        return type(error)


def test_every_public_name_of_tiktoken_is_there(twin):
    ours = encoding_of(twin.name)
    for name in dir(twin):
        if name.startswith("_"):
            continue
        assert hasattr(type(ours), name) or hasattr(ours, name), name
        theirs = getattr(type(twin), name, None)
        if inspect.isfunction(theirs):
            wanted = inspect.signature(theirs).parameters
            offered = inspect.signature(getattr(type(ours), name)).parameters
            for parameter in wanted.values():
                assert offered[parameter.name].kind == parameter.kind, (name, parameter)
                if parameter.name.endswith("_special"):
                    assert offered[parameter.name].default == parameter.default, name


def test_same_results(enc, twin):
    ids = twin.encode(TEXT)
    assert enc.encode(TEXT) == ids
    assert enc.encode_ordinary(TEXT) == twin.encode_ordinary(TEXT)
    assert enc.encode_to_numpy(TEXT).tolist() == twin.encode_to_numpy(TEXT).tolist()
    assert enc.encode_to_numpy(TEXT).dtype == np.uint32
    texts = [TEXT, "", "x", TEXT * 3]
    assert enc.encode_batch(texts) == twin.encode_batch(texts)
    assert enc.encode_ordinary_batch(texts, num_threads=2) == twin.encode_ordinary_batch(texts)
    assert enc.count(TEXT) == len(ids)
    assert enc.decode(ids) == twin.decode(ids) == TEXT
    assert enc.decode(ids[3:9]) == twin.decode(ids[3:9])
    assert enc.decode_bytes(ids) == twin.decode_bytes(ids)
    assert enc.decode_bytes(np.array(ids)) == TEXT.encode()
    assert enc.decode_bytes(enc.encode_to_numpy(TEXT)) == TEXT.encode()
    assert enc.decode_tokens_bytes(ids) == twin.decode_tokens_bytes(ids)
    assert enc.decode_with_offsets(ids) == twin.decode_with_offsets(ids)
    assert enc.decode_batch([ids, []]) == twin.decode_batch([ids, []])
    assert enc.decode_bytes_batch([ids, []]) == twin.decode_bytes_batch([ids, []])
    assert enc.token_byte_values() == twin.token_byte_values()
    assert enc.special_tokens_set == twin.special_tokens_set
    for name in ["n_vocab", "max_token_value", "name"]:
        assert getattr(enc, name) == getattr(twin, name)
    for token in [0, 5, 300, enc.max_token_value]:
        assert enc.is_special_token(token) == twin.is_special_token(token)
        expected = outcome(twin.decode_single_token_bytes, token)
        assert outcome(enc.decode_single_token_bytes, token) == expected
    for text in ["hello", b" the", "<|endoftext|>", "not a token", b"\xff"]:
        assert outcome(enc.encode_single_token, text) == outcome(twin.encode_single_token, text)
    assert outcome(lambda: enc.eot_token) == outcome(lambda: twin.eot_token)
    assert repr(enc) == repr(twin)


@pytest.mark.parametrize(
    "text", ["", "hello fanta", "a  ", "we'", "é", "日", "  !", "a <|endoftext|>"]
)
def test_unstable(enc, twin, text):
    ours = enc.encode_with_unstable(text, allowed_special="all")
    theirs = twin.encode_with_unstable(text, allowed_special="all")
    assert ours[0] == theirs[0]
    assert sorted(ours[1]) == sorted(map(list, theirs[1]))


def test_unstable_has_a_limit(enc):
    """Each of thousands of answers has all ids of the last pre-token."""
    text = "x " + "ab" * 511
    stable, completions = enc.encode_with_unstable(text)
    assert enc.decode(stable) == "x"
    assert all(enc.decode(ids).startswith(text[1:-1]) for ids in completions)
    for long in (text + "ab", "x" + " " * 1_100, "ab" * 100_000):
        with pytest.raises(ValueError, match=r"at most 1024 bytes; this one has \d+"):
            enc.encode_with_unstable(long)


def test_same_exceptions(enc, twin):
    name = next(iter(enc._special_tokens))
    calls = [
        lambda e: e.encode(f"a {name}"),
        lambda e: e.encode_to_numpy(f"a {name}"),
        lambda e: e.encode_batch([f"a {name}"]),
        lambda e: e.encode_with_unstable(f"a {name}"),
        lambda e: e.encode(f"a {name}", allowed_special={name}),
        lambda e: e.encode(f"a {name}", disallowed_special=()),
        lambda e: e.encode("a foo", disallowed_special={"foo"}),
        lambda e: e.encode("a foo", disallowed_special=["foo"], allowed_special="all"),
        lambda e: e.encode(f"{name}{name[:-1]}", allowed_special="all"),
        lambda e: e.encode(5),
        lambda e: e.encode("\ud83d\udc4d"),
        lambda e: e.encode("\ud83d"),
        lambda e: e.encode_ordinary("a\udc4d\ud83d"),
        lambda e: e.decode([e.max_token_value + 1]),
        lambda e: e.decode([-1]),
        lambda e: e.decode([2**40]),
        lambda e: e.decode(["x"]),
        lambda e: e.decode([1.5]),
        lambda e: e.decode_single_token_bytes(e.max_token_value + 1),
        lambda e: e.decode_single_token_bytes(-1),
        lambda e: e.encode_single_token("\ud83d"),
        lambda e: e.is_special_token("x"),
        *(
            lambda e, token=token: e.encode_single_token(token)
            for token in [1, 3.0, None, [97], (97,), np.int64(3), object()]
        ),
        *(
            lambda e, ids=ids, name=name: getattr(e, name)(ids)
            for ids in [[1.9], [1.0], ["1"], [None], [64, 1.5], 5]
            for name in ["decode_tokens_bytes", "decode_with_offsets"]
        ),
        lambda e: (
            e.decode([e.encode_ordinary("é")[0]], errors="strict")
            if len(e.encode_ordinary("é")) > 1
            else None
        ),
    ]
    for i, call in enumerate(calls):
        ours, theirs = outcome(call, enc), outcome(call, twin)
        if isinstance(ours, np.ndarray):
            ours, theirs = ours.tolist(), theirs.tolist()
        if isinstance(theirs, type):
            assert isinstance(ours, type), i
            assert issubclass(ours, theirs), (i, ours, theirs)
        else:
            assert ours == theirs, i


def test_ids_may_be_whatever_is_an_integer(enc, twin):
    ids = [1, True, np.int64(3), np.uint32(64)]
    assert enc.decode_tokens_bytes(ids) == twin.decode_tokens_bytes(ids)
    array = np.array([1, 3, 64], np.uint32)
    assert enc.decode_tokens_bytes(array) == enc.decode_tokens_bytes(array.tolist())


@pytest.mark.parametrize(
    "make",
    [
        bytes, str, bytearray, ctypes.c_char * 0, lambda: memoryview(b""),
        lambda: array.array("B"), lambda: memoryview(array.array("B")), lambda: np.empty(0, "u1"),
    ],
)  # fmt: skip
def test_nothing_may_have_no_address(enc, make):
    """Some objects with no bytes give a NULL pointer."""
    nothing = make()
    assert enc.encode(nothing) == enc.encode_batch([nothing])[0] == []
    assert enc.count(nothing, num_threads=2) == len(enc.encode_to_numpy(nothing)) == 0
    stream = enc.stream_encoder()
    assert stream.encode(nothing) + stream.flush() == []
    trainer = streamtok.Trainer("gpt2")
    trainer.update(nothing, final=True)
    assert trainer.bytes_in == 0


def test_errors_are_pythons_own(enc):
    for data in TEXTS:
        replaced = enc.encode(data, errors="replace", disallowed_special=())
        assert replaced == enc.encode(data.decode("utf-8", "replace"), disallowed_special=())
        kept = enc.encode(data, errors="surrogateescape", disallowed_special=())
        assert enc.decode_bytes(kept) == data
        text = data.decode("utf-8", "surrogateescape")
        assert enc.encode(text, errors="surrogateescape", disallowed_special=()) == kept
        theirs = outcome(data.decode)
        if theirs is UnicodeDecodeError:
            try:
                data.decode()
            except UnicodeDecodeError as error:
                expected = (error.start, error.end, error.reason)
            with pytest.raises(UnicodeDecodeError) as caught:
                enc.encode(data, disallowed_special=())
            assert (caught.value.start, caught.value.end, caught.value.reason) == expected


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"mergeable_ranks": {}}, streamtok.VocabularyError, "256"),
        ({"pat_str": "("}, streamtok.PatternError, "position 0"),
        ({"pat_str": r"a{2"}, None, ""),
        ({"explicit_n_vocab": 300}, ValueError, "300"),
    ],
)
def test_bad_encodings(changes, error, words):
    if error is None:
        make(**changes)
        return
    with pytest.raises(error, match=words):
        make(**changes)


def test_a_pattern_without_tables_encodes_whole_texts(twin):
    import tiktoken

    made = {"mergeable_ranks": SINGLES, "special_tokens": {"<x>": 300}}
    pattern = r"(?<=a)b+|\w|\s+$|\s"
    ours = streamtok.Encoding("o", pat_str=pattern, **made)
    theirs = tiktoken.Encoding("t", pat_str=pattern, **made)
    for text in ["", "abbb cd", "ab<x>bb  ", "é  \n", "a!b", "x \n"]:
        assert ours.encode(text, allowed_special="all") == theirs.encode(
            text, allowed_special="all"
        )
        assert ours.count(text, allowed_special="all") == len(
            theirs.encode(text, allowed_special="all")
        )
    with pytest.raises(ValueError, match="disallowed special token '<x>' at byte 2"):
        ours.encode("a <x>")
    with pytest.raises(streamtok.UnsupportedPatternError, match=r"look-?behind"):
        ours.stream_encoder()
    assert ours.encode(b"a\xffb", errors="surrogateescape") == [97, 98]
    with pytest.raises(UnicodeDecodeError):
        ours.encode(b"a\xffb")


def test_pickling():
    enc = encoding_of("cl100k_base")
    assert pickle.loads(pickle.dumps(enc)) is enc
    copy = pickle.loads(pickle.dumps(make(special_tokens={"<x>": 300})))
    assert copy.encode("a<x>", allowed_special="all") == [97, 300]
    assert copy.digest == make(special_tokens={"<x>": 300}).digest != make().digest


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform cannot {method}")
    enc = encoding_of("r50k_base")
    stream = enc.stream_encoder()
    first = stream.encode("hello wor")
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        assert pool.map(enc.encode, ["hello", "world"]) == [
            enc.encode("hello"),
            enc.encode("world"),
        ]
        rest = pool.apply(finish, (stream, "ld"))
    assert first + rest == enc.encode("hello world")


def finish(stream, text):
    return stream.encode(text, final=True)


def test_import_is_light():
    heavy = "('regex', 'tqdm', 'urllib.request', 'http.client', 'ssl', 'tempfile')"
    code = f"import sys, streamtok; print([m for m in {heavy} if m in sys.modules])\n"
    # Whoever imports us can still say what numpy's libraries do.
    code += "print('numpy' in sys.modules, streamtok.encoding.Encoding, 'numpy' in sys.modules)"
    first, second = python(code).splitlines()
    assert first == "[]"
    assert second == "False <class 'streamtok.encoding.Encoding'> True"
