"""Post-processors of a tokenizer.json: the ids of tokenizers with add_special_tokens=True."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, processors

from streamtok import formats
from streamtok.formats.packed import dumps_packed, loads_packed
from tests.conftest import chunked, stream_ids
from tests.formats.reading import both, check, of_bytes, read, refused
from tests.oracles import refuses
from tests.packed_files import closed, opened

CLS, SEP, X = ("[CLS]", 256), ("[SEP]", 257), ("[X]", 258)
TEXTS = ["", "ab", "hello wörld\n  x ", "a[SEP]b [X]"]
Template = processors.TemplateProcessing
KINDS: dict[str, Any] = {
    "none": lambda: None,
    "ByteLevel": lambda: processors.ByteLevel(trim_offsets=False),
    "begin": lambda: Template(single="[CLS] $A", special_tokens=[CLS]),
    "end": lambda: Template(single="$A [SEP]:1", special_tokens=[SEP]),
    "both": lambda: Template(
        single="[CLS] [X] $A:1 [SEP]",
        pair="[CLS] $A [SEP] $B:1",
        special_tokens=[CLS, SEP, X],
    ),
    "several ids": lambda: Template(
        single="$0 end",
        special_tokens=[{"id": "end", "ids": [3, 257, 3], "tokens": ["a", "b", "c"]}],
    ),
    "no ids": lambda: Template(
        single="none $0", special_tokens=[{"id": "none", "ids": [], "tokens": []}]
    ),
    "an id that no token has": lambda: Template(single="[Y] $A", special_tokens=[("[Y]", 999)]),
    "Bert": lambda: processors.BertProcessing(SEP, CLS),
    "Roberta": lambda: processors.RobertaProcessing(SEP, CLS),
    "Sequence": lambda: processors.Sequence(
        [
            processors.ByteLevel(),
            processors.Sequence([Template(single="[X] $A", special_tokens=[X])]),
            processors.ByteLevel(),
        ]
    ),
}


def tokenizer(post_processor: Any = None) -> Tokenizer:
    made = of_bytes(CLS[0], SEP[0], X[0])
    if post_processor is not None:
        made.post_processor = post_processor
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_those_of_tokenizers(kind: str) -> None:
    theirs = tokenizer(KINDS[kind]())
    enc = check(theirs, TEXTS)
    settings: dict[str, Any] = {"allowed_special": "all", "add_special_tokens": True}
    rows = [theirs.encode(text).ids for text in TEXTS]
    for text, expected in zip(TEXTS, rows, strict=True):
        assert enc.encode(text, **settings) == expected
        for size in (1, 2, 5, 100):
            stream = enc.stream_encoder(**settings)
            assert stream_ids(stream, chunked(text.encode(), size)) == expected
    assert enc.encode_batch(TEXTS, **settings) == rows


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    enc = read(tokenizer(KINDS["several ids"]()))
    formats.save_huggingface(enc, tmp_path / "tokenizer.json")
    theirs, again = both((tmp_path / "tokenizer.json").read_text("utf-8"))
    assert again.definition.template == enc.definition.template == ((), (3, 257, 3))
    for text in TEXTS:
        ids = enc.encode(text, allowed_special="all", add_special_tokens=True)
        assert theirs.encode(text).ids == ids
    assert theirs.encode("ab", "ab").ids == [*enc.encode("ab") * 2, 3, 257, 3]


def test_names_of_ids_are_not_confused(tmp_path: Path) -> None:
    theirs = tokenizer()
    theirs.add_special_tokens(["#300"])
    names = [("#300", 300), ("s", 259)]
    theirs.post_processor = Template(single="#300 s $A", special_tokens=names)
    enc = read(theirs)
    assert enc.definition.template == ((300, 259), ())
    formats.save_huggingface(enc, tmp_path / "x.json")
    assert Tokenizer.from_file(str(tmp_path / "x.json")).encode("").ids == [300, 259]


def test_the_packed_form_has_the_template() -> None:
    enc = read(tokenizer(KINDS["several ids"]()))
    packed = dumps_packed(enc)
    assert loads_packed(packed).definition.template == enc.definition.template == ((), (3, 257, 3))
    for forged in ([[], ["x"]], [[-1], []], [[2**32], []], [[True], []], [[]], 5, None):
        wrong = closed(opened(packed) | {"template": forged})
        refuses(loads_packed, wrong, match="template")


TEXT = {"Sequence": {"id": "A", "type_id": 0}}
MARK = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
KNOWN = {"[CLS]": {"id": "[CLS]", "ids": [256], "tokens": ["[CLS]"]}}


def ids_of(ids: object) -> object:
    return {"[CLS]": {"ids": ids}}


_PLACE = "special_tokens: [CLS]: ids"


LEVEL, OTHER = {"type": "ByteLevel"}, {"type": "Other"}
BERT = {"type": "BertProcessing", "cls": ["[CLS]", 256], "sep": ["[SEP]", 1]}


def template(single: object, known: object = KNOWN) -> object:
    return {"type": "TemplateProcessing", "single": single, "special_tokens": known}


def sequence(*steps: object) -> object:
    return {"type": "Sequence", "processors": steps}


@pytest.mark.parametrize(
    ("post_processor", "message"),
    [
        (template([MARK]), "single: expected the text once in a template, found it 0 times"),
        (template([TEXT, MARK, TEXT]), "single: expected the text once in a template, found it 2"),
        (template([{"Sequence": {"id": "B", "type_id": 0}}]), "single[0]: expected the text 'A'"),
        (template([MARK, TEXT], {}), "single[0]: the special token '[CLS]' is not in special_tok"),
        (template([TEXT, {"Other": {}}]), "single[1]: expected a Sequence or a SpecialToken, fo"),
        (template([MARK, TEXT], ids_of([-1])), f"{_PLACE}[0]: an id must be in"),
        (template([MARK, TEXT], ids_of([2**32])), f"{_PLACE}[0]: an id must be in"),
        (template([MARK, TEXT], ids_of("x")), f"{_PLACE}: expected an array"),
        (template([MARK, TEXT], ids_of([True])), f"{_PLACE}[0]: expected an integer"),
        (template([MARK, TEXT], ids_of([1] * 5000)), "single[0]: more than 4096 ids around"),
        (template(None), "single: expected an array, found None"),
        (BERT | {"sep": ["[SEP]"]}, "sep: expected a text and its id"),
        (BERT | {"sep": [5, 5]}, "sep[0]: expected a string"),
        (sequence(LEVEL, BERT, BERT), "processors[2]: a post-processor after another one, which"),
        (sequence(OTHER), "processors[0]: the post-processor 'Other' is not supported"),
        ([], "expected an object"),
    ],
)
def test_bad_processors(post_processor: object, message: str) -> None:
    file = json.loads(tokenizer().to_str()) | {"post_processor": post_processor}
    refused(file, re.escape(f"post_processor: {message}"))
