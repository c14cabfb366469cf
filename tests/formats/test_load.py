"""`load` of objects of other libraries: the ids are theirs, and nothing is imported for it."""

from __future__ import annotations

import base64
import codecs
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer, processors

import streamtok
from streamtok import formats
from streamtok.errors import VocabularyError
from tests.formats.reading import of_bytes
from tests.new_process import python
from tests.sentencepiece_models import trained

TEXTS = ["", "hello world", " a  b\n\n", "日本 é <s> x"]


def tokenizer() -> Tokenizer:
    made = of_bytes("<s>", merges=[("h", "e")])
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 257)]
    )
    return made


class Fast:
    """What transformers' fast tokenizers have."""

    name_or_path = "org/model"

    def __init__(self, backend: Tokenizer) -> None:
        self.backend_tokenizer = backend

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        return self.backend_tokenizer.token_to_id(tokens)


class Slow:
    """What those have that are written in Python."""

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        raise NotImplementedError


def check(enc: streamtok.Encoding, theirs: Tokenizer) -> None:
    for text in TEXTS:
        expected = theirs.encode(text).ids
        assert enc.encode(text, allowed_special="all", add_special_tokens=True) == expected


def test_tokenizers(tmp_path: Path) -> None:
    theirs = tokenizer()
    enc = streamtok.load(theirs)
    check(enc, theirs)
    path = tmp_path / "tokenizer.json"
    theirs.save(str(path))
    assert enc.digest == streamtok.load(path).digest
    assert enc.name == "tokenizer"
    assert streamtok.load(theirs, name="mine").name == "mine"
    assert (enc.truncation, enc.padding) == (None, None)


def test_transformers() -> None:
    theirs = tokenizer()
    enc = streamtok.load(Fast(theirs))
    check(enc, theirs)
    assert enc.name == "model"
    theirs.enable_truncation(5)  # a setting of the latest call, which is not that of the next one
    theirs.enable_padding()
    assert streamtok.load(Fast(theirs)).digest == enc.digest
    with pytest.raises(VocabularyError, match=r"Slow>: .* written in Python .* fast variant"):
        streamtok.load(Slow())


def test_tiktoken() -> None:
    base = streamtok.get_encoding("r50k_base")
    specials = {"<|x|>": 60000}
    theirs = tiktoken.Encoding(
        "theirs",
        pat_str=base._pat_str,
        mergeable_ranks=base._mergeable_ranks,
        special_tokens=specials,
    )
    enc = streamtok.load(theirs)
    assert (enc.name, enc._special_tokens) == ("theirs", specials)
    assert enc.pattern is not None
    for text in TEXTS:
        assert enc.encode(text) == theirs.encode(text)


def test_sentencepiece_s_processor(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.model.v3"
    path.write_bytes(trained())
    enc = streamtok.load(SentencePieceProcessor(model_file=str(path)))
    assert enc.digest == streamtok.load(path).digest


def test_encodings_are_returned() -> None:
    enc = streamtok.get_encoding("gpt2")
    assert formats.load(enc) is enc


@pytest.mark.parametrize("given", [5, None, b"gpt2", {}, object(), Tokenizer])
def test_other_objects(given: Any) -> None:
    with pytest.raises(TypeError, match=r"cannot be loaded: expected a path, the name"):
        streamtok.load(given)
    with pytest.raises(ValueError, match=r"has its own pattern"):
        streamtok.load(given, pattern="gpt2")


@pytest.mark.parametrize("name", ["nosuch", "a.json", "./a/b", "a/b.json", "a/b/c", "tests/nosuch"])
def test_paths_that_are_not_there(name: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"nor a model's name \(org/model\)'?: "):
        streamtok.load(name)
    with pytest.raises(FileNotFoundError, match=r"No such file"):
        streamtok.load(Path(name))


def test_a_known_name_is_no_path() -> None:
    with pytest.raises(FileNotFoundError, match=r"get_encoding takes this name"):
        streamtok.load("gpt2")


def test_nothing_is_imported_for_it(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer().save(str(path))
    code = (
        "import sys, streamtok; streamtok.load(sys.argv[1]); streamtok.load(sys.argv[2])\n"
        "streamtok.load(streamtok.get_encoding('gpt2'))\n"
        "print(*sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    loaded = set(python(code, path, tmp_path, env=env).split())
    assert "streamtok.formats.tokenizer_objects" in loaded
    others = {"tokenizers", "tiktoken", "sentencepiece", "mistral_common", "huggingface_hub"}
    assert not others & loaded


@pytest.mark.parametrize("mark", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE])
@pytest.mark.parametrize("pattern", [None, "gpt2"])
def test_a_byte_order_mark_is_named(mark: bytes, pattern: str | None, tmp_path: Path) -> None:
    tokens = "".join(f"{base64.b64encode(bytes([i])).decode()} {i}\n" for i in range(256))
    sound = {
        "x.tiktoken": tokens.encode(),
        "tokenizer.json": b"{}",
        "merges.txt": b"#version: 1",
    }
    for name, data in sound.items():
        (tmp_path / name).write_bytes(mark + data)
        kind = "UTF-8" if mark == codecs.BOM_UTF8 else "UTF-16"
        with pytest.raises(VocabularyError, match=f"{name}: .* byte order mark, of {kind}; save"):
            formats.load(tmp_path / name, pattern=pattern)
