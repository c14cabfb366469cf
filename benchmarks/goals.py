"""What streamtok is to reach, and how far it is: each goal is a figure made from the samples.

A goal names its point, a limit, and how its figure comes out of the results of one encoding. The
table is rendered from that alone; there is no verdict in it that somebody wrote.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from . import corpus, peers
from .peers import ENCODINGS
from .results import Ratio, Results, Who
from .two_cores import COMMAND, THREADED
from .worker import CALL_SIZES, PROMPT_SIZES


class Figure(NamedTuple):
    value: float
    note: str = ""  # where it comes from, or what else there is to know


Measure = Callable[[Results], Figure | None]


@dataclass(frozen=True)
class Goal:
    point: int
    what: str
    limit: float
    measure: Measure
    is_at_most: bool = False
    unit: str = ""
    only: str = ""  # the one encoding that it is asked of

    def limit_text(self) -> str:
        return f"{'≤' if self.is_at_most else '≥'} {self.limit:g}{self.unit}"

    def share(self, figure: Figure) -> float:
        """How much of the goal is reached; 1 and above: all of it."""
        if self.is_at_most:
            return self.limit / figure.value if figure.value > self.limit else 1.0
        return figure.value / self.limit

    def cell(self, figure: Figure | None) -> str:
        if figure is None:
            return "–"
        text = f"{figure.value:.2f}" if figure.value < 10 else f"{figure.value:.1f}"
        text = str(figure.value) if isinstance(figure.value, int) else text
        text = f"**{text}**" if self.share(figure) >= 1 else text
        return f"{text} ({figure.note})" if figure.note else text


NUMPY, LIST = ("streamtok", "encode_to_numpy"), ("streamtok", "encode")
BYTES, COUNT = ("streamtok", "encode_to_numpy of bytes"), ("streamtok", "count")
STREAMS = [("streamtok", mode) for mode in peers.STREAMS]
STREAMS_INTO = [("streamtok", mode) for mode in peers.STREAMS_INTO]
STREAM = STREAMS[0]
TIKTOKEN, TIKTOKEN_NUMPY = ("tiktoken", "encode"), ("tiktoken", "encode_to_numpy")
RS_BPE = ("rs-bpe", "encode")


def others(results: Results, kind: str, flat: bool | None = None) -> list[Who]:
    """Peers' modes; flat: those with this kind of result."""
    found = [who for who in results.who(kind) if who[0] != "streamtok"]
    return [who for who in found if flat is None or peers.is_flat(who) == flat]


def _texts(
    results: Results, own: Who, group: list[Who], phase: str, only: str = ""
) -> dict[str, Ratio]:
    """Text → ratio of the speeds."""
    kind = "steady" if phase == "steady" else "text"
    found = {
        text: results.against(kind, text, own, group, phase, "mb_s")
        for text in results.texts(kind)
        if only in ("", text)
    }
    return {text: ratio for text, ratio in found.items() if ratio is not None}


def _mean(own: Who, of: Callable[[Results], list[Who]], phase: str = "unseen") -> Measure:
    """The geometric mean over the texts; the note says which is the least."""

    def measure(results: Results) -> Figure | None:
        ratios = _texts(results, own, of(results), phase)
        if not ratios:
            return None
        worst = min(ratios, key=lambda text: ratios[text].value)
        mean = statistics.geometric_mean(ratio.value for ratio in ratios.values())
        return Figure(mean, f"{worst} {ratios[worst].value:.2f}")

    return measure


def _least(
    own: Who, of: Callable[[Results], list[Who]], phase: str = "unseen", only: str = ""
) -> Measure:
    """The least over the texts."""

    def measure(results: Results) -> Figure | None:
        ratios = _texts(results, own, of(results), phase, only)
        if not ratios:
            return None
        worst = min(ratios, key=lambda text: ratios[text].value)
        who = ratios[worst].than[0]
        return Figure(ratios[worst].value, who if only else f"{worst}, {who}")

    return measure


