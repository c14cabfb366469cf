"""Several threads give what one gives: cuts, large texts, batches.

The tests say how many cores there are and how large is large, so that they mean the same anywhere.
"""

from __future__ import annotations

import functools
import gc
import os
import random
import signal
import threading
from typing import Any

import numpy as np
import pytest

import streamtok
from streamtok._core.encode import ARRAY, COUNT, LIST, Output, WorkList
from streamtok.engines import texts as batch
from streamtok.engines.rules import TextRules
from streamtok.normalizers import Form, Lowercase, Normalizer, Replace, StripAccents
from streamtok.threads import cached_property, run_in_threads

from ..doors import outcome
from ..encodings import make_encoding
from ..live_threads import together
from ..nasty import TEXTS

WORDS = [" the", " of", "word", " ", "\n", ". ", "12", "日本語", " été", "\r\n", ", "]
ODD = [text.decode("utf-8", "replace") for text in TEXTS]
SPECIALS = {"<|end of text|>": 100_300, "a b": 100_301, "\n\n": 100_302, "<|end": 100_303}


def large_text(enc: streamtok.Encoding, text: Any, into: Output[Any], part: int) -> WorkList:
    """One text, which is cut; special tokens in it are plain text."""
    rules = enc.definition.engine.rules(enc.definition.specials.ordinary)
    cuts = enc.definition.texts.cuts
    assert cuts is not None
    return WorkList(enc.definition.encoder, rules, [text], "strict", into, 16, (part, 1), cuts)


@pytest.fixture(autouse=True)
def many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "usable_cores", lambda: 8)
    monkeypatch.setattr(batch, "LARGE", 500)
    monkeypatch.setattr(batch, "PART", 100)
    monkeypatch.setattr(batch, "PER_THREAD", 50)


def with_specials(name: str = "cl100k_base") -> streamtok.Encoding:
    known = streamtok.get_encoding(name)
    return make_encoding(known.pattern, known.definition.vocabulary, SPECIALS)


def nasty(size: int) -> str:
    """Words, and what breaks tokenizers."""
    rng = random.Random(21)
    return "".join(rng.choice(WORDS if rng.random() < 0.5 else ODD) for _ in range(size))


def in_threads(encoding: streamtok.Encoding, text: Any, threads: int, **settings: Any) -> None:
    """The ways to encode a text on several threads against `encode`."""
    expected = outcome(lambda: encoding.encode(text, **settings))
    how = {"num_threads": threads, **settings}
    for make in (
        lambda: encoding.encode_to_numpy(text, **how).tolist(),
        lambda: encoding.encode_batch([text, "", text], **how)[2],
    ):
        assert outcome(make) == expected
    found = outcome(lambda: encoding.count(text, **how))
    assert found == (len(expected) if isinstance(expected, list) else expected)


def test_special_tokens_across_a_cut_are_left_whole() -> None:
    enc = with_specials()
    rng = random.Random(5)
    for _ in range(60):
        words = [*SPECIALS, "<|end of", " text|>", "a", " b", "\n", " word", "日本", "."]
        text = "".join(rng.choices(words, k=rng.choice([150, 700])))
        for settings in (
            {"allowed_special": "all"},
            {"allowed_special": {"a b"}, "disallowed_special": ()},
            {"allowed_special": {"\n\n", "<|end of text|>"}, "disallowed_special": {"<|end"}},
            {"disallowed_special": {"<|end of text|>"}},
        ):
            in_threads(enc, text, 3, **settings)
            in_threads(enc, text.encode(), 3, **settings)


LETTERS = [("word ", 1_000), ("word ", 20_000), ("日本 ", 9_000), ("😀é ", 9_000)]
IN_PARTS: dict[str, tuple[str, list[str], int]] = {
    # Threads hold each other up, so that parts are done in any order.
    "more parts than anybody takes in turn": ("cl100k", [nasty(16_000)], 7),
    # As many ids as bytes: a second block takes those that the first has no room for.
    "more ids than there are likely to be": (
        "bytes", [letters * n + "likely words " * 30 for letters, n in LETTERS], 300,
    ),
}  # fmt: skip


@pytest.mark.parametrize("into", [ARRAY, LIST, COUNT])
@pytest.mark.parametrize("name", IN_PARTS)
def test_parts_of_a_text(name: str, into: str) -> None:
    kind, some, part = IN_PARTS[name]
    enc = make_encoding(r"\w+|\W") if kind == "bytes" else streamtok.get_encoding("cl100k_base")
    for text in some:
        expected = enc.encode_ordinary(text)
        for data in (text, text.encode()):
            for threads in (1, 2, 5, 16):
                large = large_text(enc, data, into, part)
                assert large.n_runs > (1_000 if part == 7 else 10)
                run_in_threads(large.work, threads)
                found = large.result()
                assert (found == len(expected)) if into is COUNT else (list(found) == expected)


