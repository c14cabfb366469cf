"""The plot: MB/s on text not seen before, a panel of bars for each text and one for their mean.

SVG by hand: no library draws it. It has no background and two sets of colours, chosen by the
reader's `prefers-color-scheme`, and every bar has its name and figure beside it, so that nothing
depends on a colour.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from html import escape
from typing import Any

from . import goals, peers
from .results import Results, Who
from .tables import results_of

WIDTH, MARGIN, GAP = 880, 16, 32
COLUMNS = 2
ROW, BAR = 20, 13  # height of a row, of its bar
HEAD, FOOT, PANEL_HEAD, PANEL_GAP = 62, 26, 26, 18
NAMES, FIGURES = 140, 44  # widths
_SUBTITLE = (
    "Longer is faster. streamtok: encode_to_numpy, and a stream of 64 KiB chunks; "
    "every peer in its fastest mode."
)
PANEL = (WIDTH - 2 * MARGIN - GAP) // COLUMNS
_STYLE = """\
  text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Arial, sans-serif }
  .title { font-size: 15px; font-weight: 600 }
  .panel, .own { font-weight: 600 }
  .strong, .own { fill: #1f2328 }
  .weak { fill: #59636e }
  .bar { fill: #8c959f }
  .bar-own { fill: #0969da }
  .bar-stream { fill: #54aeff }
  .axis { stroke: #8c959f; stroke-width: 1 }
  @media (prefers-color-scheme: dark) {
    .strong, .own { fill: #f0f6fc }
    .weak { fill: #9198a1 }
    .bar { fill: #656c76 }
    .bar-own { fill: #58a6ff }
    .bar-stream { fill: #2f6cc0 }
    .axis { stroke: #656c76 }
  }"""


def draw(data: dict[str, Any]) -> str:
    """SVG of the first encoding in the data."""
    name, results = next(iter(results_of(data).items()))
    panels = panels_of(results, data["corpora"])
    rows = max((len(bars) for bars in panels.values()), default=0)
    height_of_panel = PANEL_HEAD + rows * ROW + PANEL_GAP
    height = HEAD + -(-len(panels) // COLUMNS) * height_of_panel + FOOT
    most = max((speed for bars in panels.values() for speed in bars.values()), default=1.0)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-labelledby="title desc">',
        f'<title id="title">Text not seen before, {escape(name)}: MB/s on one core</title>',
        f'<desc id="desc">{escape(_described(panels))}</desc>',
        f"<style>\n{_STYLE}\n</style>",
        _text(MARGIN, 24, "title strong", f"Text not seen before, {name}: MB/s on one core"),
        _text(MARGIN, 44, "weak", _SUBTITLE),
    ]
    for i, (title, bars) in enumerate(panels.items()):
        x = MARGIN + i % COLUMNS * (PANEL + GAP)
        y = HEAD + i // COLUMNS * height_of_panel
        lines += _panel(x, y, title, bars, most)
    lines.append(_text(MARGIN, height - 10, "weak", _source(data)))
    return "\n".join([*lines, "</svg>", ""])


def panels_of(results: Results, names: list[str]) -> dict[str, dict[Who, float]]:
    """Text → who → MB/s, streamtok first, then the peers by their mean, which is the last text."""
    texts = [name for name in names if name in results.texts("text")]
    speeds: dict[Who, dict[str, float]] = {}
    for who in results.who("text"):
        found = {name: results.median("text", name, who, "unseen", "mb_s") for name in texts}
        if texts and None not in found.values():
            speeds[who] = {name: speed for name, speed in found.items() if speed is not None}
    means = {who: statistics.geometric_mean(found.values()) for who, found in speeds.items()}
    shown = [who for who in (goals.NUMPY, goals.STREAM) if who in means]
    rivals = [
        max((who for who in means if who[0] == peer.name), key=lambda who: means[who])
        for peer in peers.PEERS
        if peer.name != "streamtok" and any(who[0] == peer.name for who in means)
    ]
    shown += sorted(rivals, key=lambda who: means[who], reverse=True)
    panels = {name: {who: speeds[who][name] for who in shown} for name in texts}
    if len(texts) > 1:
        panels["geometric mean"] = {who: means[who] for who in shown}
    return panels


def label(who: Who) -> str:
    """The name of a bar."""
    return "streamtok stream" if who == goals.STREAM else who[0]


def _panel(x: int, y: int, title: str, bars: dict[Who, float], most: float) -> Iterator[str]:
    start = x + NAMES
    longest = PANEL - NAMES - FIGURES
    yield _text(x, y + 15, "panel strong", title)
    top = y + PANEL_HEAD
    for i, (who, speed) in enumerate(bars.items()):
        middle = top + i * ROW + ROW // 2
        own = who[0] == "streamtok"
        width = max(1.0, longest * speed / most)
        yield _text(start - 8, middle + 4, "own" if own else "strong", label(who), "end")
        kind = "bar" if not own else "bar-own" if who == goals.NUMPY else "bar-stream"
        yield (
            f'<rect class="{kind}" x="{start}" y="{middle - BAR / 2:g}" '
            f'width="{width:.1f}" height="{BAR}" rx="2"/>'
        )
        figure = f"{speed:.0f}" if speed >= 10 else f"{speed:.1f}"
        yield _text(start + width + 6, middle + 4, "own" if own else "strong", figure)
    bottom = top + len(bars) * ROW
    yield f'<line class="axis" x1="{start}" y1="{top}" x2="{start}" y2="{bottom}"/>'


def _text(x: float, y: float, kind: str, text: str, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:g}"'
    return f'<text class="{kind}" {place} text-anchor="{anchor}">{escape(text)}</text>'


def _described(panels: dict[str, dict[Who, float]]) -> str:
    return " ".join(
        f"{title}: {', '.join(f'{label(who)} {speed:.0f}' for who, speed in bars.items())}."
        for title, bars in panels.items()
    )


def _source(data: dict[str, Any]) -> str:
    texts = "" if data["corpus"] == "files" else ", generated texts"
    return f"python -m benchmarks.compare, {data['machine']}{texts}"
