"""The samples as Markdown: the table of docs/benchmarks.md, and all figures."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import corpus, peers
from .results import Ratio, Results, Who
from .sampling import was_interrupted
from .two_cores import COMMAND
from .worker import STEADY_FROM, STEADY_PARTS

NUMPY, LIST = ("streamtok", "encode_to_numpy"), ("streamtok", "encode")
BYTES, COUNT = ("streamtok", "encode_to_numpy of bytes"), ("streamtok", "count")
STREAMS = [("streamtok", mode) for mode in peers.STREAMS]
STREAMS_INTO = [("streamtok", mode) for mode in peers.STREAMS_INTO]
TIES = {"raw": ("streamtok", "train"), "hf": ("streamtok, hf", "train")}

# Not in the short table.
_MORE = (BYTES, COUNT, *STREAMS[2:], *STREAMS_INTO)
PHASES = ("cold", "unseen", "warm")


def others(results: Results, kind: str, flat: bool | None = None) -> list[Who]:
    """Peers' modes; flat: those with this kind of result."""
    found = [who for who in results.who(kind) if who[0] != "streamtok"]
    return [who for who in found if flat is None or peers.is_flat(who) == flat]


def short(data: dict[str, Any], picture: str) -> Iterator[str]:
    """What docs/benchmarks.md says of a kind of processor: a chart and a table, one encoding.

    picture: where the chart is, seen from the page.
    """
    name, results = next(iter(results_of(data).items()))
    yield from _how(data)
    if "text" in results.kinds():
        yield f"\n![Speed on new text, {name}, in MB/s]({picture})"
        yield f"\n{name}, MB/s of unseen text; means of cold and warm text{_spread(results)}:\n"
        yield from _short_table(results, data["corpora"])


def report(data: dict[str, Any]) -> Iterator[str]:
    """All figures of all encodings."""
    yield from ["# All figures", "", *_how(data)]
    for name, results in results_of(data).items():
        yield f"\n## {name}"
        kinds = results.kinds()
        if "text" in kinds:
            spread = _spread(results)
            for flat, title in ((True, "Flat ids"), (False, "A list of ids")):
                yield f"\n{title}, MB/s, cold / **unseen** / warm{spread}:\n"
                yield from _speed_table(results, data["corpora"], flat)
        for kind, table in _TABLES.items():
            if kind in kinds:
                yield ""
                yield from table(results)
        notes = data["encodings"][name]["notes"]
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
    yield f"In {_interrupted(data):.0%} of the samples another program had the core now and then."


def _interrupted(data: dict[str, Any]) -> float:
    """The share of samples during which another program had the core, taken again or not."""
    records = [record for part in data["encodings"].values() for record in part["records"]]
    found = [record["got"] for record in records if isinstance(record["got"], dict)]
    return sum(map(was_interrupted, found)) / max(1, len(found))


def _spread(results: Results) -> str:
    spread = results.spread()
    return "" if spread is None else f" (samples spread by ±{spread:.0%})"


def title(who: Who) -> str:
    return f"{who[0]} `{who[1]}`"


def _short_table(results: Results, names: list[str]) -> Iterator[str]:
    """Unseen text of each kind, the means of cold and warm text; each peer in its fastest mode."""
    names = [name for name in names if name in results.texts("text")]
    yield f"| | {' | '.join(names)} | cold | warm |"
    yield f"|---|{'--:|' * (len(names) + 2)}"
    for who in _fastest(results, names):
        figures = [
            [results.median("text", name, who, phase, "mb_s") for name in names] for phase in PHASES
        ]
        yield _short_line(title(who), figures, ".0f")
    for text, own, group in _comparisons(results, None):
        if group:
            ratios = [
                [results.against("text", name, own, group, phase, "mb_s") for name in names]
                for phase in PHASES
            ]
            yield _short_line(text, [[r and r.value for r in row] for row in ratios], ".2f")


def _short_line(text: str, figures: list[list[float | None]], form: str) -> str:
    """figures: a row for each of PHASES."""
    cold, unseen, warm = figures
    means = [[one for one in row if one] for row in (cold, warm)]
    shown = [*unseen, *(statistics.geometric_mean(row) if row else None for row in means)]
    return f"| {text} | {' | '.join('–' if one is None else f'{one:{form}}' for one in shown)} |"


def _fastest(results: Results, names: list[str]) -> list[Who]:
    """The modes of streamtok that the page shows, and the fastest one of each peer."""
    found: list[Who] = []
    for peer in [peer.name for peer in peers.PEERS]:
        modes = [who for who in results.who("text") if who[0] == peer]
        if peer == NUMPY[0]:
            found += [who for who in modes if who not in _MORE]
        elif modes:
            found.append(max(modes, key=lambda who: _mean_speed(results, names, who)))
    return found


def _mean_speed(results: Results, names: list[str], who: Who) -> float:
    speeds = [results.median("text", name, who, "unseen", "mb_s") for name in names]
    return statistics.geometric_mean([speed or 1e-9 for speed in speeds])


