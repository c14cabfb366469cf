"""PromptCache: always the ids of the whole text, in bounded memory, from any number of threads."""

from __future__ import annotations

import copy
import gc
import itertools
import os
import pickle
import random
import threading
import tracemalloc

import pytest

import streamtok
from streamtok import Encoding, PromptCache
from streamtok.answers import prompt_cache as module
from streamtok.formats.sentencepiece import read_sentencepiece

from .. import prompts
from ..answers.slowly import with_rules
from ..conftest import encoding_of
from ..engines.rewriting_cases import twins
from ..nasty import TEXTS
from ..sentencepiece_models import trained

GPT2 = streamtok.get_encoding("gpt2")
PIECES = [
    "a", " ", "  ", "\n", "\n\n ", "don't", "12345", "日本語", "é", "e\u0301", "🎉", "\ud83d",
    "\ude00", "<|endoftext|>", "<|endof", "text|>", "<think>\n", "....", "no" * 9, " the",
    "HTTPServer", "\u2581", "<s>", "\U0001f468\u200d\U0001f469",
]  # fmt: skip


def encodings() -> dict[str, Encoding]:
    folded = trained(normalization_rule_name="nmt_nfkc_cf", remove_extra_whitespaces=True)
    return {
        **{name: encoding_of(name) for name in ("gpt2", "cl100k_base", "o200k_base")},
        "llama3_style": encoding_of("llama3_style"),
        "sentencepiece": read_sentencepiece(trained(), None, "plain"),
        "sentencepiece, folded": read_sentencepiece(folded, None, "folded"),
        "NFC, a pattern": with_rules(0, "NFC"),
        "NFC, the whole text": with_rules(1, "NFC"),
        "spaces": with_rules(3, "spaces"),
    }


ENCODINGS = encodings()


@pytest.fixture(params=ENCODINGS)
def encoding(request: pytest.FixtureRequest) -> Encoding:
    return ENCODINGS[request.param]


def whole(encoding: Encoding, text: str) -> list[int]:
    return encoding.encode(text, allowed_special="all")


def conversations(rng: random.Random, turns: int) -> list[str]:
    """Prompts as they are asked for: they grow, fork, lose their tails and are interleaved."""
    known = [""]
    asked = []
    for _ in range(turns):
        prompt = rng.choice(known)
        if rng.random() < 0.3:
            prompt = prompt[: rng.randint(0, len(prompt))]
        prompt += "".join(rng.choices(PIECES, k=rng.choice([0, 1, 3, 10, 40])))
        known.append(prompt)
        asked.append(prompt)
    return asked


def check(cache: PromptCache, prompts: list[str]) -> None:
    """Whole ids and changes are those of the encoding."""
    before = ""
    ids: list[int] = whole(cache.encoding, before)
    for text in prompts:
        change = cache.encode_change(before, text)
        after = whole(cache.encoding, text)
        assert ids[: change.kept] + change.added == after
        assert cache.encode(text) == after
        assert cache.stats.bytes <= cache.max_bytes
        before, ids = text, after


