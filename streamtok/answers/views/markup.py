"""HTML for notebooks. Everything that comes from a text, a vocabulary or a name is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_COLOURS = ("#1f77b433", "#ff7f0e33", "#2ca02c33", "#d6272833", "#9467bd33")
_SPECIAL = "#7f7f7f66"


def boxes_html(about: str, boxes: Iterable[str], more: int) -> str:
    """str: a line about a text, and its tokens as boxes. more: how many were left out."""
    drawn = "".join(boxes)
    rest = f" <i>and {more:,} more</i>" if more > 0 else ""
    return (
        f'<div class="streamtok"><div>{escape(about)}</div>'
        f'<pre style="white-space:pre-wrap;overflow-wrap:anywhere">{drawn}{rest}</pre></div>'
    )


def box_html(text: str, title: str, number: int | None) -> str:
    """str: a coloured box in a line of text. number: its colour; None for a special token."""
    colour = _SPECIAL if number is None else _COLOURS[number % len(_COLOURS)]
    return f'<span style="background:{colour}" title="{escape(title)}">{escape(text)}</span>'


def table_html(rows: Sequence[tuple[str, str]]) -> str:
    """str: a table of names and values."""
    cells = [f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows]
    return f'<table class="streamtok">{"".join(cells)}</table>'