def _flat(results: Results) -> list[Who]:
    return others(results, "text", flat=True)


def _long(results: Results) -> list[Who]:
    return others(results, "steady")


def _lists(results: Results) -> list[Who]:
    return others(results, "text", flat=False)


def _just(who: Who) -> Callable[[Results], list[Who]]:
    return lambda results: [who]


def _once(results: Results) -> Figure | None:
    ratio = results.against("once", "", NUMPY, others(results, "once"), "once", "mb_s")
    return Figure(ratio.value, ratio.than[0]) if ratio else None


def _calls(own: Who, names: list[str], of: Callable[[Results], list[Who]]) -> Measure:
    """The least over some sizes of calls."""

    def measure(results: Results) -> Figure | None:
        found: dict[str, Ratio] = {}
        for name in names:
            ratio = results.against("calls", "", own, of(results), "us", name, is_time=True)
            if ratio:
                found[name] = ratio
        if not found:
            return None
        worst = min(found, key=lambda name: found[name].value)
        than = found[worst].than[0]
        return Figure(found[worst].value, worst if than == "tiktoken" else f"{worst}, {than}")

    return measure


def _log_line(results: Results) -> Figure | None:
    group = others(results, "calls")
    ratio = results.against("calls", "", STREAM, group, "us", "log line", is_time=True)
    return Figure(1 / ratio.value, ratio.than[0]) if ratio else None


def _decode(name: str) -> Measure:
    def measure(results: Results) -> Figure | None:
        own, other = ("streamtok", name), ("tiktoken", name)
        found = [
            (ratio, text)
            for text in corpus.NAMES
            if (ratio := results.quotient("decode", "", own, other, "mb_s", text)) is not None
        ]
        if not found:
            return None
        worst, where = min(found)
        mean = statistics.geometric_mean(ratio for ratio, _ in found)
        return Figure(mean, f"{where} {worst:.2f}")

    return measure


def _threads(way: str) -> Measure:
    """How much of the ceiling two threads reach."""

    def measure(results: Results) -> Figure | None:
        share = results.median("threads", "", ("streamtok", way), "share")
        ratio = results.median("threads", "", ("streamtok", way), "ratio")
        return None if share is None else Figure(share, f"{ratio:.2f} of one")

    return measure


def _command(name: str) -> Measure:
    def measure(results: Results) -> Figure | None:
        figure = results.median("threads", "", ("streamtok", COMMAND), name)
        return None if figure is None else Figure(figure)

    return measure


TIES = {"raw": ("streamtok", "train"), "hf": ("streamtok, hf", "train")}


def trained(results: Results, size: str) -> dict[str, tuple[str, float | None]]:
    """Trainer → the tie rule of streamtok that gives its tokens, and how many times its seconds are
    streamtok's with that rule. Those that have no sample are left out.
    """
    found: dict[str, tuple[str, float | None]] = {}
    digests = {who: _digests(results, size, who) for who in results.who("train")}
    for who, digest in digests.items():
        same = [tie for tie, own in TIES.items() if digest and digests.get(own) == digest]
        if digest:
            tie = same[0] if same else "neither"
            is_other = same and who not in TIES.values()
            ratio = results.quotient("train", size, who, TIES[tie], "seconds") if is_other else None
            found[who[0]] = tie, ratio
    return found


def _digests(results: Results, size: str, who: Who) -> set[str]:
    gots = results.by.get(("train", size, *who), {}).values()
    return {got["digest"] for got in gots if not isinstance(got, str)}


def _training(results: Results) -> Figure | None:
    """The least over the sizes of a vocabulary and the trainers."""
    found = [
        (ratio, f"{int(size):,} tokens, {name}")
        for size in results.texts("train")
        for name, (_, ratio) in trained(results, size).items()
        if ratio is not None and name in ("gigatoken", "ffbpe")
    ]
    return Figure(*min(found)) if found else None