@pytest.mark.parametrize("size", [1, 2, 7, 64])
@pytest.mark.parametrize("limit", [0, 3000, 1 << 20])
def test_conversations(
    encoding: Encoding, size: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", size)
    for seed in range(3):
        check(PromptCache(encoding, limit), conversations(random.Random(seed), 25))


@pytest.mark.parametrize("seed", range(30))
def test_random_encodings(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 1 + seed % 9)
    encoding = twins(seed).ours
    rng = random.Random(seed)
    text = "".join(rng.choices("aAb .\n\u2581e\u00e9\u0301", k=200))
    cuts = sorted(rng.sample(range(200), 8))
    check(PromptCache(encoding), [text[:cut] for cut in cuts] + [text[:40] + text[cuts[0] :]])


def test_nasty_texts_of_real_blocks(encoding: Encoding) -> None:
    """Blocks as large as they are, so that each kind of character comes into one of its own."""
    cache = PromptCache(encoding)
    prompt = ""
    for start in range(0, len(TEXTS), 20):
        for text in TEXTS[start : start + 20]:
            prompt += text.decode("utf-8", "surrogateescape") + "some plain words, " * 20
        assert cache.encode(prompt) == whole(encoding, prompt)
    hits = cache.stats.hits
    assert cache.encode(prompt) == whole(encoding, prompt)
    assert cache.stats.hits > hits + len(whole(encoding, prompt)) * 0.9


@pytest.mark.parametrize("long", ["a" * 50_000, " " * 50_000, "é" * 20_000, "<|endoftext|" * 5000])
def test_text_that_waits_for_long(encoding: Encoding, long: str) -> None:
    """Not every block has a state then, or states would take the square of the text."""
    cache = PromptCache(encoding)
    for end in ("", "b", " b", "|>", "x" * 10_000):
        text = "begin " + long + end
        assert cache.encode(text) == whole(encoding, text)
    assert cache.stats.bytes < 100 * len(long.encode())


def test_widths_of_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of narrow characters are found in a text that has wide ones, and only there."""
    monkeypatch.setattr(module, "_BLOCK", 70)
    narrow, wide, widest = "plain é. " * 20, "日本語 " * 40, "🎉 " * 60
    cache = PromptCache(GPT2)
    for text in (narrow, narrow + wide, narrow + wide + widest, wide, narrow + widest):
        before = cache.stats.hits
        assert cache.encode(text) == whole(GPT2, text)
        assert (cache.stats.hits > before) == (text not in (narrow, wide))
    for place in (0, 1, 63, 64, 69, 70, 100):
        for other in "x\u0142\U0001f680":
            text = (narrow + wide + widest)[:place] + other + (narrow + wide + widest)[place + 1 :]
            assert cache.encode(text) == whole(GPT2, text)


def test_what_a_change_costs() -> None:
    cache = PromptCache(GPT2)
    text = "a turn of this chat. " * 5000
    cache.encode(text)
    misses = cache.stats.misses
    change = cache.encode_change(text, text + "more")
    assert len(change.added) < 1500
    assert cache.stats.misses - misses == len(change.added)
    assert cache.encode_change("", text).kept == 0
    other = cache.encode_change("b" + text, text)
    assert (other.kept, other.added) == (0, whole(GPT2, text))


def test_the_least_recently_used_tail_goes_first() -> None:
    trunk = "the system prompt of everyone. " * 1000
    tails = [f"conversation {i} says this. " * 1000 for i in range(4)]
    cache = PromptCache(GPT2)
    for tail in tails:
        cache.encode(trunk + tail)
    small = PromptCache(GPT2, cache.stats.bytes - 100_000)
    for tail in tails:
        small.encode(trunk + tail)
    small.encode(trunk + tails[0])  # and so the second is the one
    small.encode(trunk + "a fifth one. " * 1000)

    def missed(text: str) -> int:
        before = small.stats.misses
        assert small.encode(text) == whole(GPT2, text)
        return small.stats.misses - before

    assert missed(trunk) < 1500
    assert missed(trunk + tails[0]) < 1500
    assert missed(trunk + tails[1]) > 3000


def test_a_prompt_that_is_larger_than_the_cache() -> None:
    text = "some words of a long prompt. " * 5000
    cache = PromptCache(GPT2, 300_000)
    for _ in range(2):
        assert cache.encode(text) == whole(GPT2, text)
        assert 200_000 < cache.stats.bytes <= 300_000
    assert cache.stats.hits > 3000  # its beginning


def test_bytes_are_those_that_are_held() -> None:
    """What is said is no less than what Python allocates, and not much more."""
    rng = random.Random(0)
    texts = ["".join(rng.choices(["some ", "日本", "words, "], k=5000)) for _ in range(20)]
    n_tokens = sum(len(whole(GPT2, text)) for text in texts)
    gc.collect()
    tracemalloc.start()
    try:
        cache = PromptCache(GPT2)
        before, _ = tracemalloc.get_traced_memory()
        for text in texts:
            cache.encode(text)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert held <= cache.stats.bytes <= 1.25 * held
    assert cache.stats.bytes <= 64 * n_tokens


@pytest.mark.parametrize("limit", [200_000, 1 << 28])
def test_threads(limit: int) -> None:
    cache = PromptCache(GPT2, limit)
    trunk = "you are a helpful assistant. " * 800
    failures = []
    start = threading.Barrier(6)

    def talk(number: int) -> None:
        rng = random.Random(number)
        start.wait()
        prompt = trunk
        for _ in range(40):
            if rng.random() < 0.2:
                prompt = prompt[: rng.randint(0, len(prompt))]
            prompt += "".join(rng.choices(PIECES, k=300))
            if cache.encode(prompt) != whole(GPT2, prompt):
                failures.append(prompt)

    threads = [threading.Thread(target=talk, args=(i // 2,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert cache.stats.bytes <= limit


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_fork_while_a_thread_is_at_it() -> None:
    cache = PromptCache(GPT2)
    text = "some words. " * 2000
    cache.encode(text)
    with cache._lock:  # as if another thread were in a call
        child = os.fork()
        if child == 0:
            os._exit(0 if cache.encode(text) == whole(GPT2, text) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert cache.stats.hits == 0


def test_wrong_arguments() -> None:
    cache = PromptCache(GPT2)
    with pytest.raises(TypeError, match="a prompt is a str, not bytes"):
        cache.encode(b"bytes")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not NoneType"):
        cache.encode_change(None, "text")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_bytes must be at least 0"):
        PromptCache(GPT2, -1)
    with pytest.raises(TypeError, match="max_bytes must be an integer"):
        PromptCache(GPT2, 1.5)  # type: ignore[arg-type]
    look_behind = Encoding(
        "look-behind", pat_str=r"(?<=a)b|.", mergeable_ranks=GPT2._vocabulary, special_tokens={}
    )
    with pytest.raises(streamtok.UnsupportedPatternError):
        PromptCache(look_behind)


def test_a_class_of_strings() -> None:
    class Shout(str):
        def __getitem__(self, key: object) -> str:
            return "x"

    text = Shout("some words. " * 1000)
    cache = PromptCache(GPT2)
    for _ in range(2):
        assert cache.encode(text) == whole(GPT2, str.__str__(text))


def test_copies_begin_with_nothing() -> None:
    cache = PromptCache(GPT2, 12345)
    cache.encode("some words. " * 1000)
    for twin in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert twin.max_bytes == 12345
        assert twin.encoding is GPT2
        assert twin.stats == (0, 0, 0)
    assert repr(cache).startswith("<PromptCache of 'gpt2': ")


def test_a_change_from_a_text_that_is_at_hand() -> None:
    """The text of the change before is known by identity, unless its blocks were removed."""
    prompts = ["begin " * 5000]
    for turn in range(30):
        prompts.append(prompts[-1][: -rng_size(turn)] + f"turn {turn} " * 300)
    for limit in (1 << 28, 400_000):
        cache = PromptCache(GPT2, limit)
        for before, text in itertools.pairwise(prompts):
            change = cache.encode_change(before, text)
            ids = whole(GPT2, text)
            assert whole(GPT2, before)[: change.kept] + change.added == ids
            assert len(change.added) < 6000 or change.kept == 0
            assert cache.stats.bytes <= limit
            cache.encode("other " * 9000)


def rng_size(turn: int) -> int:
    return random.Random(turn).randrange(1, 6000)


def test_the_command_over_random_conversations(capsys: pytest.CaptureFixture[str]) -> None:
    before = module._BLOCK
    try:
        assert prompts.main(["--conversations", "50", "--block", "100"]) == 0
    finally:
        module._BLOCK = before
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert all(" 0 differ; an overlap gets " in line for line in lines)
