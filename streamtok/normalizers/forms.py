"""Unicode's normalization forms (UAX #15) in streams, by Unicode 9.0 as in `tokenizers`.

Characters are of four kinds. One that *joins* may change with, or move before, what stands before
it: marks, and what composes with a letter before it. All others have a border before them: nothing
crosses it. One that *changes* does so by itself; one that *opens* may change with a character
after it that joins. All others are inert. So a text is normalized run by run, each a character and
those after it that join; and at the end of a chunk, the last run waits if it may still change.

Python's `unicodedata` normalizes the runs. It knows newer characters than Unicode 9.0, but no run
has any, because to the tables they are inert; and what it calls normalized is so by Unicode 9.0.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import groupby
from typing import Literal

from ..parallel.cached import cached_property
from .char_sets import members, one_of, ranges_of
from .growth import Growth
from .step import Blocks, Interest, Step, whole_block

__all__ = ["Form"]

FormName = Literal["NFC", "NFD", "NFKC", "NFKD"]
MOST_RESULTS = 4096
MOST_KEPT = 16  # marks at the end of a run; see `_n_kept`
LONG = 32  # characters; Python sorts the marks of longer runs in quadratic time


class _Kinds:
    """What a form needs to know of characters. Patterns are compiled when a text needs them."""

    def __init__(self, form: FormName) -> None:
        self.form = form
        self.joins = members(f"{form}_joins")
        self.opens = members(f"{form}_opens")
        self.results: dict[str, str] = {}  # of short runs that have been seen

    @cached_property
    def run(self) -> re.Pattern[str]:
        """A character that changes or joins, and those after it that join; but not a mark alone
        that leaves everything as it is, such as the viramas of Indian scripts.
        """
        either = one_of(ranges_of(f"{self.form}_joins", f"{self.form}_changes"))
        joins = one_of(ranges_of(f"{self.form}_joins"))
        lone = one_of(ranges_of(f"{self.form}_lone"))
        # The first set of characters is first: `re` then looks for it alone.
        return re.compile(f"{either}(?:{joins}+|(?<!{lone}))")

    @cached_property
    def whole_run(self) -> re.Pattern[str]:
        """All that a character and those after it that join may be changed with."""
        joins = one_of(ranges_of(f"{self.form}_joins"))
        opens = one_of(ranges_of(f"{self.form}_opens"))
        changes = one_of(ranges_of(f"{self.form}_changes"))
        return re.compile(f"(?:{changes}|{opens}(?={joins})){joins}*|{joins}+")


_kinds = lru_cache(maxsize=4)(_Kinds)


class Form(Step):
    """One of the four forms, by its name."""

    __slots__ = ("form", "growth", "spec")

    def __init__(self, form: FormName) -> None:
        if form not in ("NFC", "NFD", "NFKC", "NFKD"):
            raise ValueError(f"{form!r} is not the name of a normalization form")
        self.form: FormName = form
        self.spec = (form,)
        self.growth = Growth(11.0 if "K" in form else 3.0)  # UAX #15; U+FDFA has the 11

    def interest(self) -> Interest:
        changes, joins, opens = (
            ranges_of(f"{self.form}_{name}") for name in ("changes", "joins", "opens")
        )
        return Interest(changes, holds=[*opens, *joins], joins=joins)

    def apply(self, text: str, where: int) -> str:
        if text.isascii() or unicodedata.is_normalized(self.form, text):
            return text
        run = _kinds(self.form).whole_run
        return run.sub(lambda found: _remember(self.form, found[0]), text)

    @property
    def waits(self) -> frozenset[str]:
        """See `Step`."""
        return _kinds(self.form).joins

    def change(self, context: int, text: str, final: bool, seen: int) -> tuple[int, Blocks]:
        blocks: Blocks = []
        end = len(text)
        if not final:
            kinds = _kinds(self.form)
            while end and text[end - 1] in kinds.joins:
                end -= 1
            if end and text[end - 1] in kinds.opens:
                end -= 1
        self._add(text[:end], blocks)
        return 0, blocks

    def _add(self, text: str, blocks: Blocks) -> None:
        """Append the blocks of `text`, before which and after which is a border."""
        if text.isascii() or unicodedata.is_normalized(self.form, text):
            if not text:
                return
            if blocks and len(blocks[-1][0]) == len(blocks[-1][1]):
                before, source = blocks.pop()
                blocks.append((before + text, source + text))
            else:
                blocks.append((text, text))
        else:
            self._change(text, blocks)

    def _change(self, text: str, blocks: Blocks) -> None:
        """`_add`, run by run."""
        form, kinds = self.form, _kinds(self.form)
        joins, opens, results = kinds.joins, kinds.opens, kinds.results
        done = same = 0  # up to which all is in blocks; up to which all is in `parts`
        parts: list[str] = []  # what stands one for one after `done`
        for found in kinds.run.finditer(text):
            start, end = found.span()
            if start > same and text[start] in joins and text[start - 1] in opens:
                start -= 1
            source = text[start:end]
            result = results.get(source) or _remember(form, source)
            if result == source or len(result) == len(source) == 1:
                parts += (text[same:start], result)
                same = end
                continue
            if parts:
                parts.append(text[same:start])
                blocks.append(("".join(parts), text[done:start]))
                parts = []
            elif start > done:
                part = text[done:start]
                blocks.append((part, part))
            kept = self._n_kept(source, result)
            blocks += whole_block(result[: len(result) - kept], source[: len(source) - kept])
            done = same = end - kept
        if done < len(text):
            parts.append(text[same:])
            blocks.append(("".join(parts), text[done:]))

    def _n_kept(self, run: str, result: str) -> int:
        """How many marks, of a few, a run ends with that stay as they are, whatever is before."""
        most = min(len(run), len(result), MOST_KEPT + 1) - 1
        n = next((n for n in range(most) if run[-1 - n] != result[-1 - n]), most)
        while n and _normalized(self.form, run[:-n]) != result[:-n]:
            n -= 1
        return n


def _remember(form: FormName, run: str) -> str:
    """`run`, normalized; kept in `results` as long as there is room."""
    results = _kinds(form).results
    result = results.get(run) or _normalized(form, run)
    if len(run) <= 4 and len(results) < MOST_RESULTS:
        results[run] = result
    return result


def _normalized(form: FormName, run: str) -> str:
    """`run`, normalized; in time that is little more than linear."""
    if len(run) > LONG:
        decomposed: FormName = "NFKD" if "K" in form else "NFD"
        parts = "".join([unicodedata.normalize(decomposed, char) for char in run])
        combining = unicodedata.combining
        run = "".join(
            "".join(sorted(group, key=combining)) if is_mark else "".join(group)
            for is_mark, group in groupby(parts, lambda char: combining(char) > 0)
        )
    return unicodedata.normalize(form, run)
