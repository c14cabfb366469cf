"""Finds the longest suffix of a text that fits a budget.

The whole text is encoded. Let the *limit* be the position where its last budget + 1 tokens begin.
The search starts at the last *clean cut* (`_core/scan/cuts.pxi`) before the limit: the two sides of
a clean cut together have the ids of the whole, so a suffix that begins before the cut has more ids
than the budget. Suffixes are tried from there, longest first. If many begin before the limit, as in
an encoding without cuts, most are skipped by a lower bound: the fewest tokens that can spell a
suffix. One pass from the end of the text computes this bound for all suffixes.
"""

from __future__ import annotations

import itertools
import unicodedata
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.encode import ARRAY, COUNT, LIST, has_surrogate
from ..engines.rules import MARK
from ..prompts import Prompt, is_inside_text
from .prefixes import Prefixes
from .text_window import TextWindow, character_ends

if TYPE_CHECKING:
    from ..vocabulary.table import Vocabulary
    from .text_settings import Settings

__all__ = ["longest_suffix"]

_FEW = 48  # if the cut is at most this many characters before the limit, no bound is used
_MOST_WORK = 1 << 26  # suffixes to try, times the characters to encode for each

_sizes: weakref.WeakKeyDictionary[Vocabulary, list[int]] = (
    weakref.WeakKeyDictionary()
)  # of its tokens


def longest_suffix(settings: Settings, text: Any, budget: int) -> tuple[int, int]:
    """(start, number of ids) of the longest suffix of `text` within the budget that consists of
    whole characters and of the last tokens of the whole text. text: str, Prompt or bytes.
    """
    settings.tail()  # raises for a pattern without tables, as side="right" does
    ids = settings.encode(text, ARRAY)
    if len(ids) <= budget:
        return 0, len(ids)
    last = b"".join(map(settings.definition.decoder.token_bytes, ids[-budget - 1 :].tolist()))
    is_str = isinstance(text, str | Prompt)
    size = len(last.decode("utf-8", "replace")) if is_str else len(last)
    base = _cut_before(settings, text, size, budget)
    part = text[base:]
    n_before = len(part) - size  # characters before the limit
    prefixes = None
    spelled = _spell(settings, part)
    if spelled is None:
        prefixes = Prefixes(settings, TextWindow(part))
        if n_before * len(part) > _MOST_WORK:
            raise ValueError(
                f"encoding cannot begin within the last {len(part):,} characters: this encoding "
                "changes text, or drops parts of it. Cut the text first, or keep its beginning "
                '(side="right")'
            )
        starts = character_ends(part, 0 if base else 1, len(part))[:-1]
    else:
        able = _able_from(settings, spelled, budget) if n_before > _FEW else spelled.starts
        starts = [offset for offset, at in spelled.offsets if at in spelled.starts and at in able]
    for start in starts:
        found = settings.encode(part[start:], COUNT)
        if found <= budget and (prefixes is None or prefixes.ends_token(start)):
            return base + start, found
    return len(text), 0


def _cut_before(settings: Settings, text: Any, size: int, budget: int) -> int:
    """The last clean cut after which the text has more ids than the budget; 0 if there is none.

    size: distance in characters or bytes between the limit and the end of the text.
    """
    cuts = settings.definition.texts.cuts
    near = len(text) - size
    flat = str(text) if isinstance(text, Prompt) else text
    while cuts is not None and near > 0:
        near = max(cuts.find(flat, settings.matcher, 0, near + 1, True), 0)
        if isinstance(text, Prompt) and not is_inside_text(text, near):
            near -= 1
        elif isinstance(text, str) and has_surrogate(text, max(near - 1, 0), near + 1):
            near -= 1  # a surrogate becomes another character, so the cut is unreliable
        elif settings.encode(text[near:], COUNT) > budget:
            return near
        else:  # the pattern drops text, so the tokens are further apart
            near -= size
    return 0


class _Spelled(NamedTuple):
    """The text of the tokens: `prefix`, then the characters of the text."""

    prefix: bytes
    data: bytes
    offsets: list[tuple[int, int]]  # of each character, in the text and in `data`
    starts: set[int]  # offsets in `data` where tokens begin


def _spell(settings: Settings, part: Any) -> _Spelled | None:
    """How tokens spell the text; None if text is dropped, or more than spaces is changed."""
    if isinstance(part, Prompt):
        return None
    rules, pattern = settings.definition.rules, settings.definition.pattern
    has_symbols = settings.definition.vocabulary.model is not None
    if pattern is None or not pattern.is_total or has_symbols:
        return None
    steps = getattr(rules.normalizer, "spec", ())
    if any(kind in ("JoinedSpaces", "LongestMap") for kind, *_ in steps):
        return None  # a suffix may change where the whole text did not, and so have fewer tokens
    text = part if isinstance(part, str) else part.decode("utf-8", "surrogateescape")
    # If a text is in NFC, so is each part. Other changes show in the comparison below.
    if steps == (("NFC",),) and not unicodedata.is_normalized("NFC", text):
        return None
    ids = settings.encode(part, LIST)
    tokens = list(map(settings.definition.decoder.token_bytes, ids))
    escapes = "surrogateescape" if settings.errors == "surrogateescape" else "surrogatepass"
    sizes = (1 if part is text else len(one.encode("utf-8", escapes)) for one in text)
    written = list(itertools.accumulate(sizes, initial=0))
    if steps[:1] == (("Replace", MARK, " "),):
        text = text.replace(MARK, " ")
    data, found = text.encode("utf-8", escapes), b"".join(tokens)
    puts_space = ("Prepend", " ", True) in steps
    prefix = b" " if puts_space and found == b" " + data else b""
    if found != prefix + data:
        return None
    starts = itertools.accumulate(map(len, tokens), initial=-len(prefix))
    spelt = itertools.accumulate((len(one.encode("utf-8", escapes)) for one in text), initial=0)
    return _Spelled(prefix, data, list(zip(written, spelt, strict=True))[:-1], set(starts))


def _able_from(settings: Settings, spelled: _Spelled, budget: int) -> set[int]:
    """The positions from which at most `budget` tokens can spell the rest of the text.

    The rest may be preceded by the prefix or not. The scan runs backwards, and stops after as many
    impossible positions as the longest token has bytes.
    """
    prefix, data = spelled.prefix, spelled.data
    find = settings.definition.table.find
    specials = {one for one in map(str.encode, settings.matcher.allowed) if one in data}
    vocabulary = settings.definition.vocabulary
    if vocabulary not in _sizes:
        _sizes[vocabulary] = np.unique(np.diff(vocabulary.offsets)).tolist()
    lengths = sorted({1, *_sizes[vocabulary], *map(len, specials)}, reverse=True)
    end = len(data)
    fewest = [0]  # fewest[n]: tokens that spell the last n bytes
    able = set()
    unable = 0  # consecutive positions
    for at in range(end - 1, -1, -1):
        best = fewest[-1]  # a byte by itself
        for length in lengths:
            if length <= end - at and fewest[end - at - length] < best:
                token = data[at : at + length]
                if find(token) is not None or token in specials:
                    best = fewest[end - at - length]
        fewest.append(best + 1)
        if best < budget or (
            prefix
            and any(
                find(prefix + data[at : at + size]) is not None
                for size in range(min(lengths[0], end - at + 1))
                if fewest[end - at - size] < budget
            )
        ):
            able.add(at)
        unable = unable + 1 if best >= budget else 0
        if unable > lengths[0]:
            break
    return able