def _load_time(results: Results) -> Figure | None:
    ratio = results.against("load", "", LIST, others(results, "load"), "load_s", is_time=True)
    return Figure(1 / ratio.value, ratio.than[0]) if ratio else None


def _load(path: str, scale: float) -> Measure:
    def measure(results: Results) -> Figure | None:
        found = results.median("load", "", LIST, path)
        return None if found is None else Figure(found * scale)

    return measure


def _hard(phase: str) -> Measure:
    """The least over the kinds of pieces; rs-bpe gives lists."""

    def measure(results: Results) -> Figure | None:
        found = [
            (ratio, text)
            for text in results.texts("hard")
            if (ratio := results.quotient("hard", text, LIST, RS_BPE, phase, "mb_s")) is not None
        ]
        return Figure(*min(found)) if found else None

    return measure


def _growth(who: Who) -> Measure:
    def measure(results: Results) -> Figure | None:
        found = results.median("endless", "", who, "growth_bytes")
        fed = results.median("endless", "", who, "bytes")
        if found is None or fed is None:
            return None
        return Figure(found / 1e6, f"{fed / 1e6:.0f} MB read")

    return measure


def _knobs(results: Results) -> Figure | None:
    for got in results.by.get(("load", "", *LIST), {}).values():
        if not isinstance(got, str):
            return Figure(len(got["knobs"]), ", ".join(f"`{name}`" for name in got["knobs"]))
    return None


FLAT_MEGABYTES = 4  # what an allocator may still take when nothing grows

_SIZES = [f"{size} letters" for size in CALL_SIZES]
_PROMPTS = [f"prompt of {size}" for size in PROMPT_SIZES]
_CHUNKED = (0.98, 0.92, 0.6)  # for each size of chunks
_CALLED = " / ".join(map(str, CALL_SIZES))
_ASKED = " / ".join(map(str, PROMPT_SIZES))

