"""Terminal colours and aligned tables, for text that `visible` has made printable.

Colours are written only to a terminal, unless `--color` says otherwise. NO_COLOR, if set and not
empty, turns them off (no-color.org).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..answers.views.visible import width
from .messages import is_terminal, write_bytes

if TYPE_CHECKING:
    from ..answers.views.tokens import Token

_RESET = "\x1b[0m"
_BACKGROUNDS = (152, 223, 151, 217, 189)  # pale ones among the 256 colours, for black text
_SPECIAL = "\x1b[7m"
_LEAST = 8  # columns that a cut cell still has


class Paint:
    """Colours text, or leaves it unchanged."""

    def __init__(self, when: str) -> None:
        """when: the value of --color."""
        is_wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.is_on = when == "always" or (when == "auto" and is_wanted and is_terminal(sys.stdout))

    def token(self, token: Token, number: int) -> str:
        """The text of a token: plain, in a colour chosen by number, or inverse if it is special."""
        if not self.is_on:
            return token.shown
        if token.is_special:
            return f"{_SPECIAL}{token.shown}{_RESET}"
        colour = _BACKGROUNDS[number % len(_BACKGROUNDS)]
        return f"\x1b[38;5;16;48;5;{colour}m{token.shown}{_RESET}"


def terminal_width() -> int | None:
    """The columns of the terminal; None if standard output is not a terminal."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None


def columns(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """The lines of a table, with two spaces between columns. right: which are right-aligned.

    If the terminal is too narrow, the widest left-aligned columns are cut.
    """
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    most = terminal_width()
    while most is not None and sum(widths) + 2 * (len(widths) - 1) > most:
        size, widest = max(
            ((size, i) for i, size in enumerate(widths) if not right[i]), default=(0, 0)
        )
        if size <= _LEAST:
            break
        widths[widest] -= 1
    lines = []
    for row in rows:
        cells = []
        for text, size, is_right in zip(row, widths, right, strict=True):
            text = _cut(text, size)
            padding = " " * (size - width(text))
            cells.append(padding + text if is_right else text + padding)
        lines.append("  ".join(cells).rstrip())
    return lines


def _cut(text: str, columns: int) -> str:
    if width(text) <= columns:
        return text
    while width(text) >= columns:
        text = text[:-1]
    return f"{text}…"


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output, in UTF-8 whatever its encoding."""
    text = "".join([f"{line}\n" for line in lines])
    write_bytes(text.encode("utf-8", "replace"), at_once=True)
