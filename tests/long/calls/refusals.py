"""What is refused, and callers who do what they should not: alike through every call."""

from __future__ import annotations

import array
import mmap
import os
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ...doors import outcome
from ...live_threads import together
from .calls import CALLS, Ask
from .texts import cut

LETTERS = bytes.maketrans(b"0123456789", b"ghijklmnop")
NO_TEXTS: list[Any] = [7, None, [97], ("a",), object(), 1.5, memoryview(b"abcdef")[::2]]


class Sleepy(str):
    """Lets other threads run whenever it is asked for anything."""

    def __len__(self) -> int:
        time.sleep(0.0005)
        return 1

    def __str__(self) -> str:
        time.sleep(0.0005)
        return "another"

    def encode(self, *args: Any) -> bytes:
        return b"another"


class Raising(str):
    """Raises when it is asked for anything."""

    def __len__(self) -> int:
        raise ZeroDivisionError

    def encode(self, *args: Any) -> bytes:
        raise ZeroDivisionError

    __hash__ = None
    __str__ = __eq__ = __iter__ = replace = __contains__ = __getitem__ = encode


class Length:
    """No text, though it has a length, which takes its time or raises."""

    def __init__(self, raises: bool) -> None:
        self.raises = raises

    def __len__(self) -> int:
        time.sleep(0.001)
        return 1 // (not self.raises)


def as_any_kind(rng: random.Random, text: str | bytes) -> Any:
    """The text as a derived class, or as anything that has its bytes."""
    if isinstance(text, str) and rng.random() < 0.5:
        return rng.choice([Sleepy, Raising])(text)
    data = text.encode() if isinstance(text, str) else text
    kind = rng.randrange(6 + (len(data) > 0))
    if kind == 0:
        return bytearray(data)
    if kind == 1:
        return memoryview(b"x" + data + b"\xff")[1:-1]
    if kind == 2:
        return memoryview(bytearray(data))
    if kind == 3:
        return memoryview(bytearray(data)).toreadonly()
    if kind == 4:
        return array.array("B", data)
    if kind == 5:
        return np.frombuffer(data, np.uint8)
    made = mmap.mmap(-1, len(data))
    made[:] = data
    return made


def refused(ask: Ask) -> None:
    """One text that `encode` refuses."""
    enc, n, options = ask.subject.encoding, ask.threads, ask.options
    wanted = outcome(lambda: enc.encode(ask.text, **options))
    text = as_any_kind(ask.rng, ask.text)
    calls: dict[str, Callable[[], Any]] = {
        "encode": lambda: enc.encode(text, **options),
        "encode_to_numpy": lambda: enc.encode_to_numpy(text, **options).tolist(),
        "count": lambda: enc.count(text, **options),
        f"encode_to_numpy, {n} threads": lambda: enc.encode_to_numpy(
            text, num_threads=n, **options
        ).tolist(),
        f"count, {n} threads": lambda: enc.count(text, num_threads=n, **options),
        f"encode_batch, {n} threads": lambda: enc.encode_batch([text], num_threads=n, **options),
    }
    for name, call in calls.items():
        found = outcome(call)
        assert isinstance(wanted, tuple), f"encode gave {len(wanted)} ids of a refused text"
        assert found == wanted, f"{name} of {type(text).__name__}: {found}, not {wanted}"
    ask.asked += len(calls)


def strange(ask: Ask) -> None:
    """Every kind of object that is a text, and batches with some that are none."""
    enc, rng, n = ask.subject.encoding, ask.rng, ask.threads
    for _ in range(3):
        text = as_any_kind(rng, ask.text)
        ask.same(f"encode {type(text).__name__}", enc.encode(text, **ask.options))
        ask.same("count", enc.count(text, num_threads=n, **ask.options))
    texts: list[Any] = [as_any_kind(rng, part) for part in cut(rng, ask.text, 30)]
    for _ in range(rng.choice([1, 1, 3])):
        bad = [*NO_TEXTS, b"\xff", "<|endoftext|>", Length(False), Length(True)]
        texts.insert(rng.randint(0, len(texts)), rng.choice(bad))
    given = rng.choice([list, tuple])(texts)
    expected: list[Any] = []
    for text in texts:
        plain = str.__str__(text) if isinstance(text, str) else text
        result = outcome(lambda: enc.encode(plain, **ask.options))  # noqa: B023
        if isinstance(result, tuple):
            expected = result
            break
        expected.append(result)
    found = outcome(lambda: enc.encode_batch(given, num_threads=n, **ask.options))
    assert found == expected, f"encode_batch: {str(found)[:300]}, not {str(expected)[:300]}"


def changing(ask: Ask) -> None:
    """Bytes that another thread writes to give some ids; nothing of them is remembered."""
    enc, rng = ask.subject.encoding, ask.rng
    if rng.random() < 0.9 or "tsan" in os.environ.get("LD_PRELOAD", ""):
        return  # ThreadSanitizer reports what is a race, and meant as one
    # Longer ones are looked at three times: compared, merged and kept.
    words = [rng.randbytes(rng.randint(33, 99)).hex().encode() for _ in range(1_000)]
    words = [word.translate(LETTERS) for word in words]
    one, other = b" ".join(words), b" ".join(word[::-1] for word in words)
    text = bytearray(one)
    memory = np.frombuffer(text, np.uint8)
    is_over = threading.Event()

    def write() -> None:
        while not is_over.is_set():
            np.copyto(memory, np.frombuffer(other, np.uint8))
            np.copyto(memory, np.frombuffer(one, np.uint8))

    def read() -> None:
        try:
            outcome(lambda: enc.encode_to_numpy(text, disallowed_special=()))
            outcome(lambda: enc.encode_ordinary_batch([text, text], num_threads=2))
        finally:
            is_over.set()

    together(write, read)
    for data in (one, other):
        remembered = enc.encode_ordinary(data)
        enc.definition.encoder.release()
        assert enc.definition.encoder.spare_bytes() == 0, "memory is kept"
        assert remembered == enc.encode_ordinary(data), "ids of other bytes are remembered"


REFUSALS: dict[str, Callable[[Ask], None]] = {"refused": refused}
STRANGE = {"strange": strange, "changing": changing}
EVERY = {**CALLS, **STRANGE}
