"""All tokenizers that are installed, side by side: `python -m benchmarks.compare --markdown`.

Equality first: a mode whose ids differ from the reference's is reported and not timed. Then each
sample is a process of its own, on one core, and the contenders take turns; medians of the samples
and of the ratios within a turn are shown. See README.md for the columns.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import corpus, peers

CALL_SIZES = (11, 100, 1000)  # characters
PHASES = ("cold", "unseen", "warm")
_RETRIES = 3  # a sample during which another program had the core is taken again
_TIMEOUT = 120  # seconds for one sample
_QUICK_BYTES = 1_000_000
_HARD_BYTES = 1_000_000

Sample = dict[str, Any]


# In the process of a sample


def _worker(task: Sample) -> Sample:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    import numpy  # noqa: F401 (not to be part of anyone's time to load)

    before, begin = _rss(), time.perf_counter()
    peer = peers.by_name(task["peer"])(task["encoding"], Path(task["assets"]))
    calls = task["kind"] == "calls"
    encode = peer.call_mode(task["mode"]) if calls else peer.mode(task["mode"])
    encode("Hello, world!")
    loaded = {"load_s": time.perf_counter() - begin, "load_bytes": _rss() - before}
    return loaded | _TASKS[task["kind"]](encode, task)


def _equal(encode: peers.Encode, task: Sample) -> Sample:
    texts = {name: corpus.load(name, task["limit"]).decode() for name in corpus.NAMES}
    return {"digests": {name: _digest(encode(text)) for name, text in texts.items()}}


def _text(encode: peers.Encode, task: Sample) -> Sample:
    """Cold: the first text. Unseen: another text of the same kind. Warm: that one again."""
    parts = corpus.halves(corpus.load(task["corpus"], task["limit"]))
    first, second = (part.decode() for part in (parts[::-1] if task["swap"] else parts))
    before = _rss(reset_peak=True)
    cold = _timed(encode, first)
    unseen = _timed(encode, second)
    peak = max(0, _peak_rss() - before)
    warm = sorted((_timed(encode, second) for _ in range(3)), key=lambda x: x["s"])[1]
    sizes = {"cold": len(first.encode()), "unseen": len(second.encode())}
    phases = {"cold": cold, "unseen": unseen, "warm": warm}
    for name, phase in phases.items():
        phase["mb_s"] = sizes.get(name, sizes["unseen"]) / phase["s"] / 1e6
    return phases | {"peak_bytes": peak}


def _calls(encode: peers.Encode, task: Sample) -> Sample:
    """µs for a call on each size, over strings not seen before, after a warm-up on others."""
    data, result = corpus.load("english"), {}
    for size in CALL_SIZES:
        texts = corpus.slices(data, size, 100_000 // size)
        half = len(texts) // 2
        for text in texts[:half]:
            encode(text)
        begin = time.perf_counter()
        for text in texts[half:]:
            encode(text)
        result[str(size)] = (time.perf_counter() - begin) / (len(texts) - half) * 1e6
    return {"us": result}


def _hard(encode: peers.Encode, task: Sample) -> Sample:
    text = corpus.hard_pieces(_HARD_BYTES)[task["corpus"]]
    return {"hard": _timed(encode, text) | {"bytes": len(text.encode())}}


def _load(encode: peers.Encode, task: Sample) -> Sample:
    return {}


_TASKS: dict[str, Callable[[peers.Encode, Sample], Sample]] = {
    "equal": _equal,
    "text": _text,
    "calls": _calls,
    "hard": _hard,
    "load": _load,
}


def _timed(encode: peers.Encode, text: str) -> Sample:
    cpu, begin = time.process_time(), time.perf_counter()
    ids = encode(text)
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return {"s": wall, "cpu_s": cpu, "tokens": len(peers.as_array(ids)), "digest": _digest(ids)}


def _digest(ids: Any) -> str:
    return hashlib.sha256(peers.as_array(ids).tobytes()).hexdigest()


def _rss(reset_peak: bool = False) -> int:
    """Bytes resident now (0 where the system does not say)."""
    with contextlib.suppress(OSError):
        if reset_peak:
            Path("/proc/self/clear_refs").write_text("5")
        pages = Path("/proc/self/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _peak_rss() -> int:
    """The most bytes resident since the last reset."""
    with contextlib.suppress(OSError):
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    return 0


# In the process that asks for samples


class Run:
    """Samples of all contenders for one encoding."""

    def __init__(self, encoding: str, assets: Path, rounds: int, limit: int | None):
        self.encoding, self.assets, self.rounds, self.limit = encoding, assets, rounds, limit
        self.notes: list[str] = []
        self.contenders = self._equal_ones()

    def sample(self, kind: str, peer: str, mode: str, **task: Any) -> Sample | str:
        """One process; a str says why there is no figure."""
        task |= {"kind": kind, "peer": peer, "mode": mode, "encoding": self.encoding}
        task |= {"assets": str(self.assets), "limit": self.limit}
        command = [sys.executable, "-m", "benchmarks.compare", "--worker", json.dumps(task)]
        one_thread = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        top = Path(__file__).resolve().parents[1]
        for _ in range(_RETRIES):
            try:
                done = subprocess.run(
                    command,
                    check=False,
                    cwd=top,
                    env=os.environ | one_thread,
                    capture_output=True,
                    text=True,
                    timeout=_TIMEOUT,
                )
            except subprocess.TimeoutExpired:
                return f"> {_TIMEOUT} s"
            if done.returncode:
                lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
                return lines[-1][:120]
            result: Sample = json.loads(done.stdout.splitlines()[-1])
            if not _was_interrupted(result):
                break
        return result

    def _equal_ones(self) -> list[tuple[str, str]]:
        """(peer, mode) of those whose ids are the reference's on all texts."""
        installed = [peer for peer in peers.installed() if self.encoding in peer.encodings]
        names = [peer.name for peer in installed]
        judge = peers.by_name("tiktoken" if "tiktoken" in names else "streamtok")
        expected = self.sample("equal", judge.name, judge.default())
        if isinstance(expected, str):
            raise RuntimeError(f"{judge.name}: {expected}")
        equal = []
        for peer in installed:
            differing: dict[str, list[str]] = {}  # texts → modes
            for mode in peer.modes:
                result = self.sample("equal", peer.name, mode)
                if isinstance(result, str):
                    self.notes.append(f"{peer.name} `{mode}`: {result}")
                    continue
                wrong = [
                    name
                    for name, digest in result["digests"].items()
                    if digest != expected["digests"][name]
                ]
                if wrong:
                    differing.setdefault(", ".join(wrong), []).append(f"`{mode}`")
                else:
                    equal.append((peer.name, mode))
            self.notes += [
                f"{peer.name} {', '.join(modes)}: not timed, not the ids of {judge.name} on {texts}"
                for texts, modes in differing.items()
            ]
        if not any(peer == "streamtok" for peer, _ in equal):
            raise RuntimeError(f"streamtok's ids are wrong: {self.notes}")
        return equal

    def rounds_of(self, kind: str, names: tuple[str, ...] = ("",)) -> list[dict[str, Any]]:
        """Records of all contenders, who take turns."""
        records = []
        for turn in range(self.rounds):
            for name in names:
                shift = turn % len(self.contenders)
                for peer, mode in self.contenders[shift:] + self.contenders[:shift]:
                    if kind == "load" and mode != peers.by_name(peer).default():
                        continue
                    if kind != "text" and mode == "stream, 4 KiB":
                        continue  # as at 64 KiB
                    result = self.sample(kind, peer, mode, corpus=name, swap=turn % 2 == 1)
                    key = {"peer": peer, "mode": mode, "text": name, "turn": turn}
                    records.append(key | {"encoding": self.encoding, "kind": kind, "got": result})
                    _progress(f"{self.encoding} {kind} {name} turn {turn}: {peer} {mode}")
        return records


