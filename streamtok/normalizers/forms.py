"""Unicode's normalization forms (UAX #15), as defined in Unicode 9.0, which `tokenizers` uses.

There are four kinds of characters. A character that *joins* may combine with the text before it, or
move before it: combining marks, and letters that compose with the letter before them. Before any
other character, there is a border that nothing crosses. A character that *changes* does so by
itself. A character that *opens* may combine with a joining character after it. The rest are inert.
So a text is normalized run by run, where a run is a character and the joining characters after it.

Python's `unicodedata` normalizes the runs. It knows characters newer than Unicode 9.0, but these
are inert in the tables, so no run contains them. A text that it considers normalized is normalized
in Unicode 9.0, too.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import groupby
from typing import Literal

from .char_sets import one_of, ranges_of
from .growth import Growth
from .step import Interest, Step

__all__ = ["Form"]

FormName = Literal["NFC", "NFD", "NFKC", "NFKD"]
LONG = 32  # characters; longer runs are sorted here, since Python takes quadratic time


@lru_cache(maxsize=4)
def _run(form: FormName) -> re.Pattern[str]:
    """A regular expression for the runs that the form may change."""
    changes, joins, opens = (
        one_of(ranges_of(f"{form}_{name}")) for name in ("changes", "joins", "opens")
    )
    return re.compile(f"(?:{changes}|{opens}(?={joins})){joins}*|{joins}+")


class Form(Step):
    """One of the four forms, by name."""

    __slots__ = ("form", "growth", "spec")

    def __init__(self, form: FormName) -> None:
        if form not in ("NFC", "NFD", "NFKC", "NFKD"):
            raise ValueError(f"{form!r} is not the name of a normalization form")
        self.form: FormName = form
        self.spec = (form,)
        self.growth = Growth(11.0 if "K" in form else 3.0)  # UAX #15; U+FDFA grows by 11

    def interest(self) -> Interest:
        changes, joins, opens = (
            ranges_of(f"{self.form}_{name}") for name in ("changes", "joins", "opens")
        )
        return Interest(changes, holds=[*opens, *joins], joins=joins)

    def apply(self, text: str, where: int) -> str:
        if text.isascii() or unicodedata.is_normalized(self.form, text):
            return text
        return _run(self.form).sub(lambda found: _normalized(self.form, found[0]), text)


def _normalized(form: FormName, run: str) -> str:
    """`run`, normalized in nearly linear time."""
    if len(run) > LONG:
        decomposed: FormName = "NFKD" if "K" in form else "NFD"
        parts = "".join([unicodedata.normalize(decomposed, char) for char in run])
        combining = unicodedata.combining
        run = "".join(
            "".join(sorted(group, key=combining)) if is_mark else "".join(group)
            for is_mark, group in groupby(parts, lambda char: combining(char) > 0)
        )
    return unicodedata.normalize(form, run)
