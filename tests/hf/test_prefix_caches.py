"""The cases of TensorRT-LLM's cache of prefixes, by the calls that its server makes of a tokenizer:
the ids are those of the whole prompt, and what prompts share is encoded once.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
import transformers

from streamtok.hf import patched_transformers

from .test_transformers import folder

PREAMBLE = "the cabinet had inner thread. " * 300
TURNS = [
    PREAMBLE + "".join(f"turn {i}: thé cd inner answer aber {i} thereabouts. " for i in range(n))
    for n in range(1, 13)
]
UNRELATED = "a wholly different opening that shares no prefix at all. " * 200
THINK = "<|im_start|>assistant\n<think>\n"
TAILS = [  # each takes the place of the last "<think>"
    "".join(f"{turn[-80:]}{THINK[:-8]}an answer<|im_end|>\n" for turn in TURNS[:n]) + THINK
    for n in range(1, 6)
]


def loaded(prompt_cache: int) -> Any:
    with patched_transformers(prompt_cache=prompt_cache):
        return transformers.AutoTokenizer.from_pretrained(folder("gpt2"))


def check(cached: Any, plain: Any, prompt: str) -> None:
    """By the call of the input processor, of the router, and of its own cache."""
    expected = plain.backend_tokenizer.real.encode(prompt, add_special_tokens=False)
    assert cached.encode(prompt, add_special_tokens=False) == expected.ids
    found = cached(prompt, add_special_tokens=False, return_offsets_mapping=True)
    assert found["input_ids"] == expected.ids
    assert found["offset_mapping"] == expected.offsets


@pytest.mark.parametrize(
    "prompts",
    [
        TURNS,
        [prompt for turn in TURNS[:6] for prompt in (turn, UNRELATED)],
        [PREAMBLE + tail for tail in TAILS],
        ["the cab", "", "the cab"],
        [TURNS[0], TURNS[0]],
    ],
    ids=["growth", "interleaved", "a tail is replaced", "short", "repeated"],
)
@pytest.mark.parametrize("limit", [30_000, 1 << 24], ids=["evicts", "keeps"])
def test_ids_are_those_of_the_whole_prompt(prompts: list[str], limit: int) -> None:
    cached, plain = loaded(limit), loaded(0)
    for prompt in prompts:
        check(cached, plain, prompt)
    stats = cached.backend_tokenizer._now().cache.stats
    assert stats.bytes <= limit
    assert (stats.hits > 0) == (len(prompts[0]) > 4096)


def test_threads() -> None:
    cached, plain = loaded(1 << 24), loaded(0)
    expected = [plain.encode(turn, add_special_tokens=False) for turn in TURNS]
    found: list[Any] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(
                [cached.encode(turn, add_special_tokens=False) for turn in TURNS]
            )
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_no_cache_where_the_call_is_another() -> None:
    cached, plain = loaded(1 << 24), loaded(0)
    settings: dict[str, Any]
    for settings in (
        {"add_special_tokens": True},
        {"add_special_tokens": False, "truncation": True, "max_length": 8},
        {"split_special_tokens": True},
    ):
        assert cached.encode(TURNS[3], **settings) == plain.encode(TURNS[3], **settings)
