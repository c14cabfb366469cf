"""Colours of the terminal, and columns whose widths are right. Text comes in made visible.

Colours are written to a terminal only, unless `--color` says otherwise. NO_COLOR, if it is set and
not empty, turns them off (no-color.org).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from ..answers.views.visible import width
from .messages import is_terminal, write_bytes

if TYPE_CHECKING:
    from ..answers.views.tokens import Token

_RESET = "\x1b[0m"
_BACKGROUNDS = (152, 223, 151, 217, 189)  # of 256 colours: pale, for black letters
_SPECIAL = "\x1b[7m"
_LEAST = 8  # columns of a cell that is cut


class Paint:
    """Puts colours around text, or leaves it as it is."""

    def __init__(self, when: str, file: TextIO | None = None) -> None:
        """when: the value of --color. file: where it is written; default: standard output."""
        is_wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        here = is_terminal(sys.stdout if file is None else file)
        self.is_on = when == "always" or (when == "auto" and is_wanted and here)

    def token(self, token: Token, number: int) -> str:
        """A token in the colour of its turn; special ones stand out. Without colours, its text."""
        if not self.is_on:
            return token.shown
        if token.is_special:
            return f"{_SPECIAL}{token.shown}{_RESET}"
        colour = _BACKGROUNDS[number % len(_BACKGROUNDS)]
        return f"\x1b[38;5;16;48;5;{colour}m{token.shown}{_RESET}"


def room() -> int | None:
    """The columns of the terminal; None if standard output is not one."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None


def columns(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Lines of a table, two spaces between columns. right: which columns end at the right.

    On a terminal that is too narrow, the widest of the other columns are cut.
    """
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    most = room()
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
            blanks = " " * (size - width(text))
            cells.append(blanks + text if is_right else text + blanks)
        lines.append("  ".join(cells).rstrip())
    return lines


def _cut(text: str, columns: int) -> str:
    if width(text) <= columns:
        return text
    while width(text) >= columns:
        text = text[:-1]
    return f"{text}…"


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output, in UTF-8 whatever its encoding is."""
    text = "".join([f"{line}\n" for line in lines])
    write_bytes(text.encode("utf-8", "replace"), at_once=True)
