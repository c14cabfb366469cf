"""Budgets, counts, edits and prompts against what people do today: `python -m benchmarks.answers`.

Today's way is that of most programs: encode all of the text with tiktoken, cut the list of ids, and
decode what is left; count a stream chunk by chunk, or again from its beginning. Where that gives a
right answer, ours must be the same, or nothing is timed; the last column says what was wrong with
it. Chunks are compared with LangChain's splitters and semchunk, too, if these are installed (the
extra `bench`). Times are medians of processor time.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import streamtok
from streamtok.cli.argument_types import parse_positive_size

from . import corpus, peers

BUDGET = 4096
CHUNK_BUDGET = 512
EVENTS = 3000  # of a live text
EVENT_SIZE = 7  # characters
DOCUMENT = 1_000_000  # characters
TURN, TURNS = 900, 40  # characters that a prompt grows by, and how often


class Row(NamedTuple):
    """ours and theirs: seconds."""

    what: str
    ours: float
    theirs: float
    wrong: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument(
        "--size", type=parse_positive_size, default=parse_positive_size("8MB"), help="of the text"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--encoding", default="cl100k_base")
    args = parser.parse_args()
    text = make_text(args.size)
    print(f"{len(text.encode()):,} bytes, {args.encoding}, median of {args.rounds} rounds\n")
    print("| | streamtok, ms | today, ms | times | what is wrong with today's answer |")
    print("|---|--:|--:|--:|---|")
    for row in measure(text, args.encoding, args.rounds):
        ours, theirs = 1e3 * row.ours, 1e3 * row.theirs
        print(f"| {row.what} | {ours:.3f} | {theirs:.1f} | {theirs / ours:,.1f} | {row.wrong} |")


def make_text(size: int) -> str:
    """The kinds of text, 64 KiB of each in turn, up to `size` characters."""
    texts = [corpus.generated(name).decode("utf-8", "ignore") for name in corpus.NAMES]
    parts: list[str] = []
    for at in range(0, size, 1 << 16):
        which = texts[(at >> 16) % len(texts)]
        start = (at // len(texts)) % max(len(which) - (1 << 16), 1)
        parts.append(which[start : start + (1 << 16)])
    return "".join(parts)[:size]


def measure(text: str, name: str, rounds: int) -> list[Row]:
    """Compare the answers, then the time that they take."""
    ours = streamtok.get_encoding(name)
    with tempfile.TemporaryDirectory() as folder:
        peers.write_assets(Path(folder), [name])
        theirs = peers.by_name("tiktoken")(name, Path(folder)).tokenizer
    return [
        *budgets(ours, theirs, text, rounds),
        chunks(ours, theirs, text, rounds),
        *splitters(ours, theirs, name, text[:DOCUMENT], rounds),
        *live(ours, theirs, text[: EVENTS * EVENT_SIZE], rounds),
        *edits(ours, theirs, text, rounds),
        growing_prompt(ours, theirs, text[:DOCUMENT], rounds),
    ]


def budgets(ours: Any, theirs: Any, text: str, rounds: int) -> list[Row]:
    def cut(side: str) -> str:
        ids = theirs.encode_ordinary(text)
        kept: str = theirs.decode(ids[:BUDGET] if side == "right" else ids[-BUDGET:])
        return kept

    rows = [
        compared(
            f"does it fit {BUDGET} tokens",
            lambda: ours.fits(text, BUDGET),
            lambda: len(theirs.encode_ordinary(text)) <= BUDGET,
            rounds,
        ),
        compared(
            f"its first {BUDGET} ids",
            lambda: ours.encode_ordinary(text, max_tokens=BUDGET),
            lambda: theirs.encode_ordinary(text)[:BUDGET],
            rounds,
        ),
    ]
    for side in ("right", "left"):
        kept = cut(side)
        wrong = "\ufffd" in kept or len(theirs.encode_ordinary(kept)) > BUDGET
        rows.append(
            compared(
                f"truncate to {BUDGET}, side={side}",
                lambda side=side: ours.truncate(text, BUDGET, side).text,
                lambda side=side: cut(side),
                rounds,
                "half a character, or too many tokens" if wrong else "",
            )
        )
    return rows


def chunks(ours: Any, theirs: Any, text: str, rounds: int) -> Row:
    def cut() -> list[str]:
        ids = theirs.encode_ordinary(text)
        starts = range(0, len(ids), CHUNK_BUDGET)
        return theirs.decode_batch([ids[at : at + CHUNK_BUDGET] for at in starts])

    found = cut()
    broken = sum("\ufffd" in one for one in found)
    large = sum(len(theirs.encode_ordinary(one)) > CHUNK_BUDGET for one in found)
    exact = [chunk.text for chunk in ours.split(text, CHUNK_BUDGET)]
    assert "".join(exact) == text
    assert all(len(theirs.encode_ordinary(one)) <= CHUNK_BUDGET for one in exact)
    return Row(
        f"chunks of {CHUNK_BUDGET} ({len(exact):,})",
        seconds(lambda: list(ours.split(text, CHUNK_BUDGET)), rounds),
        seconds(cut, rounds),
        f"of {len(found):,}, {broken:,} have half characters, {large:,} too many tokens",
    )


def splitters(ours: Any, theirs: Any, name: str, text: str, rounds: int) -> list[Row]:
    """LangChain's splitters and semchunk, on the same text, as far as they are installed."""
    rows = []
    for what, boundary, split in installed_splitters(theirs, name):
        found = split(text)
        exact = [chunk.text for chunk in ours.split(text, CHUNK_BUDGET, boundary=boundary)]
        assert "".join(exact) == text
        assert all(len(theirs.encode_ordinary(one)) <= CHUNK_BUDGET for one in exact)
        broken = sum("\ufffd" in one for one in found)
        large = sum(len(theirs.encode_ordinary(one)) > CHUNK_BUDGET for one in found)
        lost = len(text) - sum(map(len, found))
        wrong = [
            f"{broken:,} have half characters" * bool(broken),
            f"{large:,} have too many tokens" * bool(large),
            f"{lost:,} characters are lost" * (lost > 0),
        ]
        rows.append(
            Row(
                f"chunks of 1 MB by {boundary}, to {what}",
                seconds(
                    lambda b=boundary: list(ours.split(text, CHUNK_BUDGET, boundary=b)), rounds
                ),
                seconds(lambda split=split: split(text), rounds),
                f"of {len(found):,}, " + (", ".join(filter(None, wrong)) or "none is wrong"),
            )
        )
    return rows