GOALS: tuple[Goal, ...] = (
    Goal(1, "unseen, ÷ the best peer, mean", 1.5, _mean(NUMPY, _flat)),
    Goal(1, "unseen, ÷ the best peer, worst text", 1.3, _least(NUMPY, _flat)),
    Goal(1, "unseen, ÷ tiktoken, mean", 20, _mean(NUMPY, _just(TIKTOKEN_NUMPY))),
    Goal(1, "cold, ÷ the best peer, mean", 1.5, _mean(NUMPY, _flat, "cold")),
    Goal(1, "cold, ÷ the best peer, worst text", 1.3, _least(NUMPY, _flat, "cold")),
    Goal(1, "cold, ÷ tiktoken, mean", 20, _mean(NUMPY, _just(TIKTOKEN_NUMPY), "cold")),
    Goal(1, "warm, ÷ the best peer, worst text", 1, _least(NUMPY, _flat, "warm")),
    Goal(1, "a long stream, ÷ the best peer, mean", 1.5, _mean(NUMPY, _long, "steady")),
    Goal(1, "a long stream, ÷ the best peer, worst text", 1.3, _least(NUMPY, _long, "steady")),
    Goal(1, "a big file read once, ÷ the best peer", 1, _once),
    Goal(2, "`encode` ÷ the best peer's lists, unseen, mean", 2, _mean(LIST, _lists)),
    Goal(2, "`encode` ÷ tiktoken, unseen, mean", 12, _mean(LIST, _just(TIKTOKEN))),
    Goal(
        2,
        f"prompts of {_ASKED} bytes, ÷ tiktoken, worst",
        5,
        _calls(LIST, _PROMPTS, _just(TIKTOKEN)),
    ),
    Goal(
        2,
        f"calls on {_CALLED} bytes, ÷ the fastest peer's list, worst",
        1,
        _calls(LIST, _SIZES, lambda results: others(results, "calls", flat=False)),
    ),
    Goal(
        2,
        "the same, ÷ the fastest peer's call of any kind",
        1,
        _calls(LIST, _SIZES, lambda results: others(results, "calls")),
    ),
    Goal(2, "`count` ÷ `encode_to_numpy`, unseen, mean", 1, _mean(COUNT, _just(NUMPY))),
    Goal(2, "`decode` ÷ tiktoken, mean", 3, _decode("decode")),
    Goal(2, "`decode_bytes` ÷ tiktoken, mean", 3, _decode("decode_bytes")),
    *(
        Goal(3, f"stream of {size} ÷ offline, unseen, mean", least, _mean(who, _just(BYTES)))
        for size, least, who in zip(peers.CHUNKS, _CHUNKED, STREAMS, strict=True)
    ),
    *(
        Goal(3, f"the same of {size}, into one array", least, _mean(who, _just(BYTES)))
        for size, least, who in zip(peers.CHUNKS, _CHUNKED, STREAMS_INTO, strict=True)
    ),
    Goal(
        3,
        "time for a log line in a stream ÷ the fastest peer's call",
        1.2,
        _log_line,
        is_at_most=True,
    ),
    Goal(3, "multilingual, ÷ the best peer", 1.5, _least(NUMPY, _flat, only="multilingual")),
    *(Goal(4, f"`{way}`, two threads ÷ the ceiling", 0.95, _threads(way)) for way in THREADED),
    Goal(4, f"`{COMMAND}`, two cores ÷ one", 1.6, _command("ratio")),
    Goal(4, "the same with `--workers 2`", 1.6, _command("workers")),
    Goal(4, "the same on one thread ÷ in memory, chunks of 64 KiB", 0.95, _command("memory")),
    Goal(
        5,
        "time to load and encode ÷ the fastest peer's",
        1.3,
        _load_time,
        is_at_most=True,
        only="cl100k_base",
    ),
    Goal(
        5,
        "memory that loading takes",
        40,
        _load("load_bytes", 1e-6),
        is_at_most=True,
        unit=" MB",
        only="cl100k_base",
    ),
    Goal(5, "import, beyond NumPy", 30, _load("import_s", 1e3), is_at_most=True, unit=" ms"),
    Goal(
        5,
        "training, ÷ gigatoken's and ffbpe's trainers, worst",
        2,
        _training,
        only=ENCODINGS[0],
    ),
    Goal(6, "1 MB in one piece, first call, ÷ rs-bpe, worst", 1, _hard("first")),
    Goal(6, "1 MB in one piece, later call, ÷ rs-bpe, worst", 1, _hard("later")),
    Goal(
        7,
        "memory growth over endless new words",
        FLAT_MEGABYTES,
        _growth(NUMPY),
        is_at_most=True,
        unit=" MB",
    ),
    Goal(
        7,
        "the same in a stream",
        FLAT_MEGABYTES,
        _growth(STREAM),
        is_at_most=True,
        unit=" MB",
    ),
    Goal(7, "public names that bound the caches", 1, _knobs),
)


def table(found: dict[str, Results]) -> Iterator[str]:
    """The lines of the table, in Markdown: a row for each goal, a column for each encoding."""
    yield f"| point | goal | at least, at most | {' | '.join(found)} | met |"
    yield f"|--:|---|--:|{'---|' * len(found)}---|"
    for goal in GOALS:
        figures = {name: goal.measure(results) for name, results in found.items()}
        cells = " | ".join(goal.cell(figure) for figure in figures.values())
        verdict = _verdict(goal, figures)
        yield f"| {goal.point} | {goal.what} | {goal.limit_text()} | {cells} | {verdict} |"


def _verdict(goal: Goal, figures: dict[str, Figure | None]) -> str:
    shares = [
        goal.share(figure)
        for name, figure in figures.items()
        if figure is not None and goal.only in ("", name)
    ]
    if not shares:
        return "not measured"
    least = min(shares)
    return "yes" if least >= 1 else f"no: {min(least, 0.99):.0%}"
