"""Folders of models: what their other files add to a vocabulary file that does not say it all."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

import streamtok
from streamtok.engines.template import NO_TEMPLATE
from streamtok.errors import VocabularyError
from streamtok.formats.detection import read_together
from streamtok.formats.packed import dumps_packed, loads_packed
from streamtok.patterns.named import PATTERNS
from tests.conftest import chunked, stream_ids
from tests.encodings import make_encoding
from tests.formats.reading import of_bytes
from tests.sentencepiece_models import trained


def write(folder: Path, **files: Any) -> Path:
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


def pair(folder: Path) -> Tokenizer:
    """Writes vocab.json and merges.txt, and gives what has them."""
    made = of_bytes(merges=[("h", "e"), ("l", "l")])
    made.model.save(str(folder))
    return made


def test_merges_with_settings_beside_them(tmp_path: Path) -> None:
    pair(tmp_path)
    write(tmp_path, tokenizer_config={"tokenizer_class": "GPT2Tokenizer"})
    with pytest.raises(VocabularyError, match=r"let transformers write a tokenizer\.json"):
        streamtok.load(tmp_path)
    assert streamtok.load(tmp_path, pattern="gpt2").encode("he") == [256]
    (tmp_path / "tokenizer_config.json").unlink()
    with pytest.raises(VocabularyError, match=r"these merges are not GPT-2's: give a pattern"):
        streamtok.load(tmp_path)


def test_a_tokenizer_json_says_everything(tmp_path: Path) -> None:
    pair(tmp_path).save(str(tmp_path / "tokenizer.json"))
    write(tmp_path, tokenizer_config={"added_tokens_decoder": {"258": {"content": "<x>"}}})
    enc = streamtok.load(tmp_path)
    assert enc.special_tokens_set == set()
    assert enc.n_vocab == 258
    read = {Path(path).name for path in read_together(str(tmp_path))}
    assert {"tokenizer.json", "tokenizer_config.json", "added_tokens.json"} <= read


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "tokenizer.model").write_bytes(trained())
    return tmp_path


def beside(entry: dict[str, Any]) -> dict[str, Any]:
    """A configuration with a token."""
    return {"added_tokens_decoder": {"5000": entry}}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"added_tokens_decoder": {"x": {"content": "a"}}}, "expected an id, found 'x'"),
        ({"added_tokens_decoder": {"5": {}}}, "content: expected a string, found None"),
        ({"added_tokens_decoder": []}, "expected an object"),
        ({"bos_token": 5}, "bos_token"),
        ({"add_bos_token": "yes"}, "add_bos_token: expected true or false"),
        ({"add_bos_token": True, "bos_token": "<none>"}, "bos_token '<none>' is not a token"),
        ({"additional_special_tokens": "x"}, "additional_special_tokens: expected an array"),
        ([], "expected an object"),
        (beside({"content": "<s>", "special": True}), r"'<s>' has id 5000, in the model 1$"),
        (beside({"content": "<x>", "lstrip": True}), "lstrip of the token '<x>' is not supported"),
        (beside({"content": "", "special": True}), "''|empty"),
    ],
)
def test_bad_files(config: Any, message: str, model: Path) -> None:
    write(model, tokenizer_config=config)
    with pytest.raises(VocabularyError, match=message) as info:
        streamtok.load(model)
    assert str(model) in str(info.value)


# SentencePiece


def test_a_model_by_itself(model: Path) -> None:
    enc = streamtok.load(model)
    assert enc.definition.template == NO_TEMPLATE
    assert enc.digest == streamtok.load(model / "tokenizer.model").digest
    write(model, tokenizer_config={"tokenizer_class": "OtherTokenizer", "bos_token": "<s>"})
    assert streamtok.load(model).digest == enc.digest


def test_tokens_beside_a_model(model: Path) -> None:
    plain = streamtok.load(model)
    top = plain.n_vocab
    by_id = {
        "1": {"content": "<s>", "special": True, "lstrip": True},  # the model's own
        str(top): {"content": "<|im|>", "special": True},
        str(top + 1): {"content": "<new>", "special": False},
    }
    write(model, tokenizer_config={"added_tokens_decoder": by_id}, added_tokens={"<b>": top + 2})
    write(model, special_tokens_map={"additional_special_tokens": ["<b>", "<nobody's>"]})
    enc = streamtok.load(model)
    more = {"<|im|>": top, "<b>": top + 2}
    assert enc._special_tokens == {**plain._special_tokens, **more}
    assert dict(enc.definition.rules.added_tokens) == {
        **dict(plain.definition.rules.added_tokens),
        "<new>": top + 1,
    }
    text = "so <|im|>it <new>is<b>"
    ids = enc.encode(text, allowed_special="all")
    assert [i for i in ids if i >= top] == [top, top + 1, top + 2]
    assert enc.decode(ids) == text
    stream = enc.stream_encoder(allowed_special="all")
    assert stream_ids(stream, chunked(text.encode(), 1)) == ids


@pytest.mark.parametrize(
    ("config", "before", "after"),
    [
        ({"tokenizer_class": "LlamaTokenizer"}, ["<s>"], []),
        ({"tokenizer_class": "LlamaTokenizer", "add_bos_token": False}, [], []),
        ({"tokenizer_class": "X", "add_bos_token": True, "add_eos_token": True}, ["<s>"], ["</s>"]),
        ({"add_eos_token": True, "eos_token": {"content": "<s>"}}, [], ["<s>"]),
        ({"tokenizer_class": "GemmaTokenizer", "bos_token": "</s>"}, ["</s>"], []),
    ],
)
def test_templates_of_models(
    config: dict[str, Any], before: list[str], after: list[str], model: Path
) -> None:
    write(model, tokenizer_config=config)
    enc = streamtok.load(model)
    special = enc._special_tokens
    assert enc.definition.template == (
        tuple(map(special.get, before)),
        tuple(map(special.get, after)),
    )
    expected = [special[t] for t in before] + enc.encode("a b") + [special[t] for t in after]
    assert enc.encode("a b", add_special_tokens=True) == expected
    assert stream_ids(enc.stream_encoder(add_special_tokens=True), ["a", " b"]) == expected


# Which token ends a text


def _with_ends(folder: Path) -> None:
    """A tokenizer.json with two tokens that may end a text."""
    specials = {"<|endoftext|>": 50256, "<|im_end|>": 50257, "<|eom|>": 50258}
    made = make_encoding(PATTERNS["gpt2"], special=specials)
    streamtok.formats.save_huggingface(made, folder / "tokenizer.json")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, (50256,)),
        ({"tokenizer_config.json": {"eos_token": "<|im_end|>"}}, (50257,)),
        ({"special_tokens_map.json": {"eos_token": {"content": "<|im_end|>"}}}, (50257,)),
        ({"generation_config.json": {"eos_token_id": [50258, 50256]}}, (50258, 50256)),
        ({"config.json": {"eos_token_id": 50257}}, (50257,)),
        ({"config.json": {"text_config": {"eos_token_id": 50257}}}, (50257,)),
        (
            {
                "tokenizer_config.json": {"eos_token": "<|im_end|>"},
                "special_tokens_map.json": {"eos_token": "<|eom|>"},
                "generation_config.json": {"eos_token_id": [50256, 50257, 50258]},
                "config.json": {"eos_token_id": 5},
            },
            (50257, 50256, 50258),
        ),
        ({"tokenizer_config.json": {"eos_token": "<|none|>"}}, (50256,)),  # not a token
        ({"config.json": {"eos_token_id": [True, -1, 1 << 40, None, "x"]}}, (50256,)),
        ({"config.json": {"eos_token_id": None, "text_config": None}}, (50256,)),
    ],
    ids=str,
)
def test_the_tokens_that_end_a_text(
    tmp_path: Path, files: dict[str, Any], expected: tuple[int, ...]
) -> None:
    _with_ends(tmp_path)
    for name, value in files.items():
        (tmp_path / name).write_text(json.dumps(value))
    enc = streamtok.load(tmp_path)
    for one in (enc, loads_packed(dumps_packed(enc)), pickle.loads(pickle.dumps(enc))):
        assert (one.eos_token, one.eos_tokens, one.eot_token) == (expected[0], expected, 50256)
    assert streamtok.load(tmp_path / "tokenizer.json").eos_token == 50256  # one file alone
    assert enc.digest == streamtok.load(tmp_path / "tokenizer.json").digest


def test_no_token_ends_a_text(tmp_path: Path) -> None:
    enc = make_encoding()
    assert enc.eos_tokens == ()
    with pytest.raises(KeyError):
        enc.eos_token  # noqa: B018
    _with_ends(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(VocabularyError, match=r"config\.json"):
        streamtok.load(tmp_path)


def test_truncation_and_padding_are_kept(tmp_path: Path) -> None:
    """tokenizers writes and reads what it has set; the ids are those without."""
    _with_ends(tmp_path)
    theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    theirs.enable_truncation(3, stride=1)
    theirs.enable_padding(pad_id=50256, pad_token="<|endoftext|>", length=8)
    theirs.save(str(tmp_path / "set.json"))
    enc = streamtok.load(tmp_path / "set.json", cache=False)
    written = json.loads((tmp_path / "set.json").read_text())
    assert (enc.truncation, enc.padding) == (written["truncation"], written["padding"])
    text = "a text of more than three tokens"
    assert len(enc.encode(text)) > 3
    streamtok.formats.save_huggingface(enc, tmp_path / "again.json")
    again = Tokenizer.from_file(str(tmp_path / "again.json"))
    assert again.encode(text).ids == theirs.encode(text).ids
    assert loads_packed(dumps_packed(enc)).truncation == written["truncation"]