def _was_interrupted(result: Sample) -> bool:
    timed = [x for x in result.values() if isinstance(x, dict) and "cpu_s" in x]
    return any(x["s"] > 1.15 * x["cpu_s"] + 2e-4 for x in timed)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text[:100]}", end="", file=sys.stderr, flush=True)


# The tables


class Results:
    """Records of one encoding, asked for by contender."""

    def __init__(self, records: list[dict[str, Any]]):
        self.by: dict[tuple[str, str, str, str], list[Any]] = {}
        for r in records:
            self.by.setdefault((r["kind"], r["text"], r["peer"], r["mode"]), []).append(r["got"])

    def figures(self, kind: str, text: str, who: tuple[str, str], *path: str) -> list[float] | str:
        """One figure per turn; a str says why there are none."""
        figures = []
        for got in self.by.get((kind, text, *who), ["not measured"]):
            if isinstance(got, str):
                return got
            for step in path:
                got = got[step]
            figures.append(float(got))
        return figures

    def median(self, kind: str, text: str, who: tuple[str, str], *path: str) -> float | None:
        figures = self.figures(kind, text, who, *path)
        return None if isinstance(figures, str) else statistics.median(figures)

    def ratio(self, text: str, a: tuple[str, str], b: tuple[str, str], phase: str) -> float | None:
        """How many times as fast as `b` `a` is: the median of the ratios within a turn."""
        left = self.figures("text", text, a, phase, "mb_s")
        right = self.figures("text", text, b, phase, "mb_s")
        if isinstance(left, str) or isinstance(right, str):
            return None
        return statistics.median(x / y for x, y in zip(left, right, strict=True))

    def spread(self) -> str:
        """Half the range of the unseen samples of a contender, in medians; the median of that."""
        spreads = []
        for kind, text, *who in self.by:
            if kind != "text":
                continue
            figures = self.figures(kind, text, (who[0], who[1]), "unseen", "mb_s")
            if not isinstance(figures, str):
                middle = statistics.median(figures)
                spreads.append((max(figures) - min(figures)) / 2 / middle)
        return f" (samples spread by ±{statistics.median(spreads):.0%})" if spreads else ""


