"""The README's one chart and one sentence about speed, from the figures in docs/benchmarks.md.

    python -m benchmarks.headline

Nothing is measured here. The tables of flat ids and of lists give MB/s on text not seen before, for
each kind of text; a bar is their geometric mean, for each library in its fastest mode, and the line
at its end is the spread of the samples. The ratios in the sentence are those of the table: made
within a round, where both had the machine as it was then.
"""

from __future__ import annotations

import re
import statistics
import sys
from html import escape
from pathlib import Path
from typing import NamedTuple

from .chart import _STYLE, _text

ROOT = Path(__file__).resolve().parent.parent
FIGURES, README = ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
PICTURE = ROOT / "docs" / "speed.svg"
ENCODING = "cl100k_base"
TIER = "AVX-512 (VBMI2)"  # of the processor of the tables
BEGIN, END = "<!-- benchmarks.headline begin -->", "<!-- benchmarks.headline end -->"
OWN, STREAM = "`encode_to_numpy`", "`stream, 64 KiB`"
WIDTH, NAMES, ROW, BAR, HEAD, FOOT = 720, 150, 26, 16, 58, 34
MORE_STYLE = "\n  .spread { stroke: #1f2328; stroke-width: 1.5 }"
DARK_STYLE = "\n  @media (prefers-color-scheme: dark) { .spread { stroke: #f0f6fc } }"


class Headline(NamedTuple):
    """What the tables say about one encoding."""

    speeds: dict[str, float]  # library, or "streamtok stream" → MB/s, the geometric mean
    spread: float  # of the samples: half the range, as a share
    kinds: list[str]  # of text
    against_tiktoken: float  # within a round, the geometric mean
    against_best: float


def read(text: str) -> Headline:
    """The figures of ENCODING in `docs/benchmarks.md`. ValueError if they are not in it."""
    details = text.partition("benchmarks.compare details begin")[2]
    part = re.split(r"^### ", details.partition(f"### {ENCODING}\n")[2], flags=re.M)[0]
    spread = re.search(r"Flat ids, .*spread by ±(\d+)%", part)
    kinds = re.search(r"^\| \| (.*?) \| M tokens/s", part, re.M)
    if not spread or not kinds:
        raise ValueError(f"{FIGURES.name} has no table of flat ids with {ENCODING}")
    means: dict[str, float] = {}
    ratios: dict[str, float] = {}
    for line in part.splitlines():
        unseen = [float(one) for one in re.findall(r"/ \*\*([\d.]+)\*\* /", line)]
        name, _, mode = line.removeprefix("| ").partition(" |")[0].partition(" ")
        if "÷" in line:
            mean = re.search(r"mean \*\*([\d.]+)\*\*", line)
            if mean and line.startswith(f"| **{OWN} ÷"):
                ratios["best" if "best peer" in line else "tiktoken"] = float(mean[1])
        elif len(unseen) == len(kinds[1].split(" | ")):
            speed = statistics.geometric_mean(unseen)
            if name == "streamtok":
                if mode in (OWN, STREAM):
                    means[name if mode == OWN else "streamtok stream"] = speed
            else:
                means[name] = max(speed, means.get(name, 0.0))
    own = {name: means.pop(name) for name in ("streamtok", "streamtok stream")}
    peers = dict(sorted(means.items(), key=lambda item: -item[1]))
    return Headline(
        own | peers,
        int(spread[1]) / 100,
        kinds[1].split(" | "),
        ratios["tiktoken"],
        ratios["best"],
    )


def draw(found: Headline) -> str:
    """SVG: a bar for each library, with the spread."""
    height = HEAD + len(found.speeds) * ROW + FOOT
    scale = (WIDTH - NAMES - 60) / (max(found.speeds.values()) * (1 + found.spread))
    title = f"Text not seen before, {ENCODING}: MB/s on one core with {TIER}"
    about = ", ".join(f"{name} {speed:.0f}" for name, speed in found.speeds.items())
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(about)}; samples spread by ±{found.spread:.0%}.</desc>',
        f"<style>\n{_STYLE}{MORE_STYLE}{DARK_STYLE}\n</style>",
        _text(16, 22, "title strong", title),
        _text(16, 42, "weak", f"Geometric mean of {', '.join(found.kinds)}; longer is faster."),
    ]
    for i, (name, speed) in enumerate(found.speeds.items()):
        middle = HEAD + i * ROW + ROW / 2
        is_own = name.startswith("streamtok")
        width, off = speed * scale, speed * found.spread * scale
        kind = "bar-own" if name == "streamtok" else "bar-stream" if is_own else "bar"
        weight = "own" if is_own else "strong"
        lines += [
            _text(NAMES - 8, middle + 4, weight, name, "end"),
            f'<rect class="{kind}" x="{NAMES}" y="{middle - BAR / 2:g}" width="{width:.1f}" '
            f'height="{BAR}" rx="2"/>',
            f'<line class="spread" x1="{NAMES + width - off:.1f}" y1="{middle:g}" '
            f'x2="{NAMES + width + off:.1f}" y2="{middle:g}"/>',
            _text(NAMES + width + off + 8, middle + 4, weight, f"{speed:.0f}"),
        ]
    note = (
        f"Lines: the spread of the samples, ±{found.spread:.0%}. Each library in its fastest mode."
    )
    return "\n".join([*lines, _text(16, height - 12, "weak", note), "</svg>", ""])


def sentence(found: Headline) -> str:
    """What the README says."""
    return (
        f"- **Fast**: {found.speeds['streamtok']:.0f} MB/s on one core with {TIER} on text not "
        f"seen before, **{found.against_tiktoken:.0f}\n"
        f"  times** tiktoken and {found.against_best:.1f} times the best of the other libraries, "
        "as geometric means\n"
        f"  over {len(found.kinds)} kinds of text (samples spread by ±{found.spread:.0%}).\n"
        "  [`python -m benchmarks.compare`](docs/benchmarks.md)"
    )


def written_into(text: str, part: str) -> str:
    """The README with the part between its markers. ValueError if it has none."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"{BEGIN} and {END} must stand in it once each")
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n{part}\n{END}{rest.partition(END)[2]}"


def main() -> int:
    found = read(FIGURES.read_text("utf-8"))
    PICTURE.write_text(draw(found), "utf-8")
    README.write_text(written_into(README.read_text("utf-8"), sentence(found)), "utf-8")
    print(sentence(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
