"""Samples as figures, and these as Markdown: the table of docs/benchmarks.md, and all figures."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import peers
from .peers import Who
from .sampling import was_interrupted

NUMPY, LIST = ("streamtok", "encode_to_numpy"), ("streamtok", "encode")
BYTES, COUNT = ("streamtok", "encode_to_numpy of bytes"), ("streamtok", "count")
STREAMS = [("streamtok", mode) for mode in peers.STREAMS]
STREAMS_INTO = [("streamtok", mode) for mode in peers.STREAMS_INTO]
TIES = {"raw": ("streamtok", "train"), "hf": ("streamtok, hf", "train")}

# Not in the short table.
_MORE = (BYTES, COUNT, *STREAMS[2:], *STREAMS_INTO)
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
        """Those who took part, in the order of the first turn."""
        return list(dict.fromkeys((peer, mode) for k, _, peer, mode in self.by if k == kind))

    def others(self, flat: bool | None = None) -> list[Who]:
        """Peers' modes; flat: those with this kind of result."""
        found = [who for who in self.who("text") if who[0] != "streamtok"]
        return [who for who in found if flat is None or peers.is_flat(who) == flat]

    def figures(self, kind: str, text: str, who: Who, *path: str) -> dict[int, float]:
        """Turn → figure; none, where a sample has none."""
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

    def speeds(self, who: Who, names: list[str]) -> Figures:
        return [[self.median("text", x, who, phase, "mb_s") for x in names] for phase in PHASES]

    def against(self, own: Who, group: list[Who], names: list[str]) -> Figures:
        """The speed of `own` divided by that of the fastest of the group."""

        def least(text: str, phase: str) -> float | None:
            found = [self.quotient("text", text, own, who, phase, "mb_s") for who in group]
            return min((one for one in found if one is not None), default=None)

        return [[least(text, phase) for text in names] for phase in PHASES]

    def spread(self) -> float | None:
        """Half the range of the unseen samples of a contender, in medians; the median of that."""
        spreads = []
        for kind, text, *who in self.by:
            found = self.figures(kind, text, (who[0], who[1]), "unseen", "mb_s").values()
            if len(found) > 1:
                spreads.append((max(found) - min(found)) / 2 / statistics.median(found))
        return statistics.median(spreads) if spreads else None


def short(data: dict[str, Any], picture: str) -> Iterator[str]:
    """What docs/benchmarks.md says of a kind of processor: a chart and a table, one encoding.

    picture: where the chart is, seen from the page.
    """
    name, results = next(iter(results_of(data).items()))
    yield from _how(data)
    names = [text for text in data["corpora"] if text in results.texts("text")]
    if names:
        yield f"\n![Speed on new text, {name}, in MB/s]({picture})"
        yield f"\n{name}, MB/s of unseen text; means of cold and warm text{_spread(results)}:\n"
        chosen = _fastest(results, names)
        yield from _speeds(results, names, chosen, None, _unseen_and_means, ["cold", "warm"])


def report(data: dict[str, Any]) -> Iterator[str]:
    """All figures of all encodings, and why there are none."""
    yield from ["# All figures", "", *_how(data)]
    for name, results in results_of(data).items():
        yield f"\n## {name}"
        if names := [text for text in data["corpora"] if text in results.texts("text")]:
            for flat, title_ in ((True, "Flat ids"), (False, "A list of ids")):
                yield f"\n{title_}, MB/s, cold / **unseen** / warm{_spread(results)}:\n"
                chosen = [who for who in results.who("text") if peers.is_flat(who) == flat]
                yield from _speeds(results, names, chosen, flat, _all_phases, [])
        for kind, table in _TABLES.items():
            if results.who(kind):
                yield ""
                yield from table(results)
        notes = list(data["encodings"][name]["notes"])
        for (kind, text, *who), turns in results.by.items():
            whys = dict.fromkeys(got for got in turns.values() if isinstance(got, str))
            notes += [f"{' '.join(who)}, {kind} {text}: {why}" for why in whys]
        yield from ["", *(f"- {note}" for note in notes)] if notes else []


def results_of(data: dict[str, Any]) -> dict[str, Results]:
    return {name: Results(part["records"]) for name, part in data["encodings"].items()}


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


def _spread(results: Results) -> str:
    spread = results.spread()
    return "" if spread is None else f" (samples spread by ±{spread:.0%})"


def title(who: Who) -> str:
    return f"{who[0]} `{who[1]}`"