def _is_flat(who: tuple[str, str]) -> bool:
    return peers.by_name(who[0]).modes[who[1]]


def render(data: dict[str, Any]) -> Iterator[str]:
    """The lines of the report, in Markdown."""
    yield f"Measured with {data['versions']} on {data['machine']}."
    yield "MB/s of UTF-8 on one core: cold / **unseen** / warm, medians of samples in processes of"
    yield f"their own ({data['rounds']} of each)."
    for encoding, part in data["encodings"].items():
        results = Results(part["records"])
        contenders = [(peer, mode) for peer, mode in part["contenders"]]
        names = [n for n in data["corpora"] if any(key[1] == n for key in results.by)]
        yield f"\n### {encoding}{results.spread()}"
        kinds = {key[0] for key in results.by}
        for flat, title in ((True, "flat ids"), (False, "a list of ids")):
            chosen = [who for who in contenders if _is_flat(who) == flat]
            if "text" in kinds:
                yield f"\n{title}:\n"
                yield from _speed_table(results, chosen, names, flat)
        if "calls" in kinds:
            yield from _calls_table(results, contenders)
        if "hard" in kinds:
            yield from _hard_table(results, contenders)
        if "load" in kinds:
            yield from _load_table(results, contenders)
        yield ""
        yield from (f"- {note}" for note in part["notes"])


def _title(who: tuple[str, str]) -> str:
    return f"{who[0]} `{who[1]}`"


def _speed_table(
    results: Results, chosen: list[tuple[str, str]], names: list[str], flat: bool
) -> Iterator[str]:
    yield f"| | {' | '.join(names)} | M tokens/s | peak MB |"
    yield f"|---|{'---|' * len(names)}--:|--:|"
    for who in chosen:
        cells = []
        for name in names:
            speeds = [results.median("text", name, who, phase, "mb_s") for phase in PHASES]
            if None in speeds:
                cells.append(str(results.figures("text", name, who, "cold", "mb_s")))
            else:
                cold, unseen, warm = (f"{speed:.0f}" for speed in speeds if speed is not None)
                cells.append(f"{cold} / **{unseen}** / {warm}")
        rates = [
            tokens / seconds / 1e6
            for name in names
            if (tokens := results.median("text", name, who, "unseen", "tokens"))
            and (seconds := results.median("text", name, who, "unseen", "s"))
        ]
        peaks = [results.median("text", name, who, "peak_bytes") or 0 for name in names]
        rate = statistics.geometric_mean(rates) if rates else 0.0
        cells += [f"{rate:.1f}", f"{max(peaks) / 1e6:.0f}"]
        yield f"| {_title(who)} | {' | '.join(cells)} |"
    own = ("streamtok", "encode_to_numpy" if flat else "encode")
    others = [who for who in chosen if who[0] != "streamtok"]
    if own not in chosen or not others:
        return
    tiktoken = [who for who in others if who[0] == "tiktoken"]
    for title, group in (("tiktoken", tiktoken), ("the best peer", others)):
        if group:
            yield _ratio_line(f"**streamtok ÷ {title}**", results, own, group, names)
    if flat:
        for who in chosen:
            if who[0] == "streamtok" and who != own:
                yield _ratio_line(f"`{who[1]}` ÷ `{own[1]}`", results, who, [own], names)


def _ratio_line(
    title: str,
    results: Results,
    own: tuple[str, str],
    group: list[tuple[str, str]],
    names: list[str],
) -> str:
    """The least ratio over a group, per text and phase; then the geometric mean unseen."""
    cells, means = [], []
    for name in names:
        least = []
        for phase in PHASES:
            ratios = [results.ratio(name, own, who, phase) for who in group]
            least.append(min((ratio for ratio in ratios if ratio), default=0.0))
        cells.append(f"{least[0]:.2f} / **{least[1]:.2f}** / {least[2]:.2f}")
        means.append(least[1])
    mean = statistics.geometric_mean(means) if all(means) else 0.0
    return f"| {title} | {' | '.join(cells)} | mean **{mean:.2f}** | |"


