"""Where the chunks of the machines come from: endless text that a tokenizer does not like.

A `Supply` holds text that is cut off its front in sizes of any kind, so that characters, special
tokens and runs are cut anywhere.
"""

from __future__ import annotations

import random
from typing import TypeAlias

from ...nasty import BLANKS, MALFORMED, SPECIALS, TEXTS
from .model import completion

Chunk: TypeAlias = "str | bytes | bytearray | memoryview"

WORDS = b"the of and to in is you that it he was for on are as with his they I at be this".split()
ROWS = [" ", "-", "=", "01", "\u00a0", "─", "……", "日"]
SURROGATES = ["\ud83d", "\udc4d", "\ud800", "\udcff", "\udc80", "\udbff\udfff", "a", " ", "é", "👍"]
UNITS = [b" ", b"\n", b"a", b"-", b"=", b"\t", b"ab", "日".encode(), "\u3000".encode(), b"\xc2\xa0"]
HEADS = [b"\n", b"\r\n", b"x\n", b"\x0b", b"\xc2\xa0", "\u3000".encode(), b"!!\n", b"", b"x", b'"']
MODES = {"letters": 30, "nasty": 20, "words": 10, "blanks": 12, "runs": 16, "malformed": 6,
         "specials": 6}  # fmt: skip
RUNS = [3, 17, 60, 130]
MIDDLE = [130, 500, 1023, 1024, 1025, 1150, 2047, 2048, 2049, 2300, 4097, 6000]
BIG = [6000, 20_000, 65_535, 65_536, 70_000, 131_072, 270_000]


def random_text(rng: random.Random, size: int) -> bytes:
    """About `size` bytes that a tokenizer will not like."""
    parts: list[bytes] = []
    length = 0
    while length < size:
        kind = rng.random()
        if kind < 0.35:
            part = b" ".join(rng.choices(WORDS, k=rng.randint(1, 30)))
        elif kind < 0.6:
            part = b"".join(rng.choices(TEXTS, k=rng.randint(1, 5)))
        elif kind < 0.7:
            part = rng.choice([b" ", b"\n", b"a", b"=", b"\t", b"ab", "日".encode(), b"1"])
            part *= rng.choice([3, 17, 130, 1000, 9000])
        elif kind < 0.73:  # a table or a frame: rows of the same width
            row = rng.choice(ROWS).encode() * rng.randint(1, 70)
            part = (row + rng.choice([b"\n", b"\r\n", b"", b"|"])) * rng.randint(2, 20)
        elif kind < 0.8:
            part = "".join(chr(random_code_point(rng)) for _ in range(rng.randint(1, 40))).encode()
        elif kind < 0.85:
            part = bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=rng.choice([5, 50, 6000])))
        elif kind < 0.9:
            part = rng.randbytes(rng.randint(1, 30))
        else:
            part = rng.choice([b" ", b"\n", b"\r\n", b"\n    ", b", ", b"'s ", b". "])
        parts.append(part)
        length += len(part)
    return b"".join(parts)


def random_code_point(rng: random.Random) -> int:
    top = rng.choice([0x80, 0x300, 0x3000, 0xD800, 0x10000, 0x110000])
    code = rng.randrange(top)
    return code if not 0xD800 <= code < 0xE000 else 0x41


