"""Changing a text by the table of its steps, cut anywhere, with everything about it checked."""

from collections.abc import Sequence
from functools import lru_cache

from streamtok._core.encode import ElementTable, change_elements
from streamtok.normalizers import Normalizer
from streamtok.normalizers.elements import Elements
from streamtok.normalizers.step import BEGIN, END, FIRST

Rows = Sequence[tuple[int, int]]


@lru_cache(maxsize=64)
def table_of(*normalizers: Normalizer) -> ElementTable:
    return ElementTable(Elements(*normalizers))


def utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def check_rows(rows: Rows | None, text: bytes, source: bytes) -> None:
    """They cover both texts. Neither side of one is empty unless no text is left."""
    assert rows is not None
    assert sum(now for now, _ in rows) == len(text)
    assert sum(now if before < 0 else before for now, before in rows) == len(source)
    assert not text or all(now and before for now, before in rows)
    at = start = 0
    for now, before in rows:
        if before < 0:
            assert text[at : at + now] == source[start : start + now]
        at += now
        start += now if before < 0 else before


def check_table(
    table: ElementTable, text: str, cuts: Sequence[int] = (), is_first: bool = True
) -> None:
    """As the steps make it of the whole text, in one call and cut."""
    begins = BEGIN | FIRST * is_first
    expected = utf8(table.elements.apply(text, begins | END))
    made, rest, _, rows = change_elements(table, utf8(text), begins, True, True)
    assert (made, rest) == (expected, b"")
    check_rows(rows, made, utf8(text))
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    parts, held = [], b""
    for number, stop in enumerate(places[1:], 1):
        held += utf8(text[places[number - 1] : stop])
        made, rest, *_ = change_elements(table, held, begins, number + 1 == len(places), False)
        parts.append(made)
        if len(rest) < len(held):
            begins = 0
        held = rest
    assert (b"".join(parts), held) == (expected, b"")


def check(normalizer: Normalizer, text: str, cuts: Sequence[int], is_first: bool = True) -> None:
    """Cut at `cuts`, the text has the same result as uncut."""
    check_table(table_of(normalizer), text, cuts, is_first)


def check_all_cuts(normalizer: Normalizer, text: str, is_first: bool = True) -> None:
    """`check` for one cut at each place, two at the same place, and one after each character."""
    for cut in range(len(text) + 1):
        check(normalizer, text, [cut], is_first)
    check(normalizer, text, [len(text) // 2] * 2, is_first)
    check(normalizer, text, range(1, len(text)), is_first)


def waits(normalizer: Normalizer, text: str) -> str:
    """What of the beginning of a segment waits for what comes next."""
    rest = change_elements(table_of(normalizer), utf8(text), BEGIN | FIRST, False, False)[1]
    return rest.decode("utf-8", "surrogateescape")
