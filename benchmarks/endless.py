"""Streams without an end: the largest tail ever held, MB/s and memory, for each kind of input.

    python -m benchmarks.endless --size 1_000_000_000

Each kind is fed to a stream of its own in 64 KiB chunks, in a fresh process. `tail` is the most
that was ever pending after a call, in bytes; `peak` the highest resident set, in MiB; `growth` what
it rose by after the first 10 MB, in MiB. First, the ids of a beginning of 256 KiB, streamed in
chunks of 1 000 bytes, are compared with those of the same bytes encoded as a whole.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time

import streamtok

CHUNK = 1 << 16
LETTERS = b"abcdefghijklmnopqrstuvwxyz"
BASE64 = LETTERS + LETTERS.upper() + b"0123456789+/"


def block(kind: str) -> bytes:
    """A block of 4 MiB or so that is repeated: longer than any cache of whole pre-tokens."""
    rng = random.Random(kind)
    size = 64 * CHUNK
    if kind == "random letters":
        return bytes(rng.choices(LETTERS, k=size))
    if kind == "base64":
        return bytes(rng.choices(BASE64, k=size))
    if kind == "CJK":
        return "".join(map(chr, rng.choices(range(0x4E00, 0x9FFF), k=size // 3))).encode()
    if kind == "random bytes":
        return rng.randbytes(size)
    if kind == "words":
        words = [bytes(rng.choices(LETTERS, k=rng.randint(1, 9))) for _ in range(20_000)]
        return b" ".join(rng.choices(words, k=size // 6))
    if kind == "digits":
        return bytes(rng.choices(b"0123456789", k=size))
    if kind == "newline and blanks":
        return b" " * size
    if kind == "lines of blanks":
        return (b"\n" + b" " * 1150) * (size // 1151)
    if kind == "blanks in words":
        return b"".join(b"x" + b" " * rng.randint(500, 2000) for _ in range(size // 1250))
    if kind == "lines of dashes":
        return b"".join(b"-" * rng.randint(1, 3000) + b"=\n" for _ in range(size // 1500))
    if kind == "dashes and words":
        return bytes(rng.choices(b"-=ab", (500, 5, 1, 1), k=size))
    unit = {"blanks": " ", "newlines": "\n"}.get(kind, kind).encode()
    return unit * (size // len(unit))


KINDS = [
    "random letters", "base64", "CJK", "digits", "a", "=", "ab", "é", "blanks", "newlines",
    "newline and blanks", "lines of blanks", "blanks in words", "words", "random bytes",
]  # fmt: skip
LONG_TOKENS = "long tokens"  # an encoding whose tokens have up to 1 000 bytes
LONG_KINDS = ["-", "=", "lines of dashes", "dashes and words"]


def encoding_of(name: str) -> streamtok.Encoding:
    if name != LONG_TOKENS:
        return streamtok.get_encoding(name)
    texts = ["read me " * 50] * 3 + ["-" * 1000] * 200 + ["=" * 1000 + "\n"] * 50
    return streamtok.Encoding.train_from_iterator(texts, 600, "gpt2")


def resident() -> int:
    """Bytes of memory in use now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def measure(encoding: str, kind: str, size: int) -> dict[str, object]:
    enc = encoding_of(encoding)
    data = block(kind)
    head = b"x\n" if kind == "newline and blanks" else b""
    settings = {"errors": "surrogateescape", "disallowed_special": ()}
    start = head + data[: 4 * CHUNK]
    stream = enc.stream_encoder(**settings)
    ids = [i for at in range(0, len(start), 1000) for i in stream.encode(start[at : at + 1000])]
    if ids + stream.flush() != enc.encode(start, **settings):
        raise SystemExit(f"{encoding}, {kind}: the stream's ids differ from the whole text's")
    chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
    stream.encode(head)
    fed = tail = tokens = 0
    level = peak = 0
    begin = time.perf_counter()
    while fed < size:
        for chunk in chunks:
            tokens += len(stream.encode_to_numpy(chunk))
            tail = max(tail, stream.pending)
            fed += len(chunk)
        if fed >= 10_000_000:
            level = level or resident()
            peak = max(peak, resident())
    seconds = time.perf_counter() - begin
    return {
        "encoding": encoding, "kind": kind, "tail": tail, "MB/s": fed / seconds / 1e6,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "growth": (peak - level) / 2**20, "tokens": tokens + len(stream.flush()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--size", type=lambda text: int(text.replace("_", "")), default=10**9)
    parser.add_argument("--encodings", default=f"r50k_base,cl100k_base,o200k_base,{LONG_TOKENS}")
    parser.add_argument("--kinds", help="default: all")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.encodings, options.one, options.size)))
        return
    print("| encoding | input | tail, bytes | MB/s | peak, MiB | growth, MiB |")
    print("|---|---|--:|--:|--:|--:|")
    form = "| {} | {} | {} | {:.0f} | {:.0f} | {:.1f} |"
    for encoding in options.encodings.split(","):
        kinds = LONG_KINDS if encoding == LONG_TOKENS else KINDS
        for kind in options.kinds.split(",") if options.kinds else kinds:
            command = [sys.executable, "-m", "benchmarks.endless", "--one", kind]
            command += ["--encodings", encoding, "--size", str(options.size)]
            ran = subprocess.run(command, stdout=subprocess.PIPE, check=True)
            row = json.loads(ran.stdout)
            fields = ["encoding", "kind", "tail", "MB/s", "peak", "growth"]
            print(form.format(*(row[field] for field in fields)), flush=True)


if __name__ == "__main__":
    main()