def _grid(columns: Iterable[str], rows: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    columns = list(columns)
    yield f"| | {' | '.join(columns)} |"
    yield f"|---|{'--:|' * len(columns)}"
    for name, cells in rows:
        yield f"| {name} | {' | '.join(cells)} |"


def _shown(value: float | None, form: str) -> str:
    return "–" if value is None else f"{value:{form}}"


# MB/s of texts.


def _speeds(
    results: Results,
    names: list[str],
    chosen: list[Who],
    flat: bool | None,
    cells: Callable[[Figures, str], list[str]],
    more: list[str],
) -> Iterator[str]:
    rows = [(title(who), cells(results.speeds(who, names), ".0f")) for who in chosen]
    for text, own, group in _comparisons(results, flat):
        if group and own in results.who("text"):
            rows.append((text, cells(results.against(own, group, names), ".2f")))
    yield from _grid([*names, *more], rows)


def _unseen_and_means(figures: Figures, form: str) -> list[str]:
    """Unseen text of each kind, the geometric means of cold and warm text."""
    cold, unseen, warm = figures
    means = [[one for one in row if one] for row in (cold, warm)]
    shown = [*unseen, *(statistics.geometric_mean(row) if row else None for row in means)]
    return [_shown(one, form) for one in shown]


def _all_phases(figures: Figures, form: str) -> list[str]:
    return [
        f"{_shown(cold, form)} / **{_shown(unseen, form)}** / {_shown(warm, form)}"
        for cold, unseen, warm in zip(*figures, strict=True)
    ]


def _fastest(results: Results, names: list[str]) -> list[Who]:
    """The modes of streamtok that the page shows, and the fastest one of each peer."""

    def mean_speed(who: Who) -> float:
        return statistics.geometric_mean([one or 1e-9 for one in results.speeds(who, names)[1]])

    found: list[Who] = []
    for peer in peers.PEERS:
        modes = [who for who in results.who("text") if who[0] == peer.name]
        if peer.name == NUMPY[0]:
            found += [who for who in modes if who not in _MORE]
        elif modes:
            found.append(max(modes, key=mean_speed))
    return found


def _comparisons(results: Results, flat: bool | None) -> Iterator[tuple[str, Who, list[Who]]]:
    for own, is_flat in ((NUMPY, True), (LIST, False)):
        if flat is None or flat == is_flat:
            group = results.others(is_flat)
            of = (" (flat)" if is_flat else " (list)") if flat is None else ""
            tiktoken = [who for who in group if who[0] == "tiktoken"]
            yield f"**`{own[1]}` ÷ tiktoken**", own, tiktoken
            yield f"**`{own[1]}` ÷ the best peer{of}**", own, group
    if flat:
        for own in (*STREAMS, *STREAMS_INTO):
            yield f"`{own[1]}` ÷ `{BYTES[1]}`", own, [BYTES]
        yield f"`{COUNT[1]}` ÷ `{NUMPY[1]}`", COUNT, [NUMPY]


# The other kinds of samples.


def _calls(results: Results) -> Iterator[str]:
    found = [
        got for key, turns in results.by.items() if key[0] == "calls" for got in turns.values()
    ]
    names = next((list(got["us"]) for got in found if not isinstance(got, str)), [])
    yield "µs per call, strings not seen before (English, prompts from all five texts, logs):\n"
    rows = [
        (title(who), [_shown(results.median("calls", "", who, "us", x), ".2f") for x in names])
        for who in results.who("calls")
    ]
    yield from _grid(names, rows)


def _threads(results: Results) -> Iterator[str]:
    yield "Two threads on two cores; the ceiling is two processes on different texts:\n"
    columns = {"mb_s": "MB/s", "ratio": "÷ one thread", "ceiling": "", "share": "of the ceiling"}
    rows = []
    for who in results.who("threads"):
        found = [results.median("threads", "", who, name) for name in columns]
        cells = [_shown(one, ".2f" if i else ".0f") for i, one in enumerate(found)]
        rows.append((f"`{who[1]}`", cells))
    yield from _grid([shown or name for name, shown in columns.items()], rows)


def _train(results: Results) -> Iterator[str]:
    yield "Training on all five texts, each with streamtok's tie rule that gives the same tokens:\n"
    rows = []
    for size in results.texts("train"):
        digests = {who: _digests(results, size, who) for who in results.who("train")}
        for who, digest in digests.items():
            same = [tie for tie, own in TIES.items() if digest and digests.get(own) == digest]
            is_other = same and who not in TIES.values()
            ratio = None
            if is_other:
                ratio = results.quotient("train", size, who, TIES[same[0]], "seconds")
            seconds = results.median("train", size, who, "seconds")
            peak = results.median("train", size, who, "peak")
            cells = [same[0] if same else "neither" if digest else "–", _shown(seconds, ".2f")]
            cells += [_shown(ratio, ".1f"), _shown(peak and peak / 1e6, ".0f")]
            rows.append((f"{int(size):,} | {who[0]}", cells))
    yield from _grid(["trainer", "merges as with `tie`", "seconds", "÷ streamtok", "peak MB"], rows)


def _digests(results: Results, size: str, who: Who) -> set[str]:
    gots = results.by.get(("train", size, *who), {}).values()
    return {got["digest"] for got in gots if not isinstance(got, str)}


_TABLES: dict[str, Callable[[Results], Iterator[str]]] = {
    "calls": _calls,
    "threads": _threads,
    "train": _train,
}
