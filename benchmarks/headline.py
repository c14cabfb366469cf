"""The charts of speed, one for each kind of processor, and the README's sentence about speed.

`python -m benchmarks.headline` measures nothing: the figures are those of the tables in
docs/benchmarks.md. A bar shows the geometric mean of MB/s on text not seen before, for each library
in its fastest mode. The line at its end is the spread of the samples.
"""

from __future__ import annotations

import re
import statistics
import sys
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FIGURES, README = ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
TIERS = {  # as `streamtok._core._testing.tier` calls them
    "avx512": "AVX-512 (VBMI2)",
    "skylake": "AVX-512 without VBMI2",
    "avx2": "AVX2",
    "sse4": "SSE4",
    "neon": "NEON",
    "plain": "no SIMD",
}
IN_README = "avx512"  # the tier of the README's chart and sentence
BEGIN, END = "<!-- benchmarks.{} begin -->", "<!-- benchmarks.{} end -->"
OWN, STREAM = "`encode_to_numpy`", "`stream, 64 KiB`"
WIDTH, NAMES, ROW, BAR, HEAD, FOOT = 720, 150, 26, 16, 78, 34
_STYLE = """\
  text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Arial, sans-serif }
  .title { font-size: 15px; font-weight: 600 }
  .own { font-weight: 600 }
  .strong, .own { fill: #1f2328 }
  .weak { fill: #59636e }
  .bar { fill: #8c959f }
  .bar-own { fill: #0969da }
  .bar-stream { fill: #54aeff }
  .spread { stroke: #1f2328; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    .strong, .own { fill: #f0f6fc }
    .weak { fill: #9198a1 }
    .bar { fill: #656c76 }
    .bar-own { fill: #58a6ff }
    .bar-stream { fill: #2f6cc0 }
    .spread { stroke: #f0f6fc }
  }"""


class Headline(NamedTuple):
    """The figures of the table for one kind of processor."""

    tier: str
    machine: str  # the processor, the system, and the date
    encoding: str
    speeds: dict[str, float]  # library, or "streamtok stream" → MB/s, the geometric mean
    spread: float  # of the samples: half the range, as a share
    kinds: list[str]  # of text
    ratios: dict[str, float]  # to "tiktoken" and to the "best" other one, within a round


def picture(tier: str, page: Path = FIGURES) -> Path:
    """The chart of a tier, next to the page with its table."""
    return page.with_name(f"speed-{tier}.svg")


def measured(text: str) -> list[str]:
    """The tiers that have a table in the text of `docs/benchmarks.md`."""
    return [tier for tier in TIERS if "\n| streamtok " in part_of(text, tier)]


def part_of(text: str, name: str) -> str:
    """The text between the two markers with this name; empty if there are none."""
    return text.partition(BEGIN.format(name))[2].partition(END.format(name))[0]


def read(text: str, tier: str) -> Headline:
    """The figures of a tier in the text of `docs/benchmarks.md`. ValueError without a table."""
    part = part_of(text, tier)
    machine = re.search(r"^Measured on (.+?\));", part, re.M)
    head = re.search(r"^([\w.-]+), MB/s of .*?(?:spread by ±(\d+)%.*)?:$", part, re.M)
    kinds = re.search(r"^\| \| (.*?) \| cold \| warm \|$", part, re.M)
    if not machine or not head or not kinds:
        raise ValueError(f"there is no table of {tier}")
    means: dict[str, float] = {}
    ratios: dict[str, float] = {}
    for line in part.splitlines():
        unseen = [float(one) for one in re.findall(r"(?<=\| )[\d.]+(?= \|)", line)][:-2]
        if len(unseen) != len(kinds[1].split(" | ")):
            continue
        mean = statistics.geometric_mean(unseen)
        name, _, mode = line.removeprefix("| ").partition(" |")[0].partition(" ")
        if line.startswith(f"| **{OWN} ÷"):
            ratios["tiktoken" if "÷ tiktoken" in line else "best"] = mean
        elif name == "streamtok" and mode in (OWN, STREAM):
            means[name if mode == OWN else "streamtok stream"] = mean
        elif name != "streamtok" and not name.startswith("**"):
            means[name] = mean
    own = {name: means.pop(name) for name in ("streamtok", "streamtok stream") if name in means}
    peers = dict(sorted(means.items(), key=lambda item: -item[1]))
    return Headline(
        tier,
        machine[1],
        head[1],
        own | peers,
        int(head[2] or 0) / 100,
        kinds[1].split(" | "),
        ratios,
    )


def draw(found: Headline) -> str:
    """SVG: a bar for each library, with the spread."""
    height = HEAD + len(found.speeds) * ROW + FOOT
    scale = (WIDTH - NAMES - 60) / (max(found.speeds.values()) * (1 + found.spread))
    title = f"New text, {found.encoding}: MB/s on one core with {TIERS[found.tier]}"
    about = ", ".join(f"{name} {speed:.0f}" for name, speed in found.speeds.items())
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(found.machine)}. {escape(about)}; samples spread by '
        f"±{found.spread:.0%}.</desc>",
        f"<style>\n{_STYLE}\n</style>",
        _text(16, 22, "title strong", title),
        _text(16, 42, "weak", found.machine),
        _text(16, 60, "weak", f"Geometric mean of {', '.join(found.kinds)}; longer is faster."),
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


def _text(x: float, y: float, kind: str, text: str, anchor: str = "start") -> str:
    position = f'x="{x:.1f}" y="{y:g}"'
    return f'<text class="{kind}" {position} text-anchor="{anchor}">{escape(text)}</text>'


def sentence(found: Headline) -> str:
    """The README's sentence about speed."""
    return (
        f"- **Fast**: {found.speeds['streamtok']:.0f} MB/s of new text on one core with "
        f"{TIERS[found.tier]}, **{found.ratios['tiktoken']:.0f}\n"
        f"  times** tiktoken and {found.ratios['best']:.1f} times the best other library "
        f"(geometric means over\n  {len(found.kinds)} kinds of text, samples spread by "
        f"±{found.spread:.0%}). [`python -m benchmarks.compare`](docs/benchmarks.md)"
    )


def written_into(text: str, name: str, part: str) -> str:
    """The text with `part` between the markers with this name. ValueError if it has none."""
    begin, end = BEGIN.format(name), END.format(name)
    if text.count(begin) != 1 or text.count(end) != 1 or end not in text.partition(begin)[2]:
        raise ValueError(f"{begin} and {end} must occur once each, in this order")
    head, _, rest = text.partition(begin)
    return f"{head}{begin}\n{part}\n{end}{rest.partition(end)[2]}"


def main() -> int:
    text = FIGURES.read_text("utf-8")
    for tier in measured(text):
        picture(tier).write_text(draw(read(text, tier)), "utf-8")
    said = sentence(read(text, IN_README))
    README.write_text(written_into(README.read_text("utf-8"), "headline", said), "utf-8")
    print(said)
    return 0


if __name__ == "__main__":
    sys.exit(main())
