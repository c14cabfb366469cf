"""Settings that change while calls go on, and settings that tokenizers refuses."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import tokenizers
from tokenizers import processors
from transformers import PreTrainedTokenizerFast

from streamtok._core.hf_rows import fill_rows, list_rows, pairs, span_rows
from streamtok.hf import DecodeStream, Encoding, Tokenizer, accelerate

from ..live_threads import together
from .shapes import said, told
from .test_matrix import written
from .test_tokenizer import pair_of

TEXTS = ["Hello, world! How are you?", "", "日本 <s> x</s> and more of it, and more"]
SETTINGS: list[Callable[[Any], Any]] = [
    lambda t: t.no_truncation(),
    lambda t: t.enable_truncation(100),
    lambda t: t.enable_truncation(5, stride=2),
    lambda t: t.enable_truncation(7, direction="left"),
    lambda t: t.enable_truncation(1),  # less than the special tokens of some
    lambda t: t.no_padding(),
    lambda t: t.enable_padding(length=9),
    lambda t: t.enable_padding(direction="left", pad_id=3, pad_to_multiple_of=4),
    lambda t: setattr(t, "encode_special_tokens", True),
    lambda t: setattr(t, "encode_special_tokens", False),
    lambda t: setattr(t, "post_processor", _template("<s> $A </s>")),
    lambda t: setattr(t, "post_processor", _template("$A")),
    lambda t: t.add_tokens(["world"]),
]


def _template(text: str) -> Any:
    return processors.TemplateProcessing(text, None, [("<s>", 1), ("</s>", 2)])


@contextmanager
def changing(tokenizer: Any, settings: list[Callable[[Any], Any]]) -> Iterator[None]:
    """Another thread changes the settings, round after round."""
    is_done = threading.Event()

    def change() -> None:
        while not is_done.is_set():
            for setting in settings:
                setting(tokenizer)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


CALLS: dict[str, Callable[[Any], Any]] = {
    "encode": lambda t: [t.encode(TEXTS[0]).ids, 0][:1],
    "encode_batch": lambda t: [one.ids for one in t.encode_batch(TEXTS)],
    "masks": lambda t: [
        [len(one), one.attention_mask, one.special_tokens_mask, [x.ids for x in one.overflowing]]
        for one in t.encode_batch(TEXTS)
    ],
    "real parts": lambda t: [
        [one.word_ids, one.offsets, one.tokens] for one in t.encode_batch(TEXTS)
    ],
    "pair": lambda t: t.encode(TEXTS[0], TEXTS[2]).ids,
    "fast": lambda t: [one.ids for one in t.encode_batch_fast(TEXTS, add_special_tokens=False)],
}


@pytest.mark.parametrize("kind", ["llama3", "bert"])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_goes_by_the_settings_of_one_moment(call: str, kind: str) -> None:
    ours, real = pair_of(kind)
    settings = SETTINGS if kind == "llama3" else SETTINGS[:10]
    possible = []
    for _ in range(2):  # in the first round, the settings of the end are not there yet
        for setting in settings:
            setting(real)
            found = said(lambda: CALLS[call](real))
            if found not in possible:
                possible.append(found)
    assert len(possible) > 2
    for setting in settings:
        setting(ours)

    def work() -> None:
        for _ in range(60):
            found = said(lambda: CALLS[call](ours))
            assert found in possible, found

    with changing(ours, settings):
        together(*[work] * 3)
    for tokenizer in (ours, real):
        for setting in settings:
            setting(tokenizer)
    assert said(lambda: CALLS[call](ours)) == said(lambda: CALLS[call](real))
    assert (ours.truncation, ours.padding) == (real.truncation, real.padding)


@pytest.mark.parametrize("tensors", ["np", None])
def test_a_call_of_transformers_goes_by_what_it_asks_for(tensors: str | None) -> None:
    """Whatever other threads ask the same tokenizer for."""
    tokenizer = accelerate(
        PreTrainedTokenizerFast(
            tokenizer_object=tokenizers.Tokenizer.from_str(written("llama3")), pad_token="</s>"
        )
    )
    backend = tokenizer.backend_tokenizer

    def ask(length: int) -> Any:
        return tokenizer(
            TEXTS, padding="max_length", truncation=True, max_length=length,
            padding_side="left" if length % 2 else "right", split_special_tokens=length < 20,
            return_tensors=tensors,
        )  # fmt: skip

    def rows(found: Any) -> Any:
        return [[*map(int, row)] for row in found.input_ids]

    lengths = 100, 7, 8, 31
    expected = {length: rows(ask(length)) for length in lengths}
    plain = [tokenizer(text).input_ids for text in TEXTS]

    def work() -> None:
        for turn in range(80):
            length = lengths[turn % 4]
            found = ask(length)
            assert rows(found) == expected[length]
            assert [one.ids for one in found.encodings] == expected[length]
            assert [tokenizer(text).input_ids for text in TEXTS] == plain

    with changing(backend, [*SETTINGS[:4], *SETTINGS[5:10]]):
        together(*[work] * 3)


def test_rows_that_do_not_fit() -> None:
    """Whatever is given, nothing is read or written outside."""
    ids = np.arange(6, dtype=np.uint32)
    ends = np.array([2, 6], np.int64)
    matrix, mask = np.zeros((2, 5), np.int64), np.ones((2, 5), np.int64)
    fill_rows(ids, ends, matrix, mask, (7,), (), 3, True, True, 9)
    assert matrix.tolist() == [[9, 9, 7, 0, 1], [9, 7, 3, 4, 5]]
    assert mask.tolist() == [[0, 0, 1, 1, 1], [0, 1, 1, 1, 1]]
    given = [ids, ends, matrix, mask, (7,), (), 3, False, True, 9]
    before = matrix.tolist()
    for at, wrong in (
        (6, -1), (6, -(1 << 40)), (4, (1, 2, 3)), (5, (1, 2)),
        (1, np.array([2], np.int64)), (1, np.array([2, 6, 6], np.int64)),
        (1, np.array([4, 2], np.int64)), (1, np.array([2, 7], np.int64)),
        (1, np.array([-1, 3], np.int64)),
        (2, np.zeros((2, 2), np.int64)), (2, np.zeros((3, 5), np.int64)),
        (3, np.zeros((2, 4), np.int64)), (3, np.zeros((1, 5), np.int64)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"row|ids|matrix"):
            fill_rows(*given[:at], wrong, *given[at + 1 :])
    assert matrix.tolist() == before
    table = Tokenizer.from_str(written("gpt2"))._now().compiled.encoding.definition.encoder.table
    listed = table, ids, ends, (7,), (), 3, False, 5, True, 9
    assert list_rows(*listed) == [[9, 9, 7, 0, 1], [9, 7, 2, 3, 4]]
    sizes, trims = np.ones(9, np.uint16), np.ones((3, 2), np.uint16)
    span_rows(ids, ends, ["ab", "abcd"], sizes, trims, False)  # id 5 has no trims
    for wrong in ([4, 2], [2, 7], [-1, 2]):
        wrong_ends = np.array(wrong, np.int64)
        with pytest.raises(ValueError, match="the ids of text"):
            list_rows(*listed[:2], wrong_ends, *listed[3:])
        with pytest.raises(ValueError, match="the ids of text"):
            span_rows(ids, wrong_ends, ["ab", "abcd"], sizes, None, False)
    with pytest.raises(ValueError, match="may keep -2 ids"):
        list_rows(*listed[:5], -2, *listed[6:])
    with pytest.raises(ValueError, match="2 texts have ids, but 1"):
        span_rows(ids, ends, ["ab"], sizes, None, False)
    with pytest.raises(ValueError, match="2 columns"):
        span_rows(ids, ends, ["ab", "abcd"], sizes, np.ones((9, 1), np.uint16), False)
    for spans in (np.zeros((5, 2), np.int64), np.zeros((6, 1), np.int64)):
        with pytest.raises(ValueError, match="6 ids and"):
            pairs(spans, ids, None, False)


# Settings that cannot be set again


def unusual(kind: str, how: str) -> tuple[Tokenizer, tokenizers.Tokenizer]:
    """A stride that is more than the special tokens leave, as files and calls bring it."""
    cut = {"max_length": 5, "stride": 4, "strategy": "LongestFirst", "direction": "Right"}
    if how == "file":
        text = json.dumps(json.loads(written(kind)) | {"truncation": cut})
        return Tokenizer.from_str(text), tokenizers.Tokenizer.from_str(text)
    made = pair_of(kind)
    for tokenizer in made:
        processor = tokenizer.post_processor
        tokenizer.post_processor = _template("$A")
        tokenizer.enable_truncation(5, stride=4)
        tokenizer.enable_padding(length=7)
        tokenizer.post_processor = processor if how == "post-processor" else _template("<s> $A")
    return made


@pytest.mark.parametrize("kind", ["lower", "bert", "llama3"])
@pytest.mark.parametrize("how", ["file", "post-processor", "template"])
def test_settings_outlast_whatever_raises(kind: str, how: str) -> None:
    ours, real = unusual(kind, how)
    for text in ("a", TEXTS[0]):
        for special in (True, False):
            for call in (
                lambda t, x=text, s=special: t.encode(x, add_special_tokens=s),
                lambda t, x=text, s=special: t.encode_batch([x, "b"], add_special_tokens=s),
            ):
                assert said(lambda c=call: c(ours)) == said(lambda c=call: c(real))
                assert (ours.truncation, ours.padding) == (real.truncation, real.padding)
    assert ours.to_str() == real.to_str()
    assert ours.engine == "streamtok"


def test_reading_an_encoding_leaves_the_settings() -> None:
    """Also while another thread looks at them."""
    ours, _ = pair_of("llama3")
    ours.enable_truncation(6, stride=1)
    ours.enable_padding(length=8)
    made = ours.encode_batch(TEXTS)
    ours.enable_truncation(9)
    settings = ours.truncation, ours.padding, False
    seen = []

    def look() -> None:
        for _ in range(300):
            seen.append((ours.real.truncation, ours.real.padding, ours.real.encode_special_tokens))

    thread = threading.Thread(target=look)
    thread.start()
    for one in made:
        _ = one.word_ids, one.overflowing
    thread.join()
    assert all(found == settings for found in seen)


# Encodings


@pytest.mark.parametrize("kind", ["gpt2", "llama3", "trimmed", "bert", "unigram"])
def test_parts_that_were_cut_off_are_padded_alike(kind: str) -> None:
    """In whatever order an encoding is asked, and by whomever it is changed."""
    ours, real = pair_of(kind)
    questions: dict[str, Callable[[Any], Any]] = {
        "word_ids": lambda e: e.word_ids,
        "offsets": lambda e: e.offsets,
        "tokens": lambda e: e.tokens,
        "parts": lambda e: [part.word_ids for part in e.overflowing],
        "pad": lambda e: e.pad(11, pad_id=4),
        "pad parts": lambda e: [part.pad(13, pad_id=5) for part in e.overflowing],
        "truncate": lambda e: e.truncate(4),
    }
    for length, direction in ((2, "left"), (3, "right"), (10, "right")):
        for tokenizer in (ours, real):
            tokenizer.enable_truncation(8, stride=1)
            tokenizer.enable_padding(length=length, direction=direction)
        for name, question in questions.items():
            mine, theirs = ours.encode(TEXTS[2] * 2), real.encode(TEXTS[2] * 2)
            earlier = mine.overflowing, theirs.overflowing
            assert question(mine) == question(theirs), name
            assert told(mine) == told(theirs), name
            assert [*map(told, earlier[0])] == [*map(told, earlier[1])], name


@pytest.mark.parametrize("template", ["$A:1 </s>", "<s>:2 $A:1", "<s>:1 $A:2 </s>:1"])
def test_types_of_parts_that_were_cut_off(template: str) -> None:
    ours, real = pair_of("gpt2")
    for tokenizer in (ours, real):
        tokenizer.post_processor = _template(template)
        tokenizer.enable_truncation(6, stride=1)
        tokenizer.enable_padding(length=8, pad_type_id=3)
    for text in (TEXTS[0], TEXTS[2]):
        mine, theirs = ours.encode(text), real.encode(text)
        assert mine.type_ids == theirs.type_ids
        assert [one.type_ids for one in mine.overflowing] == [
            one.type_ids for one in theirs.overflowing
        ]


def test_merge_and_post_process_take_both_kinds() -> None:
    ours, real = pair_of("lower")
    pad = {"length": 30, "pad_id": 3}
    for tokenizer in (ours, real):
        tokenizer.enable_truncation(6)
        tokenizer.enable_padding(**pad)
    plain = [t.encode(TEXTS[0], add_special_tokens=False) for t in (ours, real)]
    for mixed in ([plain[0], plain[1]], [plain[1], plain[0]], [plain[0]]):
        expected = tokenizers.Encoding.merge([plain[1]] * len(mixed))
        assert told(Encoding.merge(mixed)) == told(type(plain[0]).merge(mixed)) == told(expected)
    assert told(ours.post_process(plain[0])) == told(ours.post_process(plain[1]))
    for copied in (copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))):
        again = copied(plain[0])
        assert type(again) is tokenizers.Encoding
        assert told(real.post_process(again)) == told(real.post_process(plain[1]))
        again.pad(40)
        assert told(plain[0]) == told(plain[1])


def test_all_encodings_are_of_one_class() -> None:
    ours, _ = pair_of("bert")
    one, two = ours.encode("a"), ours.encode("a", "b")
    for made in (one, two, pickle.loads(pickle.dumps(one)), Encoding.merge([one, two])):
        assert isinstance(made, Encoding)
        assert isinstance(made, tokenizers.Encoding)
    assert not isinstance("a", Encoding)


def test_pickles_where_streamtoks_class_is_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, real = pair_of("bert")
    made = real.encode("a", "b")
    before = pickle.dumps(made)
    monkeypatch.setattr(tokenizers, "Encoding", Encoding)
    for one in (made, ours.encode("a", "b"), ours.encode("a")):
        again = pickle.loads(pickle.dumps(one))
        assert isinstance(again, tokenizers.Encoding)
        assert told(again) == told(one)
    monkeypatch.undo()
    assert pickle.dumps(made) == before
    assert b"streamtok" not in before


@pytest.mark.parametrize("is_cut", [True, False])
def test_the_tokens_of_a_post_processor(is_cut: bool) -> None:
    """It has texts of its own for its ids."""
    ours, real = pair_of("gpt2")
    template = processors.TemplateProcessing(
        single="[begin] $A [both]:1",
        special_tokens=[
            ("[begin]", 1),
            {"id": "[both]", "ids": [2, 40], "tokens": ["[end]", "[never]"]},
        ],
    )
    for tokenizer in (ours, real):
        tokenizer.post_processor = template
        tokenizer.enable_padding(length=9)
        if is_cut:
            tokenizer.enable_truncation(5)
    for text in TEXTS:
        assert ours.encode(text).tokens == real.encode(text).tokens
        assert told(ours.encode(text)) == told(real.encode(text))
        assert told(ours.encode_batch_fast([text])[0]) == told(real.encode_batch_fast([text])[0])


# What is compiled


def test_a_change_while_others_encode() -> None:
    """What is compiled from before the change is not kept after it."""
    ours, real = pair_of("gpt2")

    def encode() -> None:
        while not is_done.is_set():
            ours.encode(TEXTS[0])

    is_done = threading.Event()
    threads = [threading.Thread(target=encode) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(30):
            name = f"wor{'l' * number}"
            ours.add_tokens([name])
            real.add_tokens([name])
            assert ours.encode(f"a {name}d").ids == real.encode(f"a {name}d").ids
    finally:
        is_done.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("name", ["max_input_chars_per_word", "continuing_subword_prefix"])
def test_a_setting_of_a_model_that_a_caller_has(name: str) -> None:
    ours, real = pair_of("bert")
    assert ours.encode(TEXTS[0]).ids == real.encode(TEXTS[0]).ids
    for model in (ours.model, real.model):
        setattr(model, name, 3 if name.startswith("max") else "@@")
    assert ours.encode(TEXTS[0]).ids == real.encode(TEXTS[0]).ids


def test_a_part_that_changes_leaves_encodings_of_copies() -> None:
    ours, real = pair_of("gpt2")
    twin = copy.deepcopy(ours)
    expected = told(real.encode(TEXTS[0]))
    made = ours.encode(TEXTS[0]), twin.encode(TEXTS[0])
    ours.encode("x")
    part = ours.pre_tokenizer
    part.add_prefix_space = True
    part.use_regex = False
    assert [*map(told, made)] == [expected] * 2
    assert told(twin.encode(TEXTS[0])) == expected
    assert told(ours.encode(TEXTS[0])) != expected


def test_a_token_that_is_added_again_and_no_longer_special() -> None:
    """It stays special there, until the tokenizer is copied."""
    ours, real = pair_of("gpt2")
    for tokenizer in (ours, real):
        tokenizer.add_special_tokens(["<q>"])
        tokenizer.add_tokens(["<q>"])
        tokenizer.encode_special_tokens = True
    for mine, theirs in ((ours, real), (copy.deepcopy(ours), copy.deepcopy(real))):
        text = "a<q> b"
        assert told(mine.encode(text)) == told(theirs.encode(text))
        ids = [*range(20), theirs.token_to_id("<q>")]
        assert mine.decode(ids) == theirs.decode(ids)
        stream = DecodeStream(skip_special_tokens=True)
        assert "".join(stream.step(mine, id) or "" for id in ids) == theirs.decode(ids)


def test_tokens_whose_characters_are_in_the_byte_alphabet() -> None:
    """tokenizers decodes them to those bytes, and so does streamtok in its place."""
    ours, real = pair_of("gpt2")
    for tokenizer in (ours, real):
        tokenizer.add_tokens(["đem", "õ", "Ġx", "日本"])
        tokenizer.add_special_tokens(["<é>", "Ċ"])
    text = "a đem õ Ġx 日本<é>Ċ b"
    ids = real.encode(text).ids
    assert ours.encode(text).ids == ids
    for skip in (True, False):
        assert ours.decode(ids, skip) == real.decode(ids, skip)
        stream = DecodeStream(skip_special_tokens=skip)
        text = "".join(stream.step(ours, id) or "" for id in ids)
        assert text == real.decode(ids, skip)
