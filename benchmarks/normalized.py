"""The cost of a normalizer: `python -m benchmarks.normalized [--form NFC]`.

The same vocabulary is timed with and without a normalizer, on texts that it does not change. The
ids must be equal, or nothing is timed. The figures are the speed with it over the speed without,
for whole texts and for streams in chunks.
"""

from __future__ import annotations

import argparse
import unicodedata
from collections.abc import Iterator
from functools import partial

import streamtok
from streamtok.engines.rules import NO_RULES, TextRules
from streamtok.normalizers import Form, Normalizer

from . import corpus, peers, turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--form", default="NFC", choices=["NFC", "NFKC", "NFD", "NFKD"])
    parser.add_argument("--encoding", default="cl100k_base")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    known = streamtok.get_encoding(args.encoding)
    plain, normalized = (
        streamtok.Encoding(
            known.name,
            pat_str=known._pat_str,
            mergeable_ranks=known.definition.vocabulary,
            special_tokens={},
            rules=rules,
        )
        for rules in (NO_RULES, TextRules(normalizer=Normalizer([Form(args.form)])))
    )

    def row(name: str) -> Iterator[str]:
        yield name
        text = corpus.generated(name).decode("utf-8", "ignore")
        data = unicodedata.normalize(args.form, text).encode()
        for size in (len(data), *peers.CHUNKS.values()):
            fed = data[: max(size, 1 << 12) << 8]
            calls = {"plain": partial(feed, plain, fed, size)}
            calls["streamtok"] = partial(feed, normalized, fed, size)
            times = turns.in_turns(turns.only_equal(calls), args.rounds)
            yield f"{turns.ratio(times['plain'], times['streamtok']):.2f}"

    columns = ["text", "whole texts", *(f"chunks of {size}" for size in peers.CHUNKS)]
    turns.show(columns, map(row, corpus.NAMES))


def feed(encoding: streamtok.Encoding, data: bytes, size: int) -> int:
    """A hash of the ids of a stream in chunks."""
    stream = encoding.stream_encoder(disallowed_special=())
    starts = range(0, len(data), size)
    ids = [stream.encode_to_numpy(data[at : at + size]).tobytes() for at in starts]
    return hash((b"".join(ids), tuple(stream.flush())))


if __name__ == "__main__":
    main()
