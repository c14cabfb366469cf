"""The law of spans, as slowly and plainly as it can be said: what `test_spans_by_law.py` compares.

Of a whole text, a step of a normalizer says what became of what. That is a list of *cells*: (bytes
before, bytes now). A byte of a character that did not change is a cell; what became something else
as a whole is one. Of two steps, one after the other, cells that overlap are one. In the end, what
was put in joins the cell after it in its stretch, and what was left out the cell before it, at the
beginning the first one. So a span covers all that went into its token. White space that a token
takes is in its span.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from streamtok.engines.added_tokens import GOES_ON, NOTHING_FOUND, Finder
from streamtok.engines.stretches import Stages
from streamtok.normalizers import Normalizer
from streamtok.normalizers.step import Step, text_of

Cells: TypeAlias = "list[tuple[int, int]]"
Span: TypeAlias = "tuple[int, int]"


def size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def cells_of(step: Step, text: str, is_first: bool) -> tuple[str, Cells]:
    """What a step makes of a stretch, and its cells."""
    _, blocks = step.change(step.begin(is_first), text, True, 0)
    cells: Cells = []
    put = False  # the last cell has no source: if one follows, both are a whole
    for now, before in blocks:
        if put and before and not now:
            cells[-1] = size(before), cells[-1][1]
        elif len(now) == len(before):
            for x, y in zip(now, before, strict=True):
                cells += [(1, 1)] * size(x) if x == y else [(size(y), size(x))]
        else:
            cells.append((size(before), size(now)))
        put = bool(now) and not before
    return text_of(blocks), cells


def joined(cells: Cells) -> Cells:
    """What was put in goes with the text after it; what was left out, with what is beside it."""
    whole: Cells = []
    for before, now in cells:
        if whole and not whole[-1][0]:
            whole[-1] = before, whole[-1][1] + now
        else:
            whole.append((before, now))
    found: Cells = []
    lead = 0
    for before, now in whole:
        if now:
            found.append((lead + before, now))
            lead = 0
        elif found:
            found[-1] = found[-1][0] + before, found[-1][1]
        else:
            lead += before
    return found


def composed(first: Cells, second: Cells) -> Cells:
    """One after the other."""
    found: Cells = []
    a, b = [*reversed(first)], [*reversed(second)]
    while a or b:
        if a and not a[-1][1]:
            found.append(a.pop())
            continue
        if b and not b[-1][0]:
            found.append((0, b.pop()[1]))
            continue
        before = now = ahead = 0
        while True:
            if ahead <= 0:
                cell = a.pop()
                before, ahead = before + cell[0], ahead + cell[1]
            else:
                cell = b.pop()
                now, ahead = now + cell[1], ahead - cell[0]
            if ahead == 0:
                break
        found.append((before, now))
    return found


def normalized(normalizer: Normalizer | None, text: str, is_first: bool) -> tuple[str, list[Span]]:
    """What becomes of a stretch, and where each of its bytes is from."""
    cells: Cells = [(1, 1)] * size(text)
    for step in normalizer.steps if normalizer else ():
        text, new = cells_of(step, text, is_first)
        cells = composed(cells, new)
    spans: list[Span] = []
    at = 0
    for before, now in joined(cells):
        spans += [(at, at + before)] * now
        at += before
    return text, spans


def found_in(finder: Finder | None, text: str) -> list[tuple[str, str, Any]]:
    """(text, what the token after it takes, its id)."""
    if finder is None:
        return [(text, "", GOES_ON)]
    _, events, refused = finder.feed(NOTHING_FOUND, text, True)
    assert refused is None
    return events


def spans_by_law(stages: Stages, text: str) -> list[tuple[int, Span]]:
    """(id, span) of each token of a text; each byte is one that no added token is of."""
    finder = stages.normalized
    found: list[tuple[int, Span]] = []
    at = 0
    is_first = True
    for part, taken, id in found_in(stages.raw, text):
        changed, spans = normalized(stages.normalizer, part, is_first)
        place = 0
        for inner, inner_taken, inner_id in found_in(finder, changed):
            result, inner_spans = normalized(stages.second, inner, False)
            for byte, (start, end) in zip(
                result.encode("utf-8", "surrogateescape"), inner_spans, strict=True
            ):
                found.append((byte, _back(spans, at, place + start, place + end)))
            place += size(inner)
            if inner_id is not GOES_ON:
                place = _take(found, inner_id, inner_taken, spans, at, place)
        at += size(part)
        if id is not GOES_ON:
            whole = [(i, i + 1) for i in range(size(taken))]
            _take(found, id, taken, whole, at, 0)
            at += size(taken)
            is_first = False
    return found


def _take(
    found: list[tuple[int, Span]], id: Any, taken: str, spans: list[Span], at: int, place: int
) -> int:
    end = place + size(taken)
    if id is None:
        last, (start, _) = found[-1]
        found[-1] = last, (start, _back(spans, at, place, end)[1])
    else:
        found.append((id, _back(spans, at, place, end)))
    return end


def _back(spans: list[Span], at: int, start: int, end: int) -> Span:
    if start == end:
        return (at + spans[start - 1][1] if start else at,) * 2
    return at + spans[start][0], at + spans[end - 1][1]