def test_lists_of_a_batch_are_lists() -> None:
    enc = streamtok.get_encoding("cl100k_base")
    special = enc.eot_token  # an id beyond those of the vocabulary
    rows = enc.encode_batch(["a b<|endoftext|>", ""] * 400, allowed_special="all", num_threads=3)
    assert rows == [[64, 293, special], []] * 400
    assert all(gc.is_tracked(row) for row in rows)
    rows[0].append(-1)
    rows[1] += [1 << 70]
    del rows[2:]
    gc.collect()
    assert rows == [[64, 293, special, -1], [1 << 70]]


def test_an_error_in_a_thread_is_raised() -> None:
    calls: list[int] = []
    all_begun = threading.Barrier(4)  # a thread that begins when all is done does nothing

    def fail() -> None:
        calls.append(1)
        all_begun.wait(60)
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError("in a thread")

    with pytest.raises(MemoryError, match="in a thread"):
        run_in_threads(fail, 4)
    assert len(calls) == 4


def test_a_part_that_fails_stops_the_others() -> None:
    enc = streamtok.get_encoding("cl100k_base")
    assert enc.definition.texts.cuts is not None
    text = b"a" * 2_000_000 + b"\xff" + b" quick" * 20_000
    large = large_text(enc, text, LIST, 100)
    run_in_threads(large.work, 4)
    with pytest.raises(UnicodeDecodeError, match="position 2000000"):
        large.result()
    large = large_text(enc, b"a " * 9_000, LIST, 100)
    large.stop()
    run_in_threads(large.work, 4)
    with pytest.raises(ValueError, match="is not done"):
        large.result()


def test_who_clears_the_matchers_takes_none_from_others() -> None:
    enc = with_specials()

    class Clearing(dict[Any, Any]):
        """What another thread may do at any moment, here at every one."""

        def __setitem__(self, key: Any, value: Any) -> None:
            super().__setitem__(key, value)
            super().clear()

    enc.definition.specials._matchers = Clearing()
    for _ in range(3):
        assert enc.encode("a b", allowed_special={"a b"}) == [100_301]


def test_what_arrays_gave_back_is_bounded() -> None:
    """Sixteen blocks, 64 MiB in all, the larger ones first."""
    enc = with_specials()
    enc.definition.encoder.release()
    for count in (20_000, 3_000_000):
        kept = [enc.encode_to_numpy(b" a" * count) for _ in range(8)]
        ids = kept[0].copy()
        del kept
        assert 4 * count <= enc.definition.encoder.spare_bytes() <= 1 << 26
        for _ in range(3):  # in blocks that were used before
            np.testing.assert_array_equal(enc.encode_to_numpy(b" a" * count), ids)
    enc.definition.encoder.release()
    assert enc.definition.encoder.spare_bytes() == 0


def test_threads_are_back_when_one_of_them_failed() -> None:
    """Also where the one who waits for the others is interrupted: they are told to stop."""
    stopped = threading.Event()
    ended: list[int] = []
    begun = threading.Semaphore(0)

    def work() -> None:
        if threading.current_thread() is threading.main_thread():
            assert all(begun.acquire(timeout=60) for _ in range(2))
            raise KeyboardInterrupt
        begun.release()
        assert stopped.wait(60)
        ended.append(1)

    with pytest.raises(KeyboardInterrupt):
        run_in_threads(work, 3, stopped.set)
    assert len(ended) == 2


def test_threads_fill_one_table_of_a_normalizer() -> None:
    """Each character is learned by whichever thread has it first, while others read the table."""
    steps = [Form("NFD"), StripAccents(), Lowercase()]
    points = [*range(0x41, 0x5B), 0x20, *range(0xC0, 0x250), *range(0x370, 0x530), 0x301, 0x323]
    texts = ["".join(map(chr, random.Random(seed).choices(points, k=3000))) for seed in range(4)]
    known = streamtok.get_encoding("cl100k_base")
    expected = [known.encode(Normalizer(steps).normalize(text)) for text in texts]
    for number in range(2):
        other = Replace(chr(0xE000 + number), "x")  # tables of equal normalizers are shared
        rules = TextRules(normalizer=Normalizer([*steps, other]))
        fresh = make_encoding(known.pattern, known.definition.vocabulary, rules=rules)
        calls = [functools.partial(fresh.encode, text) for text in texts]
        assert together(*calls) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_process_forked_while_another_thread_computes_a_property() -> None:
    """Before Python 3.12, the child would wait for ever for the lock of functools' property."""
    begun, may_end = threading.Event(), threading.Event()

    class Slow:
        @cached_property
        def value(self) -> int:
            begun.set()
            may_end.wait()
            return 1

    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    begun.wait()
    child = os.fork()
    if not child:
        signal.alarm(20)
        may_end.set()
        os._exit(0 if Slow().value == 1 else 1)
    may_end.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