def installed_splitters(
    theirs: Any, name: str
) -> list[tuple[str, str, Callable[[str], list[str]]]]:
    """(name, our boundary that is like theirs, function) of each library that is installed."""
    found: list[tuple[str, str, Callable[[str], list[str]]]] = []
    with contextlib.suppress(ImportError):
        import langchain_text_splitters as langchain
        import tiktoken

        tiktoken.registry.ENCODINGS.setdefault(name, theirs)  # it would be downloaded
        sizes = {"encoding_name": name, "chunk_size": CHUNK_BUDGET, "chunk_overlap": 0}
        by_tokens = langchain.TokenTextSplitter(**sizes, disallowed_special=())
        by_paragraphs = langchain.RecursiveCharacterTextSplitter.from_tiktoken_encoder(
            **sizes, disallowed_special=()
        )
        found.append(("LangChain's TokenTextSplitter", "character", by_tokens.split_text))
        found.append(
            ("LangChain's RecursiveCharacterTextSplitter", "paragraph", by_paragraphs.split_text)
        )
    with contextlib.suppress(ImportError):
        import semchunk

        chunker = semchunk.chunkerify(
            lambda text: len(theirs.encode_ordinary(text)), CHUNK_BUDGET, memoize=False
        )
        found.append(("semchunk", "paragraph", chunker))
    return found


