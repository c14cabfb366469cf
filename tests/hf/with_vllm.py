"""The plug-in inside vLLM itself: what vLLM answers with the real tokenizer and with streamtok.

    nox -s vllm

vLLM takes 6 GB, so this file is not collected with the other tests. Every tokenizer is loaded
twice by vLLM's own `get_tokenizer` from one folder that is made here: before vLLM loads its
plug-ins, and after. No processor for graphics and no network are needed.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import json
import pickle
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import vllm.plugins
from vllm.sampling_params import SamplingParams
from vllm.tokenizers import get_tokenizer, maybe_make_thread_pool
from vllm.v1.engine import EngineCoreRequest
from vllm.v1.engine.detokenizer import (
    FastIncrementalDetokenizer,
    IncrementalDetokenizer,
    SlowIncrementalDetokenizer,
)

import streamtok.hf

from .shapes import KINDS, TEXTS
from .test_transformers import folder

CHAT = [
    {"role": "user", "content": "Hi <s> there, naïve 日本語 🎉"},
    {"role": "assistant", "content": "Hello, you!"},
    {"role": "user", "content": TEXTS[8]},
]
# Whole characters without U+FFFD. Where a prompt ends inside a character, or an answer has a
# genuine U+FFFD, the stream of tokenizers is at fault, and streamtok's need not do the same.
ANSWERS = [
    "",
    "Hello, world! How are you? STOP and more",
    "naïve 日本語のテキスト 🎉 party \U0001f468\u200d\U0001f469, don't",
    "<s> one</s><s></s> two [CLS] under <|im_start|>user\nhi<|im_end|> <pad>",
    "  two  spaces\n\nand STO STOP",
]


@functools.cache
def model_folder(kind: str) -> str:
    """A model's folder with a tokenizer of this kind, for this process."""
    Path(folder(kind), "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    return folder(kind)


@functools.cache
def loaded(kind: str) -> tuple[Any, Any]:
    """The tokenizer that vLLM has with tokenizers, and the one that it has with the plug-in."""
    real = load(kind, "")
    return real, load(kind, "1")


def load(kind: str, variable: str) -> Any:
    with plug_in(variable):
        return get_tokenizer(model_folder(kind))


@contextlib.contextmanager
def plug_in(variable: str) -> Iterator[None]:
    """vLLM after it has loaded its plug-ins, with this value of the variable."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STREAMTOK_VLLM", variable)
        patch.setattr(vllm.plugins, "plugins_loaded", False)
        vllm.plugins.load_general_plugins()
        try:
            yield
        finally:
            streamtok.hf.unpatch_transformers()


@pytest.mark.parametrize("variable", ["", "0"])
def test_the_plug_in_is_off_unless_asked_for(variable: str) -> None:
    assert type(load("gpt2", variable)._tokenizer) is tokenizers.Tokenizer
    real, ours = loaded("gpt2")
    assert type(real._tokenizer) is tokenizers.Tokenizer
    assert type(ours._tokenizer) is streamtok.hf.Tokenizer
    assert ours._tokenizer.engine == "streamtok"


def answers(tokenizer: Any) -> Iterator[tuple[str, Any]]:
    """What vLLM asks of a tokenizer beyond `CALLS` of `test_transformers.py`."""
    for name in (
        "all_special_ids", "all_special_tokens", "max_token_id", "max_chars_per_token", "is_fast",
        "bos_token_id", "eos_token_id", "pad_token_id", "vocab_size", "truncation_side",
    ):  # fmt: skip
        yield name, getattr(tokenizer, name)
    for special, cut in itertools.product((True, False), (None, True)):
        options = {"truncation": cut, "max_length": cut and 5, "add_special_tokens": special}
        yield f"encode {options}", [tokenizer.encode(text, **options) for text in TEXTS]
        yield f"call {options}", tokenizer(TEXTS, **options).data
    ids = [tokenizer.encode(text) for text in TEXTS]
    for skip in (True, False):
        yield f"decode {skip}", [tokenizer.decode(one, skip_special_tokens=skip) for one in ids]
        tokens = [tokenizer.convert_ids_to_tokens(one, skip_special_tokens=skip) for one in ids]
        yield f"tokens {skip}", tokens
        yield f"texts {skip}", [tokenizer.convert_tokens_to_string(one) for one in tokens]
    yield "chat", tokenizer.apply_chat_template(CHAT, return_dict=False)


@pytest.mark.parametrize("kind", KINDS)
def test_answers(kind: str) -> None:
    real, ours = loaded(kind)
    expected = dict(answers(real))
    with plug_in("1"):
        for name, found in answers(ours):
            assert (name, found) == (name, expected.pop(name))
    assert not expected


@pytest.mark.parametrize("kind", ["llama3", "llama2", "unigram"])
@pytest.mark.parametrize("is_pickled", [False, True])
def test_the_pool_of_threads(kind: str, is_pickled: bool) -> None:
    """More threads than the pool has copies; vLLM makes more of them then."""
    real, ours = loaded(kind)
    pool = maybe_make_thread_pool(copy.copy(ours), copies=2)
    if is_pickled:
        pool = pickle.loads(pickle.dumps(pool))
    texts = [" ".join(random.Random(seed).choices(TEXTS, k=20)) for seed in range(200)]

    def asked(text: str) -> tuple[Any, Any, Any]:
        ids = pool.encode(text)
        chat = [{"role": "user", "content": text}]
        return ids, pool.decode(ids), pool.apply_chat_template(chat, return_dict=False)

    with plug_in("1"), ThreadPoolExecutor(8) as threads:
        found = [*threads.map(asked, texts)]
    for text, (ids, back, chat) in zip(texts, found, strict=True):
        assert ids == real.encode(text)
        assert back == real.decode(ids)
        asked_for = [{"role": "user", "content": text}]
        assert chat == real.apply_chat_template(asked_for, return_dict=False)


SAMPLING: list[dict[str, Any]] = [
    {},
    {"skip_special_tokens": False},
    {"skip_special_tokens": False, "spaces_between_special_tokens": False},
    {"stop": ["STOP"]},
    {"stop": ["STOP", "o w", "🎉"], "include_stop_str_in_output": True},
    {"stop": "a", "min_tokens": 4},
]


def request(prompt: list[int] | None, settings: dict[str, Any]) -> Any:
    return EngineCoreRequest(
        request_id="r",
        external_req_id="r",
        prompt_token_ids=prompt,
        mm_features=None,
        sampling_params=SamplingParams(**settings),
        pooling_params=None,
        arrival_time=0.0,
        lora_request=None,
        cache_salt=None,
        data_parallel_rank=None,
    )


def streamed(detokenizer: Any, ids: list[int], step: int) -> list[Any]:
    """What the engine sends to the client, step by step, until a stop string."""
    said: list[Any] = []
    for at in range(0, len(ids), step):
        stop = detokenizer.update(ids[at : at + step], False)
        said.append((stop, detokenizer.get_next_output_text(finished=bool(stop), delta=True)))
        if stop:
            break
    else:
        said.append(detokenizer.get_next_output_text(finished=True, delta=True))
    return [*said, detokenizer.output_text, detokenizer.output_token_ids]


def compare_streams(
    kind: str, which: Any, settings: dict[str, Any], prompt: list[int], answers: list[list[int]]
) -> None:
    """Compare all that both send for these ids, one, two and all in a step."""
    told = []
    for variable, tokenizer in zip(("", "1"), loaded(kind), strict=True):
        with plug_in(variable):
            made = [
                (which(tokenizer, request(asked, settings)), ids, step)
                for asked, ids, step in itertools.product(([], prompt), answers, (1, 2, 100))
            ]
        if which is FastIncrementalDetokenizer:
            is_ours = [type(one.stream) is streamtok.hf.DecodeStream for one, _, _ in made]
            assert set(is_ours) == {variable == "1"}
        told.append([streamed(*one) for one in made])
    assert told[0] == told[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", [FastIncrementalDetokenizer, SlowIncrementalDetokenizer])
@pytest.mark.parametrize("settings", SAMPLING)
def test_detokenizers(kind: str, which: type, settings: dict[str, Any]) -> None:
    encode = loaded(kind)[0].encode
    answers = [encode(text) for text in ANSWERS]
    compare_streams(kind, which, settings, encode(TEXTS[3])[:3], answers)


def test_vllm_chooses_its_fast_detokenizer() -> None:
    _, ours = loaded("llama3")
    for tokenizer in (ours, maybe_make_thread_pool(copy.copy(ours))):
        with plug_in("1"):
            made = IncrementalDetokenizer.from_new_request(tokenizer, request([1], {}))
        assert type(made) is FastIncrementalDetokenizer
        assert type(made.stream) is streamtok.hf.DecodeStream


def test_an_id_that_is_not_in_the_vocabulary() -> None:
    """vLLM logs it and goes on."""
    encode = loaded("llama3")[0].encode
    answers = [[*encode("one"), id, *encode(" two")] for id in (1 << 30, 1 << 40, -1)]
    compare_streams("llama3", FastIncrementalDetokenizer, {}, [1], answers)
