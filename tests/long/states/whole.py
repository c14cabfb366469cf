"""Whole texts through every door, step by step, against a plain call with plain bytes.

Doors: `encode`, `encode_to_numpy`, `count`, batches, on 1 to 8 threads. Texts: str in each of the
widths that Python stores them in, derived classes, everything bytes-like, and what is no text. The
truth for a text is `encode` of its UTF-8 in one go, and from time to time the slow reference.
"""

from __future__ import annotations

import array
import contextlib
import functools
import mmap
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import streamtok
from streamtok.engines.rules import TextRules
from streamtok.parallel import texts as batch
from streamtok.reference import bpe as reference

from ...conftest import encoding_of
from ..fuzz import random_encoding, random_text

POLICIES = ["strict", "strict", "replace", "surrogateescape"]
WORDS = ["word ", " the", "\n", "12", ". ", "<|endoftext|>", "<|eot_id|>", "<|eot_id|>\n", "a'ſ "]
BY_WIDTH = [["é ", "ÿ", "ª"], ["中", " 日本 ", "ſ", "\u3000"], ["🎉", "\U00010ffd", " 🎉 é"]]
SURROGATES = ["\ud800", "\udcff", "\ud83c\udf89", "\ud83c"]
LETTERS = bytes.maketrans(b"0123456789", b"ghijklmnop")
NO_TEXTS: list[Any] = [7, None, [97], ("a",), object(), 1.5, memoryview(b"abcdef")[::2]]
Outcome = tuple[str, Any]


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

    def __str__(self) -> str:
        raise ZeroDivisionError

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError

    def encode(self, *args: Any) -> bytes:
        raise ZeroDivisionError

    __hash__ = None  # type: ignore[assignment]
    __iter__ = replace = startswith = __contains__ = __getitem__ = encode  # type: ignore[assignment]


class Length:
    """No text, though it has a length."""

    def __init__(self, act: Callable[[], int]) -> None:
        self.act = act

    def __len__(self) -> int:
        return self.act()


@functools.cache
def named() -> list[streamtok.Encoding]:
    made = [encoding_of(name) for name in ("r50k_base", "cl100k_base", "o200k_base")]
    made += [encoding_of("llama3_style")] * 2
    known = made[0]
    specials = {"<|endoftext|>": 60_000, "<|eot_id|>": 60_001, "中": 60_002}
    for pattern, rules in (
        (r"(?<=a)b|\w+|\W", None),  # no tables: `regex` finds the pieces
        (known.pattern, TextRules(normalizer="spaces", space_first=True)),
        (known.pattern, TextRules(normalizer="NFC")),
        (known.pattern, TextRules((("word", 60_003), ("12", 60_004)))),
    ):
        made.append(
            streamtok.Encoding(
                f"{rules}",
                pat_str=pattern or "",
                mergeable_ranks=known._vocabulary,
                special_tokens=specials,
                **({"rules": rules} if rules else {}),
            )
        )
    return made


@functools.cache
def random_one(number: int) -> streamtok.Encoding:
    return random_encoding(random.Random(number))


def outcome(call: Callable[[], Any]) -> Outcome:
    """What a call gives or raises, in a form that can be compared."""
    try:
        result = call()
    except (ValueError, TypeError, BufferError) as error:
        said = type(error).__name__, str(error)
        if isinstance(error, UnicodeError):
            said += (error.start, error.end, error.reason)
        return "raised", said
    return "gave", result.tolist() if isinstance(result, np.ndarray) else result


