"""Budgets and chunks, compared with the usual way: `python -m benchmarks.answers`.

Most programs encode all of the text with tiktoken, cut the list of ids, and decode the rest. For
chunks, LangChain's splitters and semchunk are compared, too, if installed (the extra `bench`). If
their answer is right, ours must be the same, or nothing is timed; otherwise, the last column names
their error. Times are medians of processor time.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import streamtok
from streamtok.jobs.argument_types import parse_positive_size

from . import corpus, peers, turns

BUDGET, CHUNK_BUDGET = 4096, 512
PART = 1_000_000  # characters of text for the splitters


class Row(NamedTuple):
    """Two ways to the same answer. wrong: the error in theirs, if it differs from ours."""

    what: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    wrong: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--size", type=parse_positive_size, default="10MB", help="of the text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--encoding", default="cl100k_base")
    args = parser.parse_args()
    columns = ["", "streamtok, ms", "today, ms", "times", "what is wrong with today's answer"]
    turns.show(columns, measure(make_text(args.size), args.encoding, args.rounds))


def make_text(size: int) -> str:
    """The kinds of text, 64 KiB of each in turn, up to `size` characters."""
    texts = [corpus.generated(name).decode("utf-8", "ignore") for name in corpus.NAMES]
    parts: list[str] = []
    for at in range(0, size, 1 << 16):
        which = texts[(at >> 16) % len(texts)]
        start = (at // len(texts)) % max(len(which) - (1 << 16), 1)
        parts.append(which[start : start + (1 << 16)])
    return "".join(parts)[:size]


def measure(text: str, name: str, rounds: int) -> Iterator[list[str]]:
    """Compare the answers, then the time that they take. SystemExit if the answers differ."""
    ours = streamtok.get_encoding(name)
    with tempfile.TemporaryDirectory() as folder:
        peers.write_assets(Path(folder), [name])
        theirs = peers.by_name("tiktoken")(name, Path(folder)).tokenizer
    for row in [*budgets(ours, theirs, text), *chunks(ours, theirs, name, text)]:
        calls = {"theirs": row.theirs, "streamtok": row.ours}
        if not row.wrong:
            turns.only_equal(calls)
        times = turns.in_turns(calls, rounds, least=0.02)
        mine, other = (1e3 * statistics.median(times[x]) for x in ("streamtok", "theirs"))
        yield [row.what, f"{mine:.3f}", f"{other:.1f}", f"{other / mine:,.1f}", row.wrong]


def budgets(ours: Any, theirs: Any, text: str) -> Iterator[Row]:
    encode = theirs.encode_ordinary
    yield Row(
        f"does it fit {BUDGET} tokens",
        lambda: ours.fits(text, BUDGET),
        lambda: len(encode(text)) <= BUDGET,
    )
    ways = {"right": slice(BUDGET), "left": slice(-BUDGET, None)}
    for side, part in ways.items():
        kept = theirs.decode(encode(text)[part])
        wrong = "half a character, or too many tokens"
        yield Row(
            f"truncate to {BUDGET}, side={side}",
            lambda side=side: ours.truncate(text, BUDGET, side).text,
            lambda part=part: theirs.decode(encode(text)[part]),
            wrong if "\ufffd" in kept or len(encode(kept)) > BUDGET else "",
        )


def chunks(ours: Any, theirs: Any, name: str, whole: str) -> Iterator[Row]:
    text = whole[:PART]
    for what, boundary, split in splitters(theirs, name):

        def own(boundary: str = boundary) -> list[str]:
            return [chunk.text for chunk in ours.split(text, CHUNK_BUDGET, boundary=boundary)]

        def too_large(found: list[str]) -> int:
            return sum(len(theirs.encode_ordinary(one)) > CHUNK_BUDGET for one in found)

        found, exact = split(text), own()
        if "".join(exact) != text or too_large(exact):
            raise SystemExit("the chunks are not the text, or too large")
        wrong = {
            "have half characters": sum("\ufffd" in one for one in found),
            "have too many tokens": too_large(found),
            "characters are lost": max(0, len(text) - sum(map(len, found))),
        }
        said = ", ".join(f"{n:,} {of}" for of, n in wrong.items() if n) or "none is wrong"
        yield Row(
            f"chunks of {CHUNK_BUDGET} by {boundary}, to {what}",
            own,
            lambda split=split: split(text),
            f"of {len(found):,}, {said}",
        )


def splitters(theirs: Any, name: str) -> Iterator[tuple[str, str, Callable[[str], list[str]]]]:
    """(name, our closest boundary, function) of each splitter that is installed."""

    def cut(text: str) -> list[str]:
        ids = theirs.encode_ordinary(text)
        starts = range(0, len(ids), CHUNK_BUDGET)
        return theirs.decode_batch([ids[at : at + CHUNK_BUDGET] for at in starts])

    yield "ids that are cut", "character", cut
    with contextlib.suppress(ImportError):
        import langchain_text_splitters as langchain
        import tiktoken

        tiktoken.registry.ENCODINGS.setdefault(name, theirs)  # otherwise it would be downloaded
        settings: dict[str, Any] = {"encoding_name": name, "chunk_size": CHUNK_BUDGET}
        settings |= {"chunk_overlap": 0, "disallowed_special": ()}
        by_tokens = langchain.TokenTextSplitter(**settings)
        yield "TokenTextSplitter", "character", by_tokens.split_text
        recursive = langchain.RecursiveCharacterTextSplitter.from_tiktoken_encoder(**settings)
        yield "RecursiveCharacterTextSplitter", "paragraph", recursive.split_text
    with contextlib.suppress(ImportError):
        import semchunk

        count = lambda text: len(theirs.encode_ordinary(text))  # noqa: E731
        yield "semchunk", "paragraph", semchunk.chunkerify(count, CHUNK_BUDGET, memoize=False)


if __name__ == "__main__":
    main()
