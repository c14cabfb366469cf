"""`formats.load`, `streamtok convert` and vocabulary files on the command line."""

from __future__ import annotations

import os

import pytest
from tokenizers import Tokenizer

import streamtok
from streamtok import formats
from streamtok.cli.main import main
from streamtok.formats import conversion

from ..encodings import SINGLES, make_encoding
from ..oracles import PLAIN, refuses, write
from .reading import ids_of
from .test_formats_huggingface import llama3
from .test_formats_merges import GPT4, minbpe_model
from .test_formats_ranks import DATA, tekken

SP_MODEL = DATA / "tokenizer.model.v1"


def run(*args, capsys=None):
    code = main([str(arg) for arg in args])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_every_format_is_recognised(tmp_path):
    gpt2 = streamtok.get_encoding("gpt2")
    for name in ("x.tiktoken", "x.json", "tokenizer.json", "x.streamtok"):
        path = tmp_path / name
        format = "huggingface" if name == "x.json" else conversion.format_of(str(path))
        conversion.save(gpt2, str(path), format)
        assert formats.load(path).encode(PLAIN[0]) == gpt2.encode(PLAIN[0])
        assert formats.load(path).special_tokens_set == gpt2.special_tokens_set
    assert formats.load(tmp_path).name == "tokenizer"
    assert formats.load(SP_MODEL).encode("a") == [264]
    assert formats.load(write(tmp_path / "t", tekken()), name="t").name == "t"
    assert formats.load(write(tmp_path / "m", minbpe_model(GPT4, {}))).n_vocab > 300


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "unknown format: the file is empty"),
        (b"hello world\n", "unknown format: the file begins with b'hello world"),
        (b'{"a": 1}', r"unknown JSON format: .* with the keys \['a'\]"),
        (b"[1]", "unknown format"),
        (b"YQ== 0\n", "255 of the 256 single bytes"),
        (b"#version: 0.2\na b\n", "merges without their ids"),
        (b"\x80\x04N.", "unexpected opcode 78"),
        (b"PK\x03\x04", "unknown format"),
    ],
)
def test_unknown_formats_are_refused(tmp_path, data, message):
    refuses(formats.load, write(tmp_path / "file", data), match=message)


def test_files_without_a_pattern(tmp_path):
    enc = make_encoding(r"\s|\S+", SINGLES | {b"ab": 256})
    path = tmp_path / "e.tiktoken"
    formats.save_tiktoken(enc, path)
    refuses(formats.load, path, match="has no pre-tokenization pattern")
    made = formats.load(path, pattern="gpt2", special_tokens={"<x>": 300})
    assert made.encode("ab<x>", allowed_special="all") == [256, 300]
    refuses(formats.load, SP_MODEL, pattern="gpt2", match="has its own pattern")
    refuses(formats.load, tmp_path.parent, match="expected one of tokenizer.json, ")


def test_convert_between_formats(tmp_path, capsys):
    source = tmp_path / "tokenizer.json"
    write(source, llama3(as_strings=True))
    theirs = Tokenizer.from_file(str(source))
    enc = formats.load(source)
    for output, extra in [
        (tmp_path / "a.tiktoken", []),
        (tmp_path / "c.json", ["--to", "huggingface"]),
    ]:
        code, out, err = run("convert", source, output, *extra, capsys=capsys)
        assert (code, out) == (0, "")
        assert err.count("\n") == 1
        assert ("not in the file: the pattern" in err) == (output.suffix == ".tiktoken")
    for text in PLAIN:
        expected = ids_of(theirs)(text)
        assert formats.load(tmp_path / "c.json").encode(text) == expected
        assert formats.load(tmp_path / "a.tiktoken", pattern="llama3").encode(text) == expected
    assert formats.load(tmp_path / "c.json").special_tokens_set == enc.special_tokens_set


def test_convert_into_a_folder_and_back(tmp_path, capsys):
    assert run("convert", "gpt2", tmp_path / "g", "--to", "gpt2", capsys=capsys)[0] == 0
    assert sorted(os.listdir(tmp_path)) == ["g"]
    assert sorted(os.listdir(tmp_path / "g")) == ["encoder.json", "vocab.bpe"]
    code, _, err = run("convert", "-q", tmp_path / "g", tmp_path / "t.tiktoken", capsys=capsys)
    assert (code, err) == (0, "")
    ranks = formats.load(tmp_path / "t.tiktoken").definition.vocabulary
    assert ranks == streamtok.get_encoding("gpt2").definition.vocabulary


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("gpt2", "OUT.model"), "'OUT.model' is the name of a format that is read and not written"),
        (("gpt2", "tekken.json"), "is read and not written; keep the original file: use --to tik"),
        (("gpt2", "OUT.bin"), "the file name 'OUT.bin' does not tell the format"),
        ((SP_MODEL, "OUT", "--to", "gpt2"), "cannot express"),
        ((SP_MODEL, "OUT", "--to", "tiktoken"), "cannot express the list of merges"),
        ((SP_MODEL, "OUT", "--to", "huggingface"), "merges characters; keep the original file"),
        (("gpt3", "OUT.tiktoken"), "Unknown encoding gpt3"),
        (("./gpt3", "OUT.tiktoken"), "./gpt3: No such file"),
        (("gpt2", "no/such/folder/OUT.tiktoken"), "No such file or directory"),
    ],
)
def test_refused_conversions(tmp_path, monkeypatch, capsys, args, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("convert", *args, capsys=capsys)
    assert (code, out) == (1, "")
    assert message in err
    assert err.count("\n") == 1
    assert not os.listdir(tmp_path)


def test_bench_compares_named_encodings_only(tmp_path, capsys):
    text = write(tmp_path / "text", PLAIN[0])
    code, out, err = run("bench", "-e", SP_MODEL, text, capsys=capsys)
    assert (code, out) == (1, "")
    assert "is not the name of an encoding" in err
