"""Figures from samples, as Markdown: the table of docs/benchmarks.md, and all figures."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from typing import Any

from . import peers
from .peers import Who
from .sampling import was_interrupted
from .turns import grid
from .worker import CALL_SIZES

NUMPY, LIST = ("streamtok", "encode_to_numpy"), ("streamtok", "encode")
BYTES, COUNT = ("streamtok", "encode_to_numpy of bytes"), ("streamtok", "count")
STREAMS = [("streamtok", mode) for mode in peers.STREAMS]
TIES = {"raw": ("streamtok", "train"), "hf": ("streamtok, hf", "train")}
PHASES = ("cold", "unseen", "warm")

Figures = list[list[float | None]]  # for each of PHASES, of each text


class Results:
    """Records of one encoding: medians over the turns, ratios within a turn."""

    def __init__(self, records: Iterable[dict[str, Any]]):
        self.by: dict[tuple[str, str, str, str], dict[int, Any]] = {}
        for r in records:
            turns = self.by.setdefault((r["kind"], r["text"], r["peer"], r["mode"]), {})
            turns[r["turn"]] = r["got"]

    def texts(self, kind: str) -> list[str]:
        return list(dict.fromkeys(text for k, text, *_ in self.by if k == kind))

    def who(self, kind: str) -> list[Who]:
        """The contenders, in the order of the first turn."""
        return list(dict.fromkeys((peer, mode) for k, _, peer, mode in self.by if k == kind))

    def figures(self, kind: str, text: str, who: Who, *path: str) -> dict[int, float]:
        """Turn → figure; empty if a sample has none."""
        figures = {}
        for turn, got in self.by.get((kind, text, *who), {}).items():
            for step in path:
                got = got.get(step) if isinstance(got, dict) else None
            if got is None:
                return {}
            figures[turn] = float(got)
        return figures

    def median(self, kind: str, text: str, who: Who, *path: str) -> float | None:
        figures = self.figures(kind, text, who, *path)
        return statistics.median(figures.values()) if figures else None

    def quotient(self, kind: str, text: str, a: Who, b: Who, *path: str) -> float | None:
        """a's figure over b's: the median over the turns that both have."""
        left, right = self.figures(kind, text, a, *path), self.figures(kind, text, b, *path)
        both = [left[turn] / right[turn] for turn in left if turn in right]
        return statistics.median(both) if both else None

    def speeds(self, who: Who) -> Figures:
        names = self.texts("text")
        return [[self.median("text", x, who, phase, "mb_s") for x in names] for phase in PHASES]

    def against(self, own: Who, group: list[Who]) -> Figures:
        """The speed of `own` divided by that of the fastest of the group."""
        return [
            [
                min(filter(None, (self.quotient("text", x, own, who, phase, "mb_s")
                                  for who in group)), default=None)
                for x in self.texts("text")
            ]
            for phase in PHASES
        ]  # fmt: skip

    def spread(self) -> str:
        """The median, over contenders and texts, of half the range of the unseen samples over their
        median.
        """
        spreads = []
        for kind, text, peer, mode in self.by:
            found = self.figures(kind, text, (peer, mode), "unseen", "mb_s").values()
            if len(found) > 1:
                spreads.append((max(found) - min(found)) / 2 / statistics.median(found))
        return f" (samples spread by ±{statistics.median(spreads):.0%})" if spreads else ""


def short(data: dict[str, Any], picture: str) -> Iterator[str]:
    """The part of docs/benchmarks.md for a kind of processor: a chart and a table of one encoding.

    picture: the path of the chart, relative to the page.
    """
    name, part = next(iter(data["encodings"].items()))
    results = Results(part["records"])
    yield from _how(data)
    if not (names := results.texts("text")):
        return
    yield f"\n![Speed on new text, {name}, in MB/s]({picture})"
    yield f"\n{name}, MB/s of unseen text; means of cold and warm text{results.spread()}:\n"
    rows = [[title(x), *_unseen_and_means(results.speeds(x), ".0f")] for x in _fastest(results)]
    rows += [
        [text, *_unseen_and_means(found, ".2f")]
        for text, found in _ratios(results)
        if "peer" in text or "tiktoken" in text
    ]
    yield from grid(["", *names, "cold", "warm"], rows)


def report(data: dict[str, Any]) -> Iterator[str]:
    """All figures of all encodings, and the reasons for missing ones."""
    yield from ["# All figures", "", *_how(data)]
    for name, part in data["encodings"].items():
        results = Results(part["records"])
        yield f"\n## {name}"
        for kind, table in _TABLES.items():
            if results.who(kind):
                yield ""
                yield from table(results)
        notes = list(part["notes"])
        for (kind, text, *who), turns in results.by.items():
            whys = dict.fromkeys(got for got in turns.values() if isinstance(got, str))
            notes += [f"{' '.join(who)}, {kind} {text}: {why}" for why in whys]
        yield from ["", *(f"- {note}" for note in notes)] if notes else []


def _how(data: dict[str, Any]) -> Iterator[str]:
    limit, texts = data["limit"], "texts of a corpus on the disk"
    texts = texts if data["corpus"] == "files" else "texts made from the standard library"
    part = f", {limit / 1e6:g} MB of each" if limit else ""
    yield f"Measured on {data['machine']};"
    yield f"{data['cores']} cores, {data['versions']}."
    if data.get("missing"):
        yield f"Not installed, so left out: {', '.join(data['missing'])}."
    yield f"MB/s of UTF-8 on one core; {texts}{part}; medians of {data['rounds']} samples, each in"
    yield f"a process of its own; {data['seconds'] / 60:.0f} minutes in all."
    records = [record for part in data["encodings"].values() for record in part["records"]]
    found = [record["got"] for record in records if isinstance(record["got"], dict)]
    share = sum(map(was_interrupted, found)) / max(1, len(found))
    yield f"In {share:.0%} of the samples another program had the core now and then."


def title(who: Who) -> str:
    return f"{who[0]} `{who[1]}`"


def _shown(value: float | None, form: str) -> str:
    return "–" if value is None else f"{value:{form}}"


def _unseen_and_means(figures: Figures, form: str) -> list[str]:
    """The cells for unseen text of each kind, then the geometric means of cold and warm text."""
    cold, unseen, warm = figures
    means = [[one for one in row if one] for row in (cold, warm)]
    shown = [*unseen, *(statistics.geometric_mean(row) if row else None for row in means)]
    return [_shown(one, form) for one in shown]


def _fastest(results: Results) -> list[Who]:
    """The modes of streamtok that the page shows, and the fastest one of each peer."""

    def mean_speed(who: Who) -> float:
        return statistics.geometric_mean([one or 1e-9 for one in results.speeds(who)[1]])

    found = [who for who in (LIST, NUMPY, *STREAMS[:2]) if who in results.who("text")]
    for peer in peers.PEERS[1:]:
        modes = [who for who in results.who("text") if who[0] == peer.name]
        found += [max(modes, key=mean_speed)] if modes else []
    return found


def _ratios(results: Results) -> Iterator[tuple[str, Figures]]:
    """(title of the ratio, quotients)."""
    there = results.who("text")
    others = [who for who in there if who[0] != "streamtok"]
    groups = []
    for own, is_flat in ((NUMPY, True), (LIST, False)):
        group = [who for who in others if peers.is_flat(who) == is_flat]
        of, tiktoken = "flat" if is_flat else "list", [who for who in group if who[0] == "tiktoken"]
        groups += [(f"**`{own[1]}` ÷ tiktoken**", own, tiktoken)]
        groups += [(f"**`{own[1]}` ÷ the best peer ({of})**", own, group)]
    groups += [(f"`{own[1]}` ÷ `{BYTES[1]}`", own, [BYTES]) for own in STREAMS]
    groups += [(f"`{COUNT[1]}` ÷ `{NUMPY[1]}`", COUNT, [NUMPY])]
    for text, own, group in groups:
        if own in there and any(who in there for who in group):
            yield text, results.against(own, group)


# All figures of a kind of samples.


def _texts(results: Results) -> Iterator[str]:
    yield f"MB/s, cold / **unseen** / warm{results.spread()}:\n"

    def phases(figures: Figures, form: str) -> Iterator[str]:
        for cold, unseen, warm in zip(*figures, strict=True):
            yield f"{_shown(cold, form)} / **{_shown(unseen, form)}** / {_shown(warm, form)}"

    rows = [[title(who), *phases(results.speeds(who), ".0f")] for who in results.who("text")]
    rows += [[text, *phases(found, ".2f")] for text, found in _ratios(results)]
    yield from grid(["", *results.texts("text")], rows)


def _calls(results: Results) -> Iterator[str]:
    yield "µs per call, strings of English not seen before:\n"
    names = [f"{size} letters" for size in CALL_SIZES]
    yield from _rows(results, "calls", names, [("us", name) for name in names], ".2f")


def _threads(results: Results) -> Iterator[str]:
    yield "Two threads on two cores, text that was seen before:\n"
    yield from _rows(results, "threads", ["MB/s", "÷ one thread"], [("mb_s",), ("ratio",)], ".2f")


def _rows(
    results: Results, kind: str, names: list[str], paths: list[Any], form: str
) -> Iterator[str]:
    rows = [
        [title(who), *(_shown(results.median(kind, "", who, *path), form) for path in paths)]
        for who in results.who(kind)
    ]
    yield from grid(["", *names], rows)


def _train(results: Results) -> Iterator[str]:
    yield "Training on all five texts, each with streamtok's tie rule that gives the same tokens:\n"
    rows = []
    for size in results.texts("train"):
        digests = {who: _digests(results, size, who) for who in results.who("train")}
        for who, digest in digests.items():
            tie = next((x for x, own in TIES.items() if digest and digests.get(own) == digest), "")
            seconds, peak = (results.median("train", size, who, x) for x in ("seconds", "peak"))
            ratio = results.quotient("train", size, who, TIES[tie], "seconds") if tie else None
            cells = [
                _shown(seconds, ".2f"),
                _shown(ratio, ".1f"),
                _shown(peak and peak / 1e6, ".0f"),
            ]
            rows.append([f"{int(size):,}", who[0], tie or "neither", *cells])
    yield from grid(["tokens", "trainer", "as `tie`", "seconds", "÷ streamtok", "peak MB"], rows)


def _digests(results: Results, size: str, who: Who) -> set[str]:
    gots = results.by.get(("train", size, *who), {}).values()
    return {got["digest"] for got in gots if not isinstance(got, str)}


_TABLES = {"text": _texts, "calls": _calls, "threads": _threads, "train": _train}