def _speed_table(results: Results, names: list[str], flat: bool) -> Iterator[str]:
    """flat: only those with this kind of result."""
    names = [name for name in names if name in results.texts("text")]
    yield f"| | {' | '.join(names)} | M tokens/s | peak MB |"
    yield f"|---|{'---|' * len(names)}--:|--:|"
    chosen = [who for who in results.who("text") if peers.is_flat(who) == flat]
    chosen.sort(key=lambda who: [peer.name for peer in peers.PEERS].index(who[0]))
    for who in chosen:
        cells = [_speeds(results, name, who) for name in names]
        cells += _tokens_and_peak(results, names, who)
        yield f"| {title(who)} | {' | '.join(cells)} |"
    for text, own, group in _comparisons(results, flat):
        if own in chosen and group:
            yield _ratio_line(text, results, own, group, names) + " | |"


def _speeds(results: Results, name: str, who: Who) -> str:
    speeds = [results.median("text", name, who, phase, "mb_s") for phase in PHASES]
    if None in speeds:
        return str(results.figures("text", name, who, "cold", "mb_s"))
    cold, unseen, warm = (f"{speed:.0f}" for speed in speeds if speed is not None)
    return f"{cold} / **{unseen}** / {warm}"


def _tokens_and_peak(results: Results, names: list[str], who: Who) -> list[str]:
    rates = [
        tokens / seconds / 1e6
        for name in names
        if (tokens := results.median("text", name, who, "unseen", "tokens"))
        and (seconds := results.median("text", name, who, "unseen", "s"))
    ]
    peaks = [results.median("text", name, who, "peak_bytes") or 0 for name in names]
    rate = statistics.geometric_mean(rates) if rates else 0.0
    return [f"{rate:.1f}", f"{max(peaks) / 1e6:.0f}"]


def _comparisons(results: Results, flat: bool | None) -> Iterator[tuple[str, Who, list[Who]]]:
    for own, is_flat in ((NUMPY, True), (LIST, False)):
        if flat is None or flat == is_flat:
            group = others(results, "text", flat=is_flat)
            of = " (flat)" if is_flat else " (list)"
            of = of if flat is None else ""
            tiktoken = [who for who in group if who[0] == "tiktoken"]
            yield f"**`{own[1]}` ÷ tiktoken**", own, tiktoken
            yield f"**`{own[1]}` ÷ the best peer{of}**", own, group
    if flat:
        for own in (*STREAMS, *STREAMS_INTO):
            yield f"`{own[1]}` ÷ `{BYTES[1]}`", own, [BYTES]
        yield f"`{COUNT[1]}` ÷ `{NUMPY[1]}`", COUNT, [NUMPY]


def _ratio_line(text: str, results: Results, own: Who, group: list[Who], names: list[str]) -> str:
    """The least ratio over a group, per text and phase; then the geometric mean unseen."""
    cells, means = [], []
    for name in names:
        least = [results.against("text", name, own, group, phase, "mb_s") for phase in PHASES]
        cold, unseen, warm = (_value(ratio) for ratio in least)
        cells.append(f"{cold} / **{unseen}** / {warm}")
        means += [ratio.value for ratio in least[1:2] if ratio]
    line = f"| {text} | {' | '.join(cells)} |"
    if means:
        line += f" mean **{statistics.geometric_mean(means):.2f}**"
    return line


def _value(ratio: Ratio | None) -> str:
    return "–" if ratio is None else f"{ratio.value:.2f}"


# The other kinds of samples.

Column = tuple[Callable[[float], str], tuple[str, ...]]  # how a figure is shown, and its path


def _whole(value: float) -> str:
    return f"{value:.0f}"


def _exact(value: float) -> str:
    return f"{value:.2f}"


def _mega(value: float) -> str:
    return f"{value / 1e6:.0f}"


def _ms(value: float) -> str:
    return f"{value * 1e3:.0f}"