class WholeMachine:
    """An encoding with settings, and texts for it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        one = rng.choice([*named(), None, None])
        self.encoding = one if one is not None else random_one(rng.randrange(20))
        specials = sorted(self.encoding._special_tokens)
        some = frozenset(rng.sample(specials, rng.randint(0, len(specials))))
        self.settings: dict[str, Any] = {
            "allowed_special": rng.choice(["all", frozenset(), some]),
            "disallowed_special": rng.choice(["all", (), (), frozenset(specials) - some]),
        }
        self.errors = rng.choice(POLICIES)
        self.threads = rng.randint(1, 8)
        self.cores = rng.choice([2, 8])
        self.large = rng.choice([20, 100, 500, 1 << 20])
        self.part = rng.choice([7, 50, 300])
        self.story: list[str] = []

    def require(self, holds: bool, message: str) -> None:
        if not holds:
            story = "\n  ".join(self.story[-4:])
            raise AssertionError(
                f"{message}\n{self.encoding.name}, pattern {self.encoding._pat_str!r}, "
                f"{self.settings}, errors={self.errors!r}, {self.threads} threads, {self.cores} "
                f"cores, large from {self.large}, parts of {self.part}; the last steps:\n  {story}"
            )

    # What goes in

    def some_text(self) -> str:
        rng = self.rng
        size = rng.choice([0, 1, 5, 30, 200, 2_000])
        if rng.random() < 0.3:
            return random_text(rng, size).decode("utf-8", "replace")
        words = WORDS[:]
        for width in BY_WIDTH[: rng.randint(0, 3)]:
            words += width * rng.randint(1, 4)
        text = "".join(rng.choices(words, k=size // 3))
        if rng.random() < 0.05:
            text += rng.choice(["a", " ", "中", "ab"]) * rng.choice([300, 5_000, 40_000])
        return text + rng.choice(["", " 中", " é", "\n"])

    def some_bytes(self) -> bytes:
        """Bytes that are UTF-8, or not quite."""
        rng = self.rng
        data = bytearray(self.some_text().encode())
        for _ in range(rng.choice([0, 0, 1, 1, 5])):
            at = rng.randrange(len(data) + 1)
            data[at : at + rng.randint(0, 2)] = rng.choice(
                [b"\xff", b"\x80", b"\xed\xa0\x80", b"\xf0\x9f", b"\xc3", b"\xe2\x82"]
            )
        return bytes(data)

    def some_input(self) -> Any:
        """A text of any kind, or none."""
        kind = self.rng.random()
        if kind < 0.5:
            return self.as_any_str(self.some_text())
        if kind < 0.9:
            return self.as_buffer(self.some_bytes())
        if kind < 0.95:
            return self.some_text() + self.rng.choice(SURROGATES)
        return self.rng.choice(NO_TEXTS)

    def as_any_str(self, text: str) -> str:
        return self.rng.choice([str, str, Sleepy, Raising])(text)

    def as_buffer(self, data: bytes) -> Any:
        rng = self.rng
        kinds: list[Callable[[], Any]] = [
            lambda: data,
            lambda: bytearray(data),
            lambda: memoryview(data),
            lambda: memoryview(b"x" + data + b"\xff")[1:-1],
            lambda: memoryview(bytearray(data)),
            lambda: memoryview(bytearray(data)).toreadonly(),
            lambda: array.array("B", data),
            lambda: np.frombuffer(data, np.uint8),
        ]
        if data and rng.random() < 0.1:
            kinds = [lambda: self.as_file(data)]
        return rng.choice(kinds)()

    def as_file(self, data: bytes) -> mmap.mmap:
        made = mmap.mmap(-1, len(data))
        made[:] = data
        return made

    # The truth

    def plain(self, text: Any) -> Outcome:
        """What a text gives by itself, as plain bytes where it is bytes-like."""
        if isinstance(text, str):
            return self.plainly(str.__str__(text))
        try:
            view = memoryview(text)
        except TypeError:
            return self.plainly(text)
        return self.plainly(bytes(view) if view.c_contiguous else text)

    def plainly(self, text: Any) -> Outcome:
        return outcome(lambda: self.encoding.encode(text, errors=self.errors, **self.settings))

    def note(self, name: str, *texts: Any) -> None:
        shown = []
        for text in texts:
            plain = str.__str__(text) if isinstance(text, str) else text
            if isinstance(plain, (bytearray, memoryview, array.array, np.ndarray, mmap.mmap)):
                plain = bytes(memoryview(plain))
            shown.append(f"{type(text).__name__} {plain!r}"[:300])
        self.story.append(f"{name} {', '.join(shown)}")

    @contextlib.contextmanager
    def small_parts(self) -> Iterator[None]:
        """Texts are large, and shared between threads, from a few characters on."""
        before = batch.LARGE, batch.PART, batch.PER_THREAD, batch.usable_cores
        batch.LARGE, batch.PART, batch.PER_THREAD = self.large, self.part, 50
        batch.usable_cores = lambda: self.cores
        try:
            yield
        finally:
            batch.LARGE, batch.PART, batch.PER_THREAD, batch.usable_cores = before

    # The rules

    def step(self) -> str:
        name = self.rng.choice(RULES)
        with self.small_parts():
            getattr(self, name)()
        return name

    def doors(self) -> None:
        """One text through all doors."""
        text = self.some_input()
        self.note("doors", text)
        enc, settings = self.encoding, {**self.settings, "errors": self.errors}
        wanted = self.plain(text)
        self.require(outcome(lambda: enc.encode(text, **settings)) == wanted, "encode differs")
        settings["num_threads"] = self.threads
        rows = outcome(lambda: enc.encode_batch([text], **settings))
        self.require(
            rows == (("gave", [wanted[1]]) if wanted[0] == "gave" else wanted),
            f"encode_batch: {rows}, not {wanted}",
        )
        found = outcome(lambda: enc.count(text, **settings))
        self.require(
            found == (("gave", len(wanted[1])) if wanted[0] == "gave" else wanted),
            f"count: {found}, not {wanted}",
        )
        found = outcome(lambda: enc.encode_to_numpy(text, **settings))
        self.require(found == wanted, f"encode_to_numpy: {found}, not {wanted}")

    def widths(self) -> None:
        """A text in each of the widths that Python may store it in has the same ids in front."""
        text = self.some_text()
        data = text.encode()
        self.note("widths", text)
        enc, ordinary = self.encoding, self.encoding.encode_ordinary
        wanted = ordinary(data)
        self.require(ordinary(text) == wanted, "str and bytes differ")
        with_threads = enc.encode_to_numpy(
            text, num_threads=self.threads, disallowed_special=()
        ).tolist()
        self.require(with_threads == wanted, "str on threads differs")
        if len(data) < 200 and not any(enc._rules) and self.rng.random() < 0.2:
            slow = reference.encode_ordinary(enc._mergeable_ranks, enc._pat_str, text)
            self.require(slow == wanted, "the reference differs")

    def many(self) -> None:
        """A batch, some of whose texts may fail: then with what the first of them raises."""
        rng = self.rng
        texts = [
            self.some_input() if rng.random() < 0.2 else self.as_any_str(self.some_text())
            for _ in range(rng.choice([0, 1, 3, 30]))
        ]
        if rng.random() < 0.2:
            texts.insert(rng.randint(0, len(texts)), Length(rng.choice([self.sleep, self.broken])))
        self.note("encode_batch", *texts)
        results = [self.plain(text) for text in texts]
        wanted: Outcome = next(
            (result for result in results if result[0] == "raised"),
            ("gave", [result[1] for result in results]),
        )
        found = outcome(
            lambda: self.encoding.encode_batch(
                rng.choice([list, tuple])(texts),
                num_threads=self.threads,
                errors=self.errors,
                **self.settings,
            )
        )
        self.require(found == wanted, f"encode_batch: {str(found)[:500]}, not {str(wanted)[:500]}")

    def sleep(self) -> int:
        time.sleep(0.001)
        return 3

    def broken(self) -> int:
        raise ZeroDivisionError

    def cuts(self) -> None:
        """Each cut that is found is one, in str and in bytes."""
        cuts = self.encoding._cuts
        if cuts is None:
            return
        text = self.some_text()[:3_000]
        data = text.encode()
        matcher = self.encoding._matcher(*self.settings.values())
        self.note("cuts", text)
        whole = self.plainly(data)
        places = [0]
        for character in text:
            places.append(places[-1] + len(character.encode()))
        at = in_bytes = 0
        steps = self.rng.choice([1, 20, 200])
        while at >= 0:
            at = cuts.find(text, matcher, at + 1, len(text))
            in_bytes = cuts.find(data, matcher, in_bytes + 1, len(data))
            self.require(in_bytes == (places[at] if at >= 0 else -1), "cuts of bytes differ")
            if at > 0:
                back = cuts.find(text, matcher, 0, at + 1, from_end=True)
                self.require(back == at, f"the last cut before {at + 1} is {back}")
            if at > 0 and whole[0] == "gave" and self.rng.random() < 0.2:
                left, right = self.plainly(data[:in_bytes]), self.plainly(data[in_bytes:])
                self.require(
                    left[0] == right[0] == "gave" and left[1] + right[1] == whole[1],
                    f"{at} is no cut",
                )
            steps -= 1
            if steps == 0:
                break

    def at_once(self) -> None:
        """Several threads call the same encoding."""
        texts = [self.some_text() for _ in range(3)]
        self.note("at once", *texts)
        wanted = [self.plainly(text) for text in texts]
        wrong: list[str] = []

        def call() -> None:
            for text, expected in zip(texts, wanted, strict=True):
                if self.plainly(text) != expected:
                    wrong.append("encode")
                found = outcome(
                    lambda: self.encoding.count(
                        text,  # noqa: B023
                        num_threads=self.threads, errors=self.errors, **self.settings,
                    )
                )  # fmt: skip
                if found[0] != expected[0] or (found[0] == "gave" and found[1] != len(expected[1])):
                    wrong.append("count")

        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.require(not wrong, f"{wrong} in a thread")

    def changing(self) -> None:
        """Bytes that another thread writes to give some ids; nothing of them is remembered."""
        rng = self.rng
        # Longer ones are looked at three times: compared, merged and kept.
        words = [rng.randbytes(rng.randint(33, 99)).hex().encode() for _ in range(1_000)]
        words = [word.translate(LETTERS) for word in words]
        one, other = b" ".join(words), b" ".join(word[::-1] for word in words)
        text = bytearray(one)
        memory = np.frombuffer(text, np.uint8)
        stop = False

        def write() -> None:
            while not stop:
                np.copyto(memory, np.frombuffer(other, np.uint8))
                np.copyto(memory, np.frombuffer(one, np.uint8))

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        writer = threading.Thread(target=write)
        writer.start()
        try:
            outcome(lambda: self.encoding.encode_to_numpy(text, disallowed_special=()))
            outcome(lambda: self.encoding.encode_ordinary_batch([text, text], num_threads=2))
        finally:
            stop = True
            writer.join()
            sys.setswitchinterval(interval)
        self.note("changing", one, other)
        for data in (one, other):
            remembered = self.encoding.encode_ordinary(data)
            self.encoding._encoder.release()
            self.require(remembered == self.encoding.encode_ordinary(data), "ids of other bytes")

    def release(self) -> None:
        self.encoding._encoder.release()
        self.require(self.encoding._encoder.spare_bytes() == 0, "memory is kept")

    def finish(self) -> None:
        """Nothing that failed has left anything behind."""
        text = "hello world, 日本 🎉 "
        self.note("finish", text)
        before = self.encoding.encode_ordinary(text)
        self.encoding._encoder.release()
        self.require(self.encoding.encode_ordinary(text) == before, "the cache gave other ids")


RULES = [
    *["doors"] * 12, *["widths"] * 8, *["many"] * 6, *["cuts"] * 4, "at_once", "release",
    "changing",
]  # fmt: skip
