"""Settings that change while calls go on, and settings that tokenizers refuses."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tokenizers
from tokenizers import processors

from streamtok._core.hf_rows import fill_rows, list_rows
from streamtok.hf import DecodeStream, Encoding, Tokenizer

from ..live_threads import together
from ..long.calls import hf_settings
from .shapes import said, told
from .test_matrix import written
from .test_tokenizer import pair_of

TEXTS = ["Hello, world! How are you?", "", "日本 <s> x</s> and more of it, and more"]


def _template(text: str) -> Any:
    return processors.TemplateProcessing(text, None, [("<s>", 1), ("</s>", 2)])


@pytest.mark.parametrize("seed", range(4))
def test_a_call_goes_by_the_settings_of_one_moment(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m tests.long hf-settings` tries more."""
    monkeypatch.setattr(hf_settings, "SECONDS", 0.4)
    assert hf_settings.one_round(seed)


SETTINGS: list[Callable[[Any], Any]] = [
    lambda t: t.no_truncation(),
    lambda t: t.enable_truncation(5, stride=2),
    lambda t: t.enable_truncation(7, direction="left"),
    lambda t: t.enable_truncation(1),  # less than the special tokens of some
    lambda t: t.no_padding(),
    lambda t: t.enable_padding(direction="left", pad_id=3, pad_to_multiple_of=4),
    lambda t: setattr(t, "encode_special_tokens", True),
    lambda t: setattr(t, "encode_special_tokens", False),
    lambda t: setattr(t, "post_processor", _template("<s> $A </s>")),
    lambda t: setattr(t, "post_processor", _template("$A")),
]


def test_all_that_an_encoding_says_goes_by_the_settings_of_one_moment() -> None:
    ours, real = pair_of("llama3")
    batch = [TEXTS[2], "a"]
    possible = []
    for _ in range(2):  # in the first round, the settings of the end are not there yet
        for setting in SETTINGS:
            setting(real)
            possible.append(said(lambda: real.encode_batch(batch)))
            setting(ours)
    is_done = threading.Event()

    def change() -> None:
        while not is_done.is_set():
            for setting in SETTINGS:
                setting(ours)

    def work() -> None:
        try:
            for _ in range(60):
                found = said(lambda: ours.encode_batch(batch))
                assert found in possible, found
        finally:
            is_done.set()

    together(change, work, work)


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
    for wrong in ([4, 2], [2, 7], [-1, 2]):
        wrong_ends = np.array(wrong, np.int64)
        with pytest.raises(ValueError, match="the ids of text"):
            list_rows(*listed[:2], wrong_ends, *listed[3:])
    with pytest.raises(ValueError, match="may keep -2 ids"):
        list_rows(*listed[:5], -2, *listed[6:])


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
            tokenizer.enable_padding(length=length, direction=direction, pad_type_id=3)
            if kind == "gpt2":
                tokenizer.post_processor = _template("<s>:1 $A:2 </s>:1")
        for name, question in questions.items():
            mine, theirs = ours.encode(TEXTS[2] * 2), real.encode(TEXTS[2] * 2)
            earlier = mine.overflowing, theirs.overflowing
            assert question(mine) == question(theirs), name
            assert told(mine) == told(theirs), name
            assert [*map(told, earlier[0])] == [*map(told, earlier[1])], name


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
        assert isinstance(made, tokenizers.Encoding)


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
