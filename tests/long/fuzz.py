"""The adversary: streams against whole texts against tiktoken against the slow reference.

    python -m tests.long.fuzz --seconds 60
    python -m tests.long.fuzz --bytes 100_000_000 --cuts 10_000_000 --seed 1
    python -m tests.long.fuzz --states --seconds 60  (calls in any order: see `states/runner.py`)

Every round makes a text of nasty parts, runs, random characters and bytes that are no UTF-8, picks
an encoding (r50k, cl100k, o200k, Llama-3-style, a random small vocabulary with a random pattern,
one with normalizers and flags of tokens, or a model of pieces), a policy for errors and special
tokens, and cuts the text at random. Any difference ends the run with what is needed to repeat it.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

import streamtok
from streamtok.reference import bpe as reference

from ..api.test_laws import PATTERNS
from ..conftest import PACKED, encoding_of, stream_ids, twin_of
from ..nasty import TEXTS

WORDS = b"the of and to in is you that it he was for on are as with his they I at be this".split()
ROWS = [" ", "-", "=", "01", "\u00a0", "─", "……", "日"]
NOT_BPE_ALONE = ("rewriting", "pieces")  # what the reference of BPE and tiktoken do not have
REFERENCE_BYTES = 400  # the reference is slow: it sees this much of a text


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


def random_encoding(rng: random.Random) -> streamtok.Encoding:
    """A small vocabulary with unreachable tokens and holes, and a pattern."""
    alphabet = rng.choice([b"ab", b"ab \n", b"etaoin ", b"a=1 \xe6\x97\xa5"])
    tokens = {
        bytes(rng.choices(alphabet, k=rng.choice([2, 2, 2, 3, 3, 4, 6, 12])))
        for _ in range(rng.randint(0, 80))
    }
    singles = [bytes([i]) for i in range(256)]
    order = [*rng.sample(sorted(tokens), len(tokens)), *singles]
    if rng.random() < 0.5:
        order = order[len(tokens) :] + order[: len(tokens)]
    step = rng.randint(1, 3)
    return streamtok.Encoding(
        "random",
        pat_str=rng.choice(PATTERNS),
        mergeable_ranks={token: i * step for i, token in enumerate(order)},
        special_tokens={"<|endoftext|>": 5000, "<|eot_id|>": 5001, "<|eot_id|>\n": 5002},
    )


def random_chunks(rng: random.Random, data: bytes, mean: int) -> list[bytes]:
    chunks = []
    start = 0
    while start < len(data):
        size = 1 + int(rng.expovariate(1 / mean))
        chunks.append(data[start : start + size])
        start += size
    return chunks


def one_round(seed: int, against_tiktoken: bool) -> tuple[int, int]:
    """Check one text; the bytes and cuts that were checked."""
    rng = random.Random(seed)
    name = rng.choice([*PACKED, "llama3_style", "random", *NOT_BPE_ALONE])
    if name in NOT_BPE_ALONE:
        from .states.encodings import made

        enc = made(name, rng.randrange(1000)).encoding
    else:
        enc = random_encoding(rng) if name == "random" else encoding_of(name)
    settings = {
        "errors": rng.choice(["replace", "surrogateescape"]),
        "allowed_special": rng.choice(["all", frozenset()]),
        "disallowed_special": (),
    }
    data = random_text(rng, rng.choice([50, 500, 20_000, 60_000]))
    whole = enc.encode(data, **settings)
    cuts = 0
    for mean in [rng.choice([1, 3, 8]), rng.choice([8, 20, 5000])]:
        chunks = random_chunks(rng, data, mean)
        got = stream_ids(enc.stream_encoder(**settings), chunks)
        check(got == whole, f"stream of {name} at chunks of about {mean} bytes", seed)
        cuts += len(chunks) - 1
    if name in NOT_BPE_ALONE:
        return len(data), cuts
    if settings["errors"] == "surrogateescape" and enc.pattern and enc.pattern.is_total:
        check(enc.decode_bytes(whole) == data, f"round trip of {name}", seed)
    part = data[:REFERENCE_BYTES]
    expected = reference.encode(
        enc._mergeable_ranks,
        enc._pat_str,
        part,
        errors=settings["errors"],
        special_tokens=enc._special_tokens,
        allowed_special=enc.special_tokens_set if settings["allowed_special"] else (),
    )
    check(enc.encode(part, **settings) == expected, f"reference of {name}", seed)
    if against_tiktoken and name != "random":
        text = data.decode("utf-8", "replace")
        expected = twin_of(name).encode(
            text, allowed_special=settings["allowed_special"], disallowed_special=()
        )
        mine = {**settings, "errors": "strict"}
        check(enc.encode(text, **mine) == expected, f"tiktoken's {name}", seed)
    return len(data), cuts


def check(same: bool, what: str, seed: int) -> None:
    if not same:
        sys.exit(f"DIFFERENCE in {what}: python -m tests.long.fuzz --repeat {seed}")


def main() -> None:
    if "--states" in sys.argv:
        from .states import runner

        return runner.main([argument for argument in sys.argv[1:] if argument != "--states"])
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--bytes", type=lambda text: int(text.replace("_", "")), default=1 << 62)
    parser.add_argument("--cuts", type=lambda text: int(text.replace("_", "")), default=1 << 62)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=int, help="one round, with this seed")
    options = parser.parse_args()
    try:
        import tiktoken  # noqa: F401

        against_tiktoken = True
    except ImportError:
        against_tiktoken = False
    if options.repeat is not None:
        print(one_round(options.repeat, against_tiktoken))
        return
    if options.seconds == float("inf") and options.bytes == options.cuts == 1 << 62:
        options.seconds = 60.0
    start = time.monotonic()
    rounds = size = cuts = 0
    while (size < options.bytes or cuts < options.cuts) and (
        time.monotonic() - start < options.seconds
    ):
        more_bytes, more_cuts = one_round(options.seed * 1_000_000_007 + rounds, against_tiktoken)
        rounds, size, cuts = rounds + 1, size + more_bytes, cuts + more_cuts
        if rounds % 500 == 0:
            print(f"{rounds} rounds, {size} bytes, {cuts} cuts, no difference", flush=True)
    print(
        f"{rounds} rounds, {size} bytes, {cuts} cuts, {time.monotonic() - start:.0f} s, "
        f"seed {options.seed}, tiktoken {'yes' if against_tiktoken else 'no'}: no difference"
    )


if __name__ == "__main__":
    main()
