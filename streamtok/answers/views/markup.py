"""HTML for notebooks. Everything that comes from a text, a vocabulary or a name is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_COLOURS = ("#1f77b433", "#ff7f0e33", "#2ca02c33", "#d6272833", "#9467bd33")
_SPECIAL = "#7f7f7f66"


class Box(NamedTuple):
    """A coloured box in a line of text."""

    text: str
    title: str
    is_special: bool
    ends_line: bool


def boxes_html(about: str, boxes: Sequence[Box], more: int) -> str:
    """str: a line about a text, and its tokens as boxes. more: how many were left out."""
    drawn = "".join([_box(box, number) for number, box in enumerate(boxes)])
    rest = f" <i>and {more:,} more</i>" if more > 0 else ""
    return (
        f'<div class="streamtok"><div>{escape(about)}</div>'
        f'<pre style="white-space:pre-wrap;overflow-wrap:anywhere">{drawn}{rest}</pre></div>'
    )


def table_html(rows: Sequence[tuple[str, str]]) -> str:
    """str: a table of names and values."""
    cells = [f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows]
    return f'<table class="streamtok">{"".join(cells)}</table>'


def _box(box: Box, number: int) -> str:
    colour = _SPECIAL if box.is_special else _COLOURS[number % len(_COLOURS)]
    span = (
        f'<span style="background:{colour}" title="{escape(box.title)}">{escape(box.text)}</span>'
    )
    return span + "\n" if box.ends_line else span
