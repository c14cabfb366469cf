"""Signals are handled while a call runs, not when it is over; and such a call changed nothing.

How often they are looked at depends on the time. Here it is at every occasion, so that the tests
count occasions and ask for no time.
"""

from __future__ import annotations

import collections
import gc
import signal
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import streamtok
from streamtok._core._testing import use_every_look
from streamtok.parallel import texts as batch

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="this system has no timers that send signals"
)

TEXT = "The quick brown fox jumps over the lazy dog, 1234 times. " * 150_000
WANTED = 5  # times that the handler runs while the call does


class Stop(Exception):
    pass


@pytest.fixture
def ticks() -> Iterator[list[int]]:
    """A timer's signals, a thousand a second; the fifth during one call of the core raises Stop.

    That is, where Python's frame has not moved meanwhile. Loops are not counted, and what sets the
    timer is not.
    """
    seen: list[int] = []
    places: collections.Counter[tuple[int, int]] = collections.Counter()

    def handle(number: int, frame: types.FrameType | None) -> None:
        assert frame is not None
        seen.append(number)
        if frame.f_code.co_name not in ("<listcomp>", "encode_batch", "interrupted"):
            place = id(frame), frame.f_lasti
            places[place] += 1
            if places[place] == WANTED:
                raise Stop

    before = signal.signal(signal.SIGALRM, handle)
    gc.disable()  # it may call Python, too, and what is raised there is lost
    use_every_look(True)
    try:
        yield seen
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        use_every_look(False)
        gc.enable()
        signal.signal(signal.SIGALRM, before)


def interrupted(call: Callable[[], Any]) -> bool:
    """Whether Stop came out of the call."""
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        call()
    except Stop:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return False


@pytest.mark.parametrize("call", ["encode", "encode_to_numpy", "count"])
@pytest.mark.parametrize("kind", [str, str.encode, lambda text: bytearray(text.encode())])
def test_whole_texts(ticks: list[int], call: str, kind: Callable[[str], Any]) -> None:
    enc = streamtok.get_encoding("cl100k_base")
    text = kind(TEXT * 4)
    assert interrupted(lambda: getattr(enc, call)(text))
    assert enc.encode("hello world") == [15339, 1917]


def test_one_endless_pretoken(ticks: list[int]) -> None:
    enc = streamtok.get_encoding("cl100k_base")
    text = "abcdefgh" * 4_000_000  # on a busy machine, many of the timer's signals become one
    assert interrupted(lambda: enc.encode(text))
    assert enc.count("abcdefgh" * 10) == enc.encode_to_numpy("abcdefgh" * 10).size


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_batches(ticks: list[int], threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "usable_cores", lambda: 8)
    enc = streamtok.get_encoding("cl100k_base")
    texts = [TEXT[i : i + 1_000] for i in range(0, len(TEXT), 1_000)]
    # Where the system lets the others do all of it, this thread is not asked: then once more.
    many = range(20)
    assert any(interrupted(lambda: enc.encode_batch(texts, num_threads=threads)) for _ in many)
    assert enc.encode_batch(texts[:3], num_threads=threads) == [enc.encode(t) for t in texts[:3]]


@pytest.mark.parametrize("threads", [2, 4])
def test_large_texts(ticks: list[int], threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "usable_cores", lambda: 8)
    monkeypatch.setattr(batch, "PART", 1 << 13)  # so many that this thread has a few of them
    enc = streamtok.get_encoding("cl100k_base")
    text = TEXT * 3
    # Where the system lets the others do all of it, this thread is not asked: then once more.
    many = range(20)
    assert any(interrupted(lambda: enc.encode_to_numpy(text, num_threads=threads)) for _ in many)
    assert any(interrupted(lambda: enc.encode_batch([text], num_threads=threads)) for _ in many)
    assert len(ticks) >= 2 * WANTED