def live(ours: Any, theirs: Any, text: str, rounds: int) -> list[Row]:
    events = [text[at : at + EVENT_SIZE] for at in range(0, len(text), EVENT_SIZE)]

    def count() -> int:
        counter = ours.counter()
        for event in events:
            counter.update(event)
        total: int = counter.finish()
        return total

    def estimates() -> list[int]:
        counter = ours.counter()
        found = []
        for event in events:
            counter.update(event)
            found.append(counter.estimate)
        return found

    def again() -> list[int]:
        ends = range(EVENT_SIZE, len(text) + EVENT_SIZE, EVENT_SIZE)
        return [len(theirs.encode_ordinary(text[:end])) for end in ends]

    exact = len(theirs.encode_ordinary(text))
    assert count() == exact
    summed = sum(len(theirs.encode_ordinary(event)) for event in events)
    return [
        Row(
            f"the total of {len(events):,} events",
            seconds(count, rounds),
            seconds(lambda: sum(len(theirs.encode_ordinary(one)) for one in events), rounds),
            f"{summed:,} for {exact:,} tokens",
        ),
        compared(f"the count after each of {len(events):,} events", estimates, again, 1),
    ]


def edits(ours: Any, theirs: Any, text: str, rounds: int) -> list[Row]:
    """A document against encoding all of its text anew."""
    prompt = text[:DOCUMENT]
    middle, end = ours.document(prompt), ours.document(prompt)
    at = len(prompt) // 2

    def type_a_letter() -> int:
        middle.replace(at, at, "x")
        middle.replace(at, at + 1, "")
        return len(middle)

    def append() -> int:
        size = end.n_characters
        end.append(" and then some")
        found = len(end)
        end.replace(size, end.n_characters, "")
        return found

    typed = prompt[:at] + "x" + prompt[at:]
    assert type_a_letter() == len(theirs.encode_ordinary(prompt))
    assert append() == len(theirs.encode_ordinary(prompt + " and then some"))
    assert middle.ids == end.ids == theirs.encode_ordinary(prompt)
    size = f"{len(prompt):,} characters"
    return [
        Row(
            f"a letter typed into {size}",
            seconds(type_a_letter, rounds) / 2,
            seconds(lambda: theirs.encode_ordinary(typed), rounds),
            "",
        ),
        Row(
            f"three words more behind {size}",
            seconds(append, rounds) / 2,
            seconds(lambda: theirs.encode_ordinary(prompt + " and then some"), rounds),
            "",
        ),
    ]


def growing_prompt(ours: Any, theirs: Any, text: str, rounds: int) -> Row:
    """A prompt cache, against encoding each prompt as a whole."""
    begin = len(text) - TURN * TURNS
    prompts = [text[: begin + TURN * turn] for turn in range(TURNS + 1)]
    found = []
    for _ in range(rounds):
        cache = streamtok.PromptCache(ours)
        cache.encode(prompts[0])
        start = time.process_time()
        answers = [cache.encode(prompt) for prompt in prompts[1:]]
        found.append((time.process_time() - start) / TURNS)
    assert all(
        ids == theirs.encode_ordinary(prompt)
        for ids, prompt in zip(answers, prompts[1:], strict=True)
    )
    return Row(
        f"a prompt of {len(text):,} characters that grows by {TURN}",
        statistics.median(found),
        seconds(lambda: theirs.encode_ordinary(text), rounds),
        "",
    )


def compared(
    what: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    rounds: int,
    wrong: str = "",
) -> Row:
    """A row whose answers are the same, unless it is known what is wrong with theirs."""
    if not wrong and ours() != theirs():
        raise SystemExit(f"{what}: the answers are not the same")
    return Row(what, seconds(ours, rounds), seconds(theirs, rounds), wrong)


def seconds(call: Callable[[], Any], rounds: int) -> float:
    """The median of what a call takes of the processor; many calls where one is short."""
    found = []
    for _ in range(rounds):
        calls = 0
        begin = time.process_time()
        while calls == 0 or (time.process_time() - begin < 0.02 and calls < 1000):
            call()
            calls += 1
        found.append((time.process_time() - begin) / calls)
    return statistics.median(found)


if __name__ == "__main__":
    main()
