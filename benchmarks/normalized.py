"""What a normalizer costs: `python -m benchmarks.normalized [--form NFC]`.

The same vocabulary with a normalizer and without, on texts that the normalizer leaves as they are,
so the ids are equal, or nothing is timed. Speeds are those with it over those without: medians of
interleaved runs of processor time, for whole texts and for streams in chunks.
"""

from __future__ import annotations

import argparse
import statistics
import time
import unicodedata
from collections.abc import Callable

import streamtok
from streamtok.engines.rules import NO_RULES, TextRules
from streamtok.normalizers import Form, Normalizer

from . import corpus

CHUNKS = {"64 KiB": 1 << 16, "4 KiB": 1 << 12, "256 B": 1 << 8}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--form", default="NFC", choices=["NFC", "NFKC", "NFD", "NFKD"])
    parser.add_argument("--encoding", default="cl100k_base", help="or a tokenizer.json")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    plain, normalized = twins(args.encoding, args.form)
    print("| text | whole texts |", " | ".join(f"chunks of {size}" for size in CHUNKS), "|")
    print("|---" + "|--:" * (1 + len(CHUNKS)) + "|")
    for name in corpus.NAMES:
        text = corpus.generated(name).decode("utf-8", "ignore")
        text = unicodedata.normalize(args.form, text)
        assert normalized.encode_ordinary(text) == plain.encode_ordinary(text)
        whole = ratio(
            lambda text=text: normalized.encode_to_numpy(text, disallowed_special=()),
            lambda text=text: plain.encode_to_numpy(text, disallowed_special=()),
            args.rounds,
        )
        row = [whole]
        for size in CHUNKS.values():
            data = text.encode()[: max(size, 1 << 12) << 8]
            assert in_chunks(normalized, data, size) == in_chunks(plain, data, size)
            row.append(
                ratio(
                    lambda data=data, size=size: in_chunks(normalized, data, size),
                    lambda data=data, size=size: in_chunks(plain, data, size),
                    args.rounds,
                )
            )
        print(f"| {name} |", " | ".join(f"{one:.2f}" for one in row), "|", flush=True)


def twins(name: str, form: str) -> tuple[streamtok.Encoding, streamtok.Encoding]:
    """The vocabulary without a normalizer, and with this one only."""
    known = streamtok.load(name) if name.endswith(".json") else streamtok.get_encoding(name)

    def make(rules: TextRules) -> streamtok.Encoding:
        return streamtok.Encoding(
            known.name,
            pat_str=known._pat_str,
            mergeable_ranks=known._vocabulary,
            special_tokens={},
            rules=rules,
        )

    return make(NO_RULES), make(TextRules(normalizer=Normalizer([Form(form)])))


def in_chunks(encoding: streamtok.Encoding, data: bytes, size: int) -> int:
    """How many ids a stream gives for chunks of `size` bytes; they are not kept."""
    stream = encoding.stream_encoder(disallowed_special=())
    count = sum(
        len(stream.encode_to_numpy(data[at : at + size])) for at in range(0, len(data), size)
    )
    return count + len(stream.flush())


def ratio(ours: Callable[[], object], other: Callable[[], object], rounds: int) -> float:
    """The speed of `ours` over that of `other`."""
    found = []
    for _ in range(rounds):
        times = []
        for call in (ours, other):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
        found.append(times[1] / times[0])
    return statistics.median(found[1:])


if __name__ == "__main__":
    main()
