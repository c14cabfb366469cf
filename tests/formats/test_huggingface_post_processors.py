"""Post-processors of a tokenizer.json: the ids of tokenizers with add_special_tokens=True."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from streamtok import formats
from streamtok.engines.template import NO_TEMPLATE
from streamtok.errors import VocabularyError
from streamtok.formats.packed import dumps_packed, loads_packed
from tests.conftest import chunked, stream_ids
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
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    model = models.BPE(vocab={text: i for i, text in enumerate(alphabet)}, merges=[])
    made = Tokenizer(model)
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([CLS[0], SEP[0], X[0]])
    if post_processor is not None:
        made.post_processor = post_processor
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_those_of_tokenizers(kind: str, tmp_path: Path) -> None:
    theirs = tokenizer(KINDS[kind]())
    path = tmp_path / "tokenizer.json"
    theirs.save(str(path))
    enc = formats.load(path)
    settings: dict[str, Any] = {"allowed_special": "all", "add_special_tokens": True}
    for text in TEXTS:
        expected = theirs.encode(text, add_special_tokens=True).ids
        assert enc.encode(text, **settings) == expected
        for size in (1, 2, 5, 100):
            stream = enc.stream_encoder(**settings)
            assert stream_ids(stream, chunked(text.encode(), size)) == expected
        plain = theirs.encode(text, add_special_tokens=False).ids
        assert enc.encode(text, allowed_special="all") == plain
    rows = [one.ids for one in theirs.encode_batch(TEXTS)]
    assert enc.encode_batch(TEXTS, **settings) == rows


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path, again = tmp_path / "a.json", tmp_path / "b.json"
    tokenizer(KINDS["several ids"]()).save(str(path))
    enc = formats.load(path)
    formats.save_huggingface(enc, again)
    assert formats.load(again).definition.template == enc.definition.template
    theirs = Tokenizer.from_file(str(again))
    for text in TEXTS:
        ids = enc.encode(text, allowed_special="all", add_special_tokens=True)
        assert theirs.encode(text).ids == ids
    pair = theirs.encode("ab", "ab").ids
    assert pair == [
        *enc.definition.template.before,
        *enc.encode("ab") * 2,
        *enc.definition.template.after,
    ]


def test_names_of_ids_are_not_confused(tmp_path: Path) -> None:
    theirs = tokenizer()
    theirs.add_special_tokens(["#300"])
    names = [("#300", 300), ("s", 259)]
    theirs.post_processor = Template(single="#300 s $A", special_tokens=names)
    path = tmp_path / "tokenizer.json"
    theirs.save(str(path))
    enc = formats.load(path)
    assert enc.definition.template == ((300, 259), ())
    formats.save_huggingface(enc, path)
    assert Tokenizer.from_file(str(path)).encode("").ids == [300, 259]


def test_the_packed_form_has_the_template(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer(KINDS["several ids"]()).save(str(path))
    enc = formats.load(path)
    packed = dumps_packed(enc)
    assert loads_packed(packed).definition.template == enc.definition.template == ((), (3, 257, 3))
    for forged in ([[], ["x"]], [[-1], []], [[2**32], []], [[True], []], [[]], 5, None):
        with pytest.raises(VocabularyError, match="template"):
            loads_packed(closed(opened(packed) | {"template": forged}))


def refused(post_processor: object, tmp_path: Path) -> str:
    value = json.loads(tokenizer().to_str())
    value["post_processor"] = post_processor
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(value))
    with pytest.raises(VocabularyError) as info:
        formats.load(path)
    message = str(info.value)
    assert message.startswith(f"{path}: post_processor")
    return message.removeprefix(f"{path}: post_processor")


TEXT = {"Sequence": {"id": "A", "type_id": 0}}
MARK = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
KNOWN = {"[CLS]": {"id": "[CLS]", "ids": [256], "tokens": ["[CLS]"]}}


def ids_of(ids: object) -> object:
    return {"[CLS]": {"ids": ids}}


_PLACE = ": special_tokens: [CLS]: ids"


@pytest.mark.parametrize(
    ("single", "known", "message"),
    [
        ([MARK], KNOWN, ": single: expected the text once in a template, found it 0 times"),
        ([TEXT, MARK, TEXT], KNOWN, ": single: expected the text once in a template, found it 2"),
        ([{"Sequence": {"id": "B", "type_id": 0}}], {}, ": single[0]: expected the text 'A'"),
        ([MARK, TEXT], {}, ": single[0]: the special token '[CLS]' is not in special_tokens"),
        ([TEXT, {"Other": {}}], {}, ": single[1]: expected a Sequence or a SpecialToken, found ['"),
        ([MARK, TEXT], ids_of([-1]), f"{_PLACE}[0]: an id must be in"),
        ([MARK, TEXT], ids_of([2**32]), f"{_PLACE}[0]: an id must be in"),
        ([MARK, TEXT], ids_of("x"), f"{_PLACE}: expected an array"),
        ([MARK, TEXT], ids_of([True]), f"{_PLACE}[0]: expected an integer"),
        ([MARK, TEXT], ids_of([1] * 5000), ": single[0]: more than 4096 ids around a text are"),
        (None, {}, ": single: expected an array, found None"),
    ],
)
def test_bad_templates(single: object, known: object, message: str, tmp_path: Path) -> None:
    value = {"type": "TemplateProcessing", "single": single, "special_tokens": known}
    assert refused(value, tmp_path).startswith(message)


def test_bad_processors(tmp_path: Path) -> None:
    bert = {"type": "BertProcessing", "cls": ["[CLS]", 256], "sep": ["[SEP]"]}
    assert refused(bert, tmp_path) == ": sep: expected a text and its id"
    assert refused({**bert, "sep": [5, 5]}, tmp_path).startswith(": sep[0]: expected a string")
    level, second = {"type": "ByteLevel"}, {**bert, "sep": ["[SEP]", 1]}
    for steps, message in (
        ([level, second, second], ": processors[2]: a post-processor after another one, which is"),
        ([{"type": "Other"}], ": processors[0]: the post-processor 'Other' is not supported"),
    ):
        assert refused({"type": "Sequence", "processors": steps}, tmp_path).startswith(message)
    assert refused([], tmp_path).startswith(": expected an object")


def test_no_template_without_a_post_processor(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer().save(str(path))
    assert formats.load(path).definition.template == NO_TEMPLATE