def _grid(columns: Iterable[str], rows: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    columns = list(columns)
    yield f"| | {' | '.join(columns)} |"
    yield f"|---|{'--:|' * len(columns)}"
    for name, cells in rows:
        yield f"| {name} | {' | '.join(cells)} |"


def _figures(results: Results, kind: str, who: Who, *columns: Column, text: str = "") -> list[str]:
    """Medians, or in the first cell why there are none."""
    values = [results.median(kind, text, who, *path) for _, path in columns]
    if None in values:
        why = results.figures(kind, text, who, *columns[0][1])
        return [str(why), *[""] * (len(columns) - 1)]
    pairs = zip(columns, values, strict=True)
    return [show(value) for (show, _), value in pairs if value is not None]


def _steady(results: Results) -> Iterator[str]:
    names = results.texts("steady")
    yield f"Long streams: MB/s of parts {STEADY_FROM + 1} to {STEADY_PARTS} of one text:\n"
    column = _whole, ("steady", "mb_s")
    rows = [
        (title(who), [_figures(results, "steady", who, column, text=name)[0] for name in names])
        for who in results.who("steady")
    ]
    group = others(results, "steady")
    best = [results.against("steady", x, NUMPY, group, "steady", "mb_s") for x in names]
    rows.append(("**`encode_to_numpy` ÷ the best peer**", list(map(_value, best))))
    yield from _grid(names, rows)


def _calls(results: Results) -> Iterator[str]:
    found = [
        got for who in results.who("calls") for got in results.by[("calls", "", *who)].values()
    ]
    names = next((list(got["us"]) for got in found if not isinstance(got, str)), [])
    yield "µs per call, strings not seen before (English, prompts from all five texts, logs):\n"
    columns = [(_exact, ("us", name)) for name in names]
    yield from _grid(
        names,
        (
            (
                "streamtok, one stream" if who[1].startswith("stream") else title(who),
                _figures(results, "calls", who, *columns),
            )
            for who in results.who("calls")
            if names
        ),
    )


def _decode(results: Results) -> Iterator[str]:
    yield "MB/s of text decoded from a list of ids:\n"
    columns = [(_whole, ("mb_s", name)) for name in corpus.NAMES]
    rows = ((title(x), _figures(results, "decode", x, *columns)) for x in results.who("decode"))
    yield from _grid(corpus.NAMES, rows)


def _hard(results: Results) -> Iterator[str]:
    names = results.texts("hard")
    yield "MB/s on 1 MB of hard pieces, the first call / another piece after it:\n"
    rows = []
    for who in results.who("hard"):
        cells = []
        for name in names:
            speeds = [results.median("hard", name, who, x, "mb_s") for x in ("first", "later")]
            if speeds[0] is None:
                cells.append(str(results.figures("hard", name, who, "first", "mb_s")))
            elif not _hard_digests(results, name, who) <= _hard_digests(results, name, LIST):
                cells.append("other ids")
            else:
                cells.append(" / ".join("–" if x is None else f"{x:.1f}" for x in speeds))
        rows.append((title(who), cells))
    yield from _grid(names, rows)


def _hard_digests(results: Results, name: str, who: Who) -> set[str]:
    gots = results.by.get(("hard", name, *who), {}).values()
    both = [got.get(x) for got in gots if isinstance(got, dict) for x in ("first", "later")]
    return {timed["digest"] for timed in both if timed}


def _load(results: Results) -> Iterator[str]:
    yield "Import, load and first call in a new process that has imported numpy:\n"
    columns = (_ms, ("load_s",)), (_ms, ("import_s",)), (_mega, ("load_bytes",))
    rows = ((who[0], _figures(results, "load", who, *columns)) for who in results.who("load"))
    yield from _grid(["ms", "of them import", "MB"], rows)


def _threads(results: Results) -> Iterator[str]:
    def row(who: Who, *names: str) -> tuple[str, list[str]]:
        columns = [(_exact if name != "mb_s" else _whole, (name,)) for name in names]
        return f"`{who[1]}`", _figures(results, "threads", who, *columns)

    yield "Two threads on two cores; the ceiling is two processes on different texts:\n"
    yield from _grid(
        ["MB/s", "÷ one thread", "ceiling", "of the ceiling"],
        (
            row(who, "mb_s", "ratio", "ceiling", "share")
            for who in results.who("threads")
            if who[1] != COMMAND
        ),
    )
    yield "\nThe command line:\n"
    yield from _grid(
        ["MB/s", "two cores ÷ one", "with `--workers 2`", "one thread ÷ in memory"],
        [row(("streamtok", COMMAND), "mb_s", "ratio", "workers", "memory")],
    )


def _trained(results: Results, size: str) -> dict[str, tuple[str, float | None]]:
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


def _train(results: Results) -> Iterator[str]:
    yield "Training on all five texts, each with streamtok's tie rule that gives the same tokens:\n"
    yield "| vocabulary | trainer | merges as with `tie` | seconds | ÷ streamtok | peak MB |"
    yield "|--:|---|---|--:|--:|--:|"
    for size in results.texts("train"):
        ties = _trained(results, size)
        for who in results.who("train"):
            seconds = results.median("train", size, who, "seconds")
            peak = results.median("train", size, who, "peak")
            row = f"| {int(size):,} | {who[0]} | "
            if seconds is None or peak is None:
                yield f"{row}{results.figures('train', size, who, 'seconds')} | | | |"
                continue
            tie, ratio = ties[who[0]]
            times = "" if ratio is None else f"**{ratio:.1f}**"
            yield f"{row}{tie} | {seconds:.2f} | {times} | {peak / 1e6:.0f} |"


_TABLES: dict[str, Callable[[Results], Iterator[str]]] = {
    "steady": _steady,
    "calls": _calls,
    "decode": _decode,
    "hard": _hard,
    "load": _load,
    "threads": _threads,
    "train": _train,
}