class Supply:
    """Text for one machine: mostly of one kind, so that rare states are reached and stay."""

    def __init__(
        self, rng: random.Random, letters: bytes, is_clean: bool, big_share: float
    ) -> None:
        """is_clean: text is UTF-8, and holds few special tokens. big_share: how often it is big."""
        self.rng = rng
        self.letters = letters
        self.is_clean = is_clean
        self.held = bytearray()
        self.mode = rng.choices(list(MODES), list(MODES.values()))[0]
        scale = rng.random()
        self.is_big = scale > 1 - big_share
        self.runs = BIG if self.is_big else MIDDLE if scale > 0.85 - big_share else RUNS
        self.sizes = [rng.choice([1, 2, 4, 8]), rng.choice([8, 30, 120])]
        if scale > 0.85 - big_share:
            self.sizes += [1000, 4096, rng.choice([5000, 32_768])]
        if self.is_big:
            self.sizes += [70_000, 200_000, 300_000]

    def restart(self, waiting: bytes) -> None:
        """Forget what was held: the stream refused a part of it. `waiting` is to be finished."""
        self.held.clear()
        if waiting and self.rng.random() < 0.8:
            self.held += completion(waiting)

    def size(self) -> int:
        mean = self.rng.choice(self.sizes)
        return int(self.rng.expovariate(1 / mean)) if mean > 1 else 1

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        held = self.held
        while len(held) < size:
            held += self.part()
        data = bytes(held[:size])
        del held[:size]
        return data

    def part(self) -> bytes:
        rng = self.rng
        mode = self.mode if rng.random() < 0.8 else rng.choice(list(MODES))
        if mode == "letters":
            data = bytes(rng.choices(self.letters, k=rng.randint(1, 30)))
        elif mode == "nasty":
            data = rng.choice(TEXTS)
        elif mode == "words":
            data = random_text(rng, rng.choice([10, 60]))
            data = data[:1000] if not self.is_big else data
        elif mode == "blanks":
            data = rng.choice(BLANKS) if rng.random() < 0.3 else self.blanks()
        elif mode == "runs":
            letter = rng.choice(self.letters)
            unit = bytes([letter]) if rng.random() < 0.7 and letter < 128 else rng.choice(UNITS)
            data = rng.choice(HEADS) + unit * self.run() + rng.choice(HEADS)
        elif mode == "malformed":
            data = rng.choice(MALFORMED)
            if rng.random() < 0.1:
                data = bytes([data[-1]]) * self.run()
        else:
            data = rng.choice(SPECIALS)
        if self.is_clean:
            data = data.decode("utf-8", "ignore").encode()
            if rng.random() < 0.9:
                data = data.replace(b"|>", b"|")
        return data

    def run(self) -> int:
        return self.rng.choice(self.runs) + self.rng.choice([0, 0, -1, 1, 2])

    def blanks(self) -> bytes:
        rng = self.rng
        unit = rng.choice([b" ", b" ", b" ", b"\t", b" \t", "\u3000".encode(), b"\xc2\xa0"])
        data = rng.choice(HEADS) + unit * self.run()
        return data * rng.choice([1, 1, 2, 20]) if len(data) < 2000 else data

    def chunk(self, size: int, *, is_text: bool, errors: str) -> Chunk:
        """The next chunk: a str, or one of the kinds of bytes."""
        rng = self.rng
        if is_text and rng.random() < 0.1:
            return "".join(rng.choices(SURROGATES, k=rng.randint(1, 4)))
        if is_text and rng.random() < 0.2:
            return "".join(chr(random_code_point(rng)) for _ in range(min(size, 20)))
        data = self.take(size)
        if not is_text:
            return any_bytes(rng, data)
        if errors == "surrogateescape":
            return data.decode("utf-8", "surrogateescape")
        return data.decode("utf-8", "replace" if errors == "replace" else "ignore")


def any_bytes(rng: random.Random, data: bytes) -> Chunk:
    kind = rng.random()
    if kind < 0.6:
        return data
    if kind < 0.7:
        return bytearray(data)
    if kind < 0.8:
        return memoryview(data)
    if kind < 0.9:
        return memoryview(b"?" + data + b"\xff")[1:-1]
    return memoryview(bytearray(data))


def short(chunk: object) -> str:
    """A chunk as a story tells it."""
    if isinstance(chunk, memoryview) and chunk.c_contiguous:
        return f"memoryview({short(bytes(chunk))})"
    if isinstance(chunk, str | bytes | bytearray) and len(chunk) > 300:
        return f"{chunk[:150]!r} ... {chunk[-50:]!r}"
    shown = repr(chunk)
    return shown if len(shown) <= 500 else f"{shown[:250]} ... {shown[-50:]}"
