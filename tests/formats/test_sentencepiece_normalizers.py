"""Models of SentencePiece with maps, without extra spaces, without byte fallback.

`tests/models/test_sentencepiece_models.py` compares the ids of random ones with the library's.
"""

from __future__ import annotations

import json
import pickle

import pytest

import streamtok
from streamtok import formats
from streamtok.formats import sentencepiece as module
from streamtok.formats.packed import dumps_packed, loads_packed

from ..charsmaps import write_charsmap
from ..conftest import stream_ids
from ..oracles import refuses, write
from ..sentencepiece_models import BASE, SPACE, field, model, processor, trained

DEFAULT = {"normalization_rule_name": "nmt_nfkc", "remove_extra_whitespaces": True}


def encoding(data: bytes) -> streamtok.Encoding:
    return module.read_sentencepiece(data, "made", "made")


def test_what_follows_a_special_token_is_a_text_of_its_own():
    """SentencePiece knows no special tokens in texts: this is streamtok's choice."""
    enc = encoding(trained(**DEFAULT))
    for same in (pickle.loads(pickle.dumps(enc)), loads_packed(dumps_packed(enc))):
        assert same.digest == enc.digest
    s = enc.encode_single_token("<s>")
    allowed = {"allowed_special": "all"}
    a_b = enc.encode("a b")
    assert enc.encode(" a  b <s>", **allowed) == [*a_b, s]
    after = enc.encode(" <s> a  b ", **allowed)
    assert after[0] == s
    assert enc.decode(after[1:]) == "a b"
    assert after == enc.encode("<s>a b", **allowed) != [s, *a_b]
    data = b"  a\xe2\x80\x83<s> b <s> "
    ids = enc.encode(data, **allowed)
    for at in range(len(data) + 1):
        stream = enc.stream_encoder(**allowed)
        assert stream_ids(stream, [data[:at], data[at:]]) == ids


def test_bytes_that_are_not_utf8():
    """Each becomes U+FFFD in SentencePiece, and here with "replace" where no character is begun."""
    data = trained(normalization_rule_name="nfkc", remove_extra_whitespaces=True)
    theirs, enc = processor(data), encoding(data)
    for text in (b"a\xff b", b"\xff\xfe", b" \x80 \x80e\xcc\x81", b"\xef\xac\x81\xff "):
        ids = theirs.encode(text)
        assert enc.encode(text, errors="replace") == ids
        for at in range(len(text) + 1):
            stream = enc.stream_encoder(errors="replace")
            assert stream_ids(stream, [text[:at], text[at:]]) == ids
        with pytest.raises(UnicodeDecodeError):
            enc.encode(text, errors="strict")
        escaped = enc.encode(text, errors="surrogateescape")
        assert enc.decode_bytes(escaped).count(b"\xff") == text.count(b"\xff")
    # The maps for "nmt" make U+FFFD a space. SentencePiece's is put in behind the map, ours before.
    nmt = encoding(trained(**DEFAULT))
    assert nmt.encode(b"a\xffb", errors="replace") == nmt.encode("a b") == nmt.encode("a\ufffdb")


def test_tokens_in_the_folder_of_a_model(tmp_path):
    data = trained(**DEFAULT)
    write(tmp_path / "tokenizer.model", data)
    token = {"content": "<x>", "special": True}
    config = {"tokenizer_class": "LlamaTokenizer", "added_tokens_decoder": {"5000": token}}
    write(tmp_path / "tokenizer_config.json", json.dumps(config))
    enc = formats.load(tmp_path)
    assert enc.encode("a <x> b", allowed_special="all").count(5000) == 1
    assert enc.encode("  a \ufb01")[-3:] == processor(data).encode("  a \ufb01")[-3:]
    token["special"] = False
    write(tmp_path / "tokenizer_config.json", json.dumps(config))
    refuses(formats.load, tmp_path, match="the token '<x>' is not special, which is not supported")


def test_what_is_not_exact_is_refused_by_name():
    pieces = [*BASE, SPACE, ("a", -1.0, 1), ("b", -2.0, 1), ("b\u2581", 0.0, 4)]
    refuses(encoding, model(pieces, normalizer=field(4, 1)), match="symbol 'b ' has a space")
    charsmap = write_charsmap({"a": "b  c"})
    both = field(2, charsmap) + field(4, 1)
    refuses(encoding, model(pieces[:-1], normalizer=both), match="map with two spaces in a row")
    kept = model(pieces[:-1], normalizer=field(2, charsmap) + field(4, 0))
    assert encoding(kept).encode("a a") == processor(kept).encode("a a")
    damaged = field(2, charsmap[:-20])
    refuses(encoding, model(pieces[:-1], normalizer=damaged), match="map is damaged: a trie of")


def test_unknown_characters():
    """A run of them is one id, whatever stands in it; also of bytes that are escaped."""
    data = trained(byte_fallback=False)
    enc, theirs = encoding(data), processor(data)
    for text in ("\u16a0\u16a1", "a\u16a0\x00\U00010380b\uffff c\U0010ffff", "\u16a0 \u16a1"):
        assert enc.encode(text) == theirs.encode(text)
        assert enc.decode(enc.encode(text)).count("<unk>") == enc.encode(text).count(0) > 0
    stream = enc.stream_encoder()
    a = theirs.encode("a")
    ids = stream.encode("a\u16a0") + stream.encode("\u16a1" * 10_000)
    assert stream.pending >= 30_003  # they count until something comes after them
    ids += stream.encode("b and more")
    assert stream.pending < 10
    ids += stream.encode("\u16a0a", final=True)
    assert ids == theirs.encode("a\u16a0b and more\u16a0a")
    assert enc.encode(b"a\xff\xfe", errors="surrogateescape") == [*a, 0]
    assert theirs.encode("\u16a0") == enc.encode("\u16a0")


def test_models_without_byte_fallback_that_are_refused():
    letters = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), SPACE, ("a", -1.0, 1)]
    plain = field(1, b"identity") + field(4, 0)

    def made(*more):
        return model([*letters, *more], trainer=field(3, 2), normalizer=plain)

    sound = made(("b", -2.0, 1), ("ab", -0.5, 1))
    assert encoding(sound).encode("ab cd ba") == processor(sound).encode("ab cd ba")
    for more, message in (
        (
            ("ab", -0.5, 1),
            "'ab' has the character 'b', which is not in the vocabulary, is not supported",
        ),
        (("<0x00>", 0.0, 6), "pieces of bytes without byte_fallback are not supported"),
        (("<u>", 0.0, 2), "expected one piece for unknown characters, found 2"),
        (("c", 0.0, 3), "'c', is a control symbol of one character, which is not supported"),
    ):
        refuses(encoding, made(more), match=message)
    all_known = [(chr(point), -3.0, 1) for point in range(128) if chr(point) not in " a"]
    refuses(encoding, made(*all_known), match="needs a control character")