def _calls_table(results: Results, contenders: list[tuple[str, str]]) -> Iterator[str]:
    yield "\nµs per call, strings of English not seen before:\n"
    yield f"| | {' | '.join(f'{size} bytes' for size in CALL_SIZES)} |"
    yield f"|---|{'--:|' * len(CALL_SIZES)}"
    for who in contenders:
        figures = [results.median("calls", "", who, "us", str(size)) for size in CALL_SIZES]
        if None not in figures:
            cells = [f"{figure:.2f}" for figure in figures if figure is not None]
            stream = who[1].startswith("stream")
            title = "streamtok, chunks of one stream" if stream else _title(who)
            yield f"| {title} | {' | '.join(cells)} |"


def _hard_table(results: Results, contenders: list[tuple[str, str]]) -> Iterator[str]:
    names = list(corpus.hard_pieces(16))
    yield "\nMB/s on 1 MB of hard pieces, the first call:\n"
    yield f"| | {' | '.join(names)} |"
    yield f"|---|{'--:|' * len(names)}"
    for who in contenders:
        if ("hard", names[0], *who) not in results.by:
            continue
        cells = []
        digests = [results.by.get(("hard", name, *who), []) for name in names]
        for name, gots in zip(names, digests, strict=True):
            seconds = results.median("hard", name, who, "hard", "s")
            right = results.by.get(("hard", name, "streamtok", "encode"), [])
            if seconds is None:
                cells.append(str(results.figures("hard", name, who, "hard", "s")))
            elif right and right[0]["hard"]["digest"] != gots[0]["hard"]["digest"]:
                cells.append("other ids")
            else:
                cells.append(f"{gots[0]['hard']['bytes'] / seconds / 1e6:.1f}")
        yield f"| {_title(who)} | {' | '.join(cells)} |"


def _load_table(results: Results, contenders: list[tuple[str, str]]) -> Iterator[str]:
    yield "\nImport, load and first call in a new process that has imported numpy:\n"
    yield "| | ms | MB |"
    yield "|---|--:|--:|"
    for who in contenders:
        seconds = results.median("load", "", who, "load_s")
        size = results.median("load", "", who, "load_bytes")
        if seconds is not None and size is not None:
            yield f"| {who[0]} | {seconds * 1e3:.0f} | {size / 1e6:.0f} |"


def collect(
    encodings: list[str], names: list[str], rounds: int, limit: int | None, kinds: list[str]
) -> dict[str, Any]:
    """Run everything; the result is what `--json` writes."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        peers.write_assets(Path(folder), encodings)
        for encoding in encodings:
            run = Run(encoding, Path(folder), rounds, limit)
            records = []
            for kind in kinds:
                pieces = tuple(corpus.hard_pieces(16))
                texts = {"text": tuple(names), "hard": pieces}.get(kind, ("",))
                records += run.rounds_of(kind, texts)
            part = {"contenders": run.contenders, "notes": run.notes, "records": records}
            found[encoding] = part
    versions = ", ".join(f"{peer.name} {peer.version()}" for peer in peers.installed())
    return {
        "versions": f"{versions}, Python {platform.python_version()}",
        "machine": f"{_processor()} ({platform.system()} {platform.machine()})",
        "corpus": "files" if corpus.folder() else "generated",
        "corpora": names,
        "rounds": rounds,
        "encodings": found,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((x.partition(": ")[2] for x in lines if x.startswith("model name")), "unknown")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("--markdown", action="store_true", help="nothing but the README's text")
    parser.add_argument("--encodings", nargs="+", default=["cl100k_base"], metavar="NAME")
    parser.add_argument("--corpora", nargs="+", default=list(corpus.NAMES), choices=corpus.NAMES)
    parser.add_argument("--kinds", nargs="+", default=["text", "calls", "hard", "load"])
    parser.add_argument("--quick", action="store_true", help="1 MB of each text, 3 turns")
    parser.add_argument("--rounds", type=int, help="turns (7; 3 with --quick)")
    parser.add_argument("--json", metavar="FILE", help="write all samples")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(_worker(json.loads(options.worker))))
        return 0
    begin = time.monotonic()
    rounds = options.rounds or (3 if options.quick else 7)
    limit = _QUICK_BYTES if options.quick else None
    data = collect(options.encodings, options.corpora, rounds, limit, options.kinds)
    if options.json:
        Path(options.json).write_text(json.dumps(data))
    print("\n".join(render(data)))
    if not options.markdown:
        print(f"\n{time.monotonic() - begin:.0f} s; texts: {data['corpus']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
