"""Draw docs/cuts.svg: a text, the ids of naive chunks, and those of streamtok's stream.

    python tools/draw_cuts.py

The ids are streamtok's own; a test draws the picture again and compares it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import streamtok  # noqa: E402  from this checkout

PICTURE = ROOT / "docs" / "cuts.svg"
ENCODING = "cl100k_base"
CHUNKS = ["Unbeliev", "able stre", "ams of tok", "ens"]
LEFT, UNIT, BOX, ROW, TOP = 150, 18, 40, 62, 66
STYLE = """\
  text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Arial, sans-serif }
  .mono { font-family: ui-monospace, "SF Mono", "DejaVu Sans Mono", Menlo, monospace }
  .title { font-size: 15px; font-weight: 600 }
  .ink { fill: #1f2328 }
  .weak { fill: #59636e }
  .right { fill: #dafbe1; stroke: #1a7f37 }
  .wrong { fill: #ffebe9; stroke: #cf222e }
  .plain { fill: #eaeef2; stroke: #8c959f }
  .cut { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 4 3 }
  @media (prefers-color-scheme: dark) {
    .ink { fill: #f0f6fc }
    .weak { fill: #9198a1 }
    .right { fill: #12351f; stroke: #3fb950 }
    .wrong { fill: #42191c; stroke: #f85149 }
    .plain { fill: #262c36; stroke: #656c76 }
    .cut { stroke: #f85149 }
  }"""


def rows() -> dict[str, list[tuple[int, str]]]:
    """{title: [(id, its text)]}."""
    enc = streamtok.get_encoding(ENCODING)
    stream = enc.stream_encoder()
    streamed = [id for chunk in CHUNKS for id in stream.encode(chunk)] + stream.flush()
    found = {
        "the whole text": enc.encode("".join(CHUNKS)),
        "naive chunks": [id for chunk in CHUNKS for id in enc.encode(chunk)],
        "streamtok": streamed,
    }
    return {title: [(id, enc.decode([id])) for id in ids] for title, ids in found.items()}


def draw() -> str:
    """The picture as SVG."""
    found = rows()
    expected = placed(found["the whole text"])
    length = len("".join(CHUNKS))
    width, height = LEFT + length * UNIT + 24, TOP + len(found) * ROW + 26
    wrong = sum(one not in expected for one in placed(found["naive chunks"]))
    about = "; ".join(f"{title}: {[id for id, _ in row]}" for title, row in found.items())
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-labelledby="title desc">',
        '<title id="title">Ids of a text, of naive chunks, and of a stream</title>',
        f'<desc id="desc">{escape(about)}</desc>',
        f"<style>\n{STYLE}\n</style>",
        f'<text class="title ink" x="16" y="26">A text arrives in {len(CHUNKS)} chunks. '
        f"Encoded one by one, {wrong} of {len(found['naive chunks'])} ids are wrong.</text>",
    ]
    at = 0
    for chunk in CHUNKS[:-1]:
        at += len(chunk)
        x = LEFT + at * UNIT
        lines.append(f'<line class="cut" x1="{x}" y1="{TOP - 22}" x2="{x}" y2="{height - 30}"/>')
    for number, (title, row) in enumerate(found.items()):
        lines += draw_row(title, row, TOP + number * ROW, expected)
    note = f"{ENCODING}; dashed: where the chunks were cut"
    lines.append(f'<text class="weak" x="16" y="{height - 10}">{note}</text>')
    return "\n".join([*lines, "</svg>", ""])


def placed(row: list[tuple[int, str]]) -> set[tuple[int, int]]:
    """(start, id) of each token."""
    found, at = set(), 0
    for id, text in row:
        found.add((at, id))
        at += len(text)
    return found


def draw_row(
    title: str, row: list[tuple[int, str]], y: int, expected: set[tuple[int, int]]
) -> Iterator[str]:
    """A box for each token: its text, and its id below."""
    yield f'<text class="ink" x="{LEFT - 14}" y="{y + 25}" text-anchor="end">{title}</text>'
    at = 0
    for id, text in row:
        kind = "wrong" if (at, id) not in expected else "right"
        kind = "plain" if title == "the whole text" else kind
        x, width = LEFT + at * UNIT, len(text) * UNIT
        shown = escape(text.replace(" ", "␣"))
        yield (
            f'<rect class="{kind}" x="{x + 2}" y="{y}" width="{width - 4}" height="{BOX}" rx="4"/>'
        )
        for line, word in ((17, shown), (34, str(id))):
            size = f' textLength="{width - 8}" lengthAdjust="spacingAndGlyphs"'
            fits = size if len(word) * 8 > width - 8 else ""
            yield (
                f'<text class="mono {"ink" if line == 17 else "weak"}" x="{x + width / 2:g}" '
                f'y="{y + line}" text-anchor="middle"{fits}>{word}</text>'
            )
        at += len(text)


if __name__ == "__main__":
    PICTURE.write_text(draw(), "utf-8")
