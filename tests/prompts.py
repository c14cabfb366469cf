"""Random conversations with forks and replaced tails, in a `PromptCache`: ids must be those of the
whole text, always.

    python -m tests.prompts                               # 10,000, over five encodings
    python -m tests.prompts --models FILE ... --seed 7    # over vocabulary files

Prints how many prompts were compared, and how many differ; the first of these for each encoding
with what repeats it. The exit code is 1 if any differs. Beside it: how many of the same prompts the
overlaps of serving engines get wrong (they keep all ids but the last few, and encode again from
there), and how many ids each encodes, in parts of those of encoding every prompt as a whole.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import streamtok
from streamtok.answers import prompt_cache

from .nasty import TEXTS

__all__ = ["conversation", "main"]

ENCODINGS = ["gpt2", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony"]
_TURNS = 8
_WORDS = [
    "the", "tea", "is", "naïve", "don't", "12345", "3.14", "return", "x", "!=", "y;\n\n", "def",
    "f(x):", "日本語の", "テキスト", "🎉", "<think>\n", "</think>", "e\u0301", "Straße", "...",
    "---", "HTTPServer\t\r\n", "", "http://a.b/c?d=e#f", "ΑΒΓ", "привет",
]  # fmt: skip


OVERLAP = 8  # ids that are encoded again


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


def conversation(rng: random.Random) -> Iterator[str]:
    """Prompts in the order of asking: turns are added, tails replaced, older prompts forked."""
    system = "".join(_piece(rng) for _ in range(rng.choice([5, 50, 300])))
    known = [system]
    yield system
    for _ in range(rng.randrange(2, _TURNS)):
        prompt = rng.choice(known) if rng.random() < 0.3 else known[-1]
        if rng.random() < 0.4:  # the tail is replaced, at any character
            prompt = prompt[: max(0, len(prompt) - rng.randrange(rng.choice([9, 200])))]
        prompt += "".join(_piece(rng) for _ in range(rng.choice([0, 1, 4, 30, 200])))
        known.append(prompt)
        yield prompt


def _piece(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.02:
        return rng.choice(TEXTS).decode("utf-8", "replace")[:200]
    if kind < 0.04:
        return chr(rng.choice([rng.randrange(32, 0xD800), rng.randrange(0xE000, 0x110000)]))
    if kind < 0.06:
        return rng.choice(["<|im_start|>", "<|endoftext|>", "<|endof", "\u2581", " " * 7, "\n\n\n"])
    return rng.choice(_WORDS) + rng.choice([" ", " ", " ", "", "\n", "  "])


class Outcome:
    """Of the prompts of an encoding."""

    def __init__(self) -> None:
        self.prompts = self.wrong = self.guessed = self.checked = self.encoded_whole = 0
        self.first = ""
        self.ids = 0  # of all prompts
        self.misses = 0  # ids that the cache encoded


def run(encoding: streamtok.Encoding, n: int, seed: int) -> Outcome:
    """How many prompts there were, how many got other ids from whom, and the first of the cache.

    Conversations are interleaved and share two caches, which forget.
    """
    rng = random.Random(seed)
    cache, changes = (streamtok.PromptCache(encoding, 1 << 20) for _ in range(2))
    open_ones: list[tuple[int, Iterator[str], Overlap, Checked, str]] = []
    outcome, started = Outcome(), 0
    while started < n or open_ones:
        if started < n and (len(open_ones) < 8 or rng.random() < 0.1):
            number = seed * n + started
            talk = conversation(random.Random(number))
            open_ones.append((number, talk, Overlap(encoding), Checked(encoding), ""))
            started += 1
        place = rng.randrange(len(open_ones))
        number, talk, overlap, checked, before = open_ones[place]
        prompt = next(talk, None)
        if prompt is None:
            outcome.encoded_whole += checked.encoded_whole
            del open_ones[place]
            continue
        ids = encoding.encode(prompt, allowed_special="all")
        change = changes.encode_change(before, prompt)
        changed = encoding.encode(before, allowed_special="all")[: change.kept] + change.added
        outcome.prompts += 1
        outcome.ids += len(ids)
        known = cache.stats.misses
        if cache.encode(prompt) != ids or changed != ids:
            outcome.wrong += 1
            outcome.first = outcome.first or f"conversation {number}: {prompt[-80:]!r}"
        outcome.misses += cache.stats.misses - known
        outcome.guessed += overlap.encode(prompt) != ids
        outcome.checked += checked.encode(prompt) != ids
        open_ones[place] = number, talk, overlap, checked, prompt
    return outcome


def main(given: list[str] | None = None) -> int:
    """Read the arguments and compare."""
    parser = argparse.ArgumentParser(prog="python -m tests.prompts", description=__doc__)
    parser.add_argument("--conversations", type=int, default=10_000, help="in all")
    parser.add_argument("--models", nargs="*", type=Path, help="vocabulary files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--block", type=int, default=300, help="characters of a block of a cache")
    args = parser.parse_args(given)
    prompt_cache._BLOCK = args.block
    if args.models:
        encodings = {str(path): streamtok.load(path) for path in args.models}
    else:
        encodings = {name: streamtok.get_encoding(name) for name in ENCODINGS}
    failed = False
    for name, encoding in encodings.items():
        n = -(-args.conversations // len(encodings))
        found = run(encoding, n, args.seed)
        print(
            f"{name}: {n:,} conversations, {found.prompts:,} prompts, {found.wrong} differ; an "
            f"overlap gets {found.guessed:,} wrong, a checked one {found.checked:,}, which encodes "
            f"{found.encoded_whole:,} as a whole; the cache encodes {found.misses / found.ids:.0%} "
            "of all ids",
            flush=True,
        )
        if found.wrong:
            print(f"    first, with --seed {args.seed}: {found.first}")
        failed |= found.wrong > 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
