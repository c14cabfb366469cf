"""As much of the end of a text as fits a budget, without looking at its beginning.

At a *clean cut* (`_core/scan/cuts.pxi`) a text falls into two parts whose ids, one after the other,
are those of the whole. So the ids of an end that begins at a clean cut are the last ids of the
text, and every end that begins before it has more. The walk goes back from cut to cut until the
budget is used up; what is left is to find the place between two neighbouring cuts. There, ends are
tried from the longest on. Where there are many, as in an encoding without cuts, a lower bound
spares most of the tries: no way to cover an end with tokens has fewer of them than the shortest
way, and the shortest ways of all ends come from one pass over the text, from its end.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..engines.rules import MARK
from ..errors import UnsupportedStreamError, raise_disallowed_special
from .cover import able_from
from .graphemes import grapheme_ends
from .prefixes import Prefixes
from .text_window import TextWindow, character_ends

if TYPE_CHECKING:
    from .text_settings import Settings

__all__ = ["longest_suffix"]

_NEAR = 16  # characters: from there on, go back one cut at a time
_FEW = 48  # characters between two cuts, of which every one is tried
_SMALL_TEXT = 1 << 13  # characters of which that can be afforded, too


def longest_suffix(
    settings: Settings, text: Any, budget: int, whole_graphemes: bool = False
) -> tuple[int, int]:
    """(start, number of ids) of the longest end of `text` within the budget that is made of whole
    characters (or grapheme clusters) and of the last tokens of the whole. text: str, or bytes or a
    view of bytes.
    """

    def chosen(places: Iterable[int]) -> Iterable[int]:
        return grapheme_ends(TextWindow(text), 0, places) if whole_graphemes else places

    stop, left = len(text), budget
    size = 3 * budget
    within = []  # the parts between cuts that are within the budget, and what is left after each
    while stop:
        start = _last_cut(settings, text, max(stop - size, 0), stop)
        found = _encode(settings, text, start, stop, "count")
        if found <= left:
            within.append((start, stop, left))
            left -= found
            each = (stop - start) / max(found, 1)
            stop = start
            size = max(int(left * each * 0.9), 1)
        elif stop - start > _NEAR and size > 1:
            size = min(size, stop - start) // 4 if size > _NEAR else 1
        else:
            within.append((start, stop, left))
            break
    else:
        return 0, budget - left
    for start, stop, left in reversed(within):
        part = text[start:stop]
        kept = _between_cuts(settings, part, start, left, chosen)
        if kept is not None:
            return kept[0], budget - left + kept[1]
        if any(chosen([stop])):
            return stop, budget - left
    return len(text), 0


def _last_cut(settings: Settings, text: Any, near: int, stop: int) -> int:
    """The last clean cut at `near` or before it, at the latest before `stop`; else 0."""
    cuts = settings.encoding._cuts
    if cuts is None:
        return 0
    near = min(near, stop - 1)
    while near > 0:
        place = cuts.find(text, settings.matcher, 0, near + 1, True)
        if place <= 0:
            return 0
        if not (isinstance(text, str) and _has_surrogates(text[place - 1 : place + 1])):
            return place
        near = place - 1  # a surrogate becomes another character: the cut is not to be relied on
    return 0


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= one <= "\udfff" for one in text)


def _encode(settings: Settings, text: Any, start: int, stop: int, into: str) -> Any:
    part = text[start:stop]
    try:
        return settings.encode(part, into)
    except UnicodeDecodeError as error:
        raise UnicodeDecodeError(
            error.encoding, error.object, start + error.start, start + error.end, error.reason
        ) from None
    except ValueError:
        if not start:
            raise
        # A disallowed special token: again, for the offset in all of the text.
        result = settings.encoding._engine.encode(part, settings.matcher, settings.errors, into)
        before = text[:start]
        if isinstance(before, str):
            before = before.encode("utf-8", "surrogatepass")
        raise_disallowed_special(len(before) + result[0], result[1])


def _between_cuts(
    settings: Settings,
    part: Any,
    base: int,
    budget: int,
    chosen: Callable[[Iterable[int]], Iterable[int]],
) -> tuple[int, int] | None:
    """As `longest_suffix`, for a text between cuts, without its beginning; None: no token fits.

    chosen: those of some places in the whole text that may be a start. base: where `part` begins.
    """
    part = part if isinstance(part, str) else bytes(part)
    spelled = _spell(settings, part) if len(part) > _FEW else None
    prefixes = Prefixes(settings, TextWindow(part))
    if spelled is not None:
        tries = _worth_trying(settings, spelled, budget)
    else:
        prefixes.refuse_large()
        if len(part) > _SMALL_TEXT:
            raise UnsupportedStreamError(
                f"{len(part):,} characters before the end of the text, encoding cannot begin "
                "yet: this encoding changes text, or drops parts of it. Cut the text first, "
                'or take its beginning (side="right")'
            )
        tries = character_ends(part, 1, len(part))[:-1]
    for place in chosen([base + start for start in tries]):
        start = place - base
        found = _encode(settings, part, start, len(part), "count")
        if found <= budget and (spelled is not None or prefixes.ends_token(start)):
            return place, found
    return None


class _Spelled(NamedTuple):
    """The text of the tokens: `prefix`, then the characters of the text."""

    prefix: bytes
    data: bytes
    places: list[tuple[int, int]]  # where characters end: in the text, in `data`
    starts: set[int]  # of tokens, in `data`


def _spell(settings: Settings, part: Any) -> _Spelled | None:
    """None where the text is changed in another way than by spaces, or has gaps."""
    rules, pattern = settings.encoding._rules, settings.encoding.pattern
    has_spaces = rules.normalizer == "spaces"
    has_symbols = settings.encoding._vocabulary.model is not None
    if pattern is None or not pattern.is_total or has_symbols:
        return None
    steps = getattr(rules.normalizer, "spec", ())
    if any(kind in ("JoinedSpaces", "LongestMap") for kind, *_ in steps):
        return None  # an end may change where the whole did not, and have fewer tokens
    text = part if isinstance(part, str) else part.decode("utf-8", "surrogateescape")
    # Of a text that is in NFC, each part is; any other text is compared with its tokens below.
    if rules.normalizer == "NFC" and not unicodedata.is_normalized("NFC", text):
        return None
    ids = settings.encode(part, "list")
    tokens = list(map(settings.encoding._decoder.token_bytes, ids))
    escapes = "surrogateescape" if settings.errors == "surrogateescape" else "surrogatepass"
    sizes = (1 if part is text else len(one.encode("utf-8", escapes)) for one in text)
    written = list(itertools.accumulate(sizes))
    if has_spaces:
        text = text.replace(MARK, " ")
    data, found = text.encode("utf-8", escapes), b"".join(tokens)
    prefix = b" " if rules.space_first and found == b" " + data else b""
    if found != prefix + data:
        return None
    ends = itertools.accumulate(map(len, tokens), initial=-len(prefix))
    spelt = itertools.accumulate(len(one.encode("utf-8", escapes)) for one in text)
    return _Spelled(prefix, data, list(zip(written, spelt, strict=True)), set(ends))


def _worth_trying(settings: Settings, spelled: _Spelled, budget: int) -> list[int]:
    """Where a token begins, and so many tokens could be enough for the rest."""
    prefix, data, places, starts = spelled
    able = able_from(settings, data, prefix, budget)
    return [place for place, at in places[:-1] if at in starts and at in able]
