"""Prompts that grow: a full encode, `PromptCache`, and the overlap that serving engines guess:
`python -m benchmarks.prompts`.

A conversation of so many tokens grows by a turn for each call, and every list of ids is compared
with that of a full encode, before anything is timed. The cap is what any cache that returns a whole
list has to do: compare the text with one of its own, and copy a list of its own. The overlap is
built from its description: keep all ids but the last few, and encode again from there. What it gets
wrong is counted on prompts that end and go on at any character. Times are medians of processor
time, of rounds in each of which each has the whole conversation to itself, in another order.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import streamtok

from . import corpus

OVERLAP = 8  # ids that are encoded again
GUESSES = 2000  # prompts in which the overlap is tried
TURN = 900  # characters
TURNS = 40

Call = Callable[[str, str], Any]  # with the prompt before, and the next


class Row(NamedTuple):
    """Seconds of each; bytes that are kept for a token; guesses that are wrong, of all."""

    full: float
    cap: float
    cache: float
    change: float
    overlap: float
    token_bytes: float
    wrong: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--tokens", type=int, default=100_000, help="of the prompt")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--encodings", nargs="+", default=["cl100k_base", "o200k_base"])
    parser.add_argument("--models", nargs="*", type=Path, default=[], help="vocabulary files")
    parser.add_argument("--corpora", nargs="+", default=list(corpus.NAMES))
    args = parser.parse_args()
    encodings = {name: streamtok.get_encoding(name) for name in args.encodings}
    encodings |= {path.parent.name: streamtok.load(path) for path in args.models}
    print(
        f"a prompt of {args.tokens:,} tokens that grows by {TURN} characters, us; of {GUESSES:,}\n"
    )
    print(
        "| encoding | text | full encode | PromptCache | times | of the cap | what changed | times "
        "| bytes a token | overlap of 8 | its wrong answers |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, encoding in encodings.items():
        for kind in args.corpora:
            text = corpus.generated(kind).decode("utf-8", "ignore")
            row = measure(encoding, text, args.tokens, args.rounds)
            print(
                f"| {name} | {kind} | {1e6 * row.full:,.0f} | {1e6 * row.cache:,.0f} "
                f"| {row.full / row.cache:.1f} | {row.cap / row.cache:.2f} "
                f"| {1e6 * row.change:,.0f} | {row.full / row.change:.1f} "
                f"| {row.token_bytes:.0f} | {1e6 * row.overlap:,.0f} | {row.wrong:,} |"
            )


def measure(encoding: streamtok.Encoding, text: str, n_tokens: int, rounds: int) -> Row:
    """Compare the ids of each turn, and then take times."""
    whole = text
    while encoding.count(whole, allowed_special="all") < n_tokens:
        whole += text
    begin = len(whole) * n_tokens // encoding.count(whole, allowed_special="all")
    whole = whole[:begin] + (text * (TURNS * TURN // len(text) + 1))[: TURNS * TURN]

    def turns() -> Iterator[tuple[str, str]]:
        before = whole[:begin]
        for turn in range(1, TURNS + 1):
            prompt = whole[: begin + turn * TURN]
            yield before, prompt
            before = prompt

    first = whole[:begin]
    makers: dict[str, Callable[[], Call]] = {
        "full": lambda: lambda _, prompt: encoding.encode(prompt, allowed_special="all"),
        "cap": lambda: _cap(first, encoding),
        "cache": lambda: _cache(first, encoding)[0],
        "change": lambda: _cache(first, encoding)[1],
        "overlap": lambda: _overlap(first, encoding),
    }
    cache, change = makers["cache"](), makers["change"]()
    ids = encoding.encode(first, allowed_special="all")
    for before, prompt in turns():
        expected = encoding.encode(prompt, allowed_special="all")
        kept, added = change(before, prompt)
        assert cache(before, prompt) == expected, "PromptCache gives other ids"
        assert ids[:kept] + added == expected, "encode_change gives other ids"
        ids = expected
    times: dict[str, list[float]] = {what: [] for what in makers}
    rng = random.Random(0)
    order = list(makers)
    for _ in range(rounds):
        rng.shuffle(order)
        for what in order:
            call = makers[what]()
            for before, prompt in turns():
                start = time.thread_time()
                found = call(before, prompt)
                times[what].append(time.thread_time() - start)
            del found, call
    middle = {what: statistics.median(found) for what, found in times.items()}
    made = streamtok.PromptCache(encoding)
    made.encode(whole)
    token_bytes = made.stats.bytes / encoding.count(whole, allowed_special="all")
    return Row(**middle, token_bytes=token_bytes, wrong=wrong_guesses(encoding, text, GUESSES))


def _cap(begin: str, encoding: streamtok.Encoding) -> Call:
    ids = encoding.encode(begin, allowed_special="all")
    return lambda _, prompt: (prompt.startswith(begin), ids[:])


def _cache(begin: str, encoding: streamtok.Encoding) -> tuple[Call, Call]:
    cache = streamtok.PromptCache(encoding)
    cache.encode_change("", begin)
    return lambda _, prompt: cache.encode(prompt), cache.encode_change


def _overlap(begin: str, encoding: streamtok.Encoding) -> Call:
    overlapping = Overlap(encoding)
    overlapping.encode(begin)
    return lambda _, prompt: overlapping.encode(prompt)


class Overlap:
    """The ids of the last prompt but a few, and then those of the rest of the text by itself."""

    def __init__(self, encoding: streamtok.Encoding) -> None:
        self.encoding = encoding
        self.text = ""
        self.ids: list[int] = []

    def encode(self, text: str) -> list[int]:
        """The ids, if the last prompt is the beginning of this one; right or wrong."""
        kept = len(self.ids) - OVERLAP
        if kept <= 0 or not text.startswith(self.text):
            self.ids = self.encoding.encode(text, allowed_special="all")
        else:
            last = len(self.encoding.decode(self.ids[kept:]))
            rest = text[len(self.text) - last :]
            self.ids = self.ids[:kept] + self.encoding.encode(rest, allowed_special="all")
        self.text = text
        return self.ids


class Checked:
    """An overlap that is checked, as TensorRT-LLM's: so many of the last ids are encoded again with
    what follows, and where the first of these come out as they were, all before them are kept.
    Where they do not, or the prompt does not begin with the last one, all is encoded.
    """

    def __init__(self, encoding: streamtok.Encoding, overlap: int = 64, equal: int = 32) -> None:
        self.encoding = encoding
        self.overlap, self.equal = overlap, equal
        self.text = ""
        self.ids: list[int] = []
        self.place = 0  # of the first character that is encoded again
        self.encoded_whole = 0  # prompts

    def encode(self, text: str) -> list[int]:
        """The ids, right or wrong."""
        ids: list[int] = []
        kept = len(self.ids) - self.overlap
        if kept > 0 and text.startswith(self.text):
            again = self.encoding.encode(text[self.place :], allowed_special="all")
            n = min(self.equal, len(again))
            if again[:n] == self.ids[kept : kept + n]:
                ids = self.ids[:kept] + again
        if not ids:
            ids = self.encoding.encode(text, allowed_special="all")
            self.encoded_whole += 1
        last = self.encoding.decode(ids[-self.overlap :])
        # Where an id ends inside a character, there is no place to go on from.
        self.ids, self.text = (ids, text) if text.endswith(last) else ([], "")
        self.place = len(text) - len(last)
        return ids


def wrong_guesses(encoding: streamtok.Encoding, text: str, n: int) -> int:
    """How many of `n` prompts that end and go on anywhere the overlap gives other ids for."""
    rng = random.Random(0)
    wrong = 0
    for _ in range(n):
        start = rng.randrange(len(text) - 400)
        overlapping = Overlap(encoding)
        overlapping.encode(text[start : start + 200])
        prompt = text[start : start + 400]
        wrong += overlapping.encode(prompt) != encoding.encode(prompt, allowed_special="all")
    return wrong


if __name__ == "__main__":
    main()
