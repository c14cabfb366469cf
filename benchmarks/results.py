"""Figures of one encoding from its samples: medians over the turns, ratios within a turn."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any, NamedTuple

Who = tuple[str, str]  # peer, mode


class Ratio(NamedTuple):
    """How many times as fast as `than` one is."""

    value: float
    than: Who


class Results:
    """Records of one encoding, asked for by contender."""

    def __init__(self, records: Iterable[dict[str, Any]]):
        self.by: dict[tuple[str, str, str, str], dict[int, Any]] = {}
        for r in records:
            turns = self.by.setdefault((r["kind"], r["text"], r["peer"], r["mode"]), {})
            turns[r["turn"]] = r["got"]

    def kinds(self) -> set[str]:
        return {key[0] for key in self.by}

    def texts(self, kind: str) -> list[str]:
        return list(dict.fromkeys(text for k, text, *_ in self.by if k == kind))

    def who(self, kind: str) -> list[Who]:
        """Those who took part, in the order of the first turn."""
        return list(dict.fromkeys((peer, mode) for k, _, peer, mode in self.by if k == kind))

    def figures(self, kind: str, text: str, who: Who, *path: str) -> dict[int, float] | str:
        """Turn → figure; a str says why there are none."""
        figures = {}
        for turn, got in self.by.get((kind, text, *who), {0: "not measured"}).items():
            if isinstance(got, str):
                return got
            for step in path:
                if step not in got:
                    return "not measured"
                got = got[step]
            figures[turn] = float(got)
        return figures

    def median(self, kind: str, text: str, who: Who, *path: str) -> float | None:
        figures = self.figures(kind, text, who, *path)
        return None if isinstance(figures, str) else statistics.median(figures.values())

    def quotient(self, kind: str, text: str, a: Who, b: Who, *path: str) -> float | None:
        """a's figure over b's: the median over the turns that both have."""
        left, right = self.figures(kind, text, a, *path), self.figures(kind, text, b, *path)
        if isinstance(left, str) or isinstance(right, str):
            return None
        both = [left[turn] / right[turn] for turn in left if turn in right]
        return statistics.median(both) if both else None

    def against(
        self,
        kind: str,
        text: str,
        own: Who,
        group: Iterable[Who],
        *path: str,
        is_time: bool = False,
    ) -> Ratio | None:
        """`own` against whoever of the group is best: the least ratio of the speeds."""
        ratios = []
        for who in group:
            a, b = (who, own) if is_time else (own, who)
            if who != own and (ratio := self.quotient(kind, text, a, b, *path)) is not None:
                ratios.append(Ratio(ratio, who))
        return min(ratios, default=None)

    def spread(self) -> float | None:
        """Half the range of the unseen samples of a contender, in medians; the median of that."""
        spreads = []
        for kind, text, *who in self.by:
            if kind != "text":
                continue
            found = self.figures(kind, text, (who[0], who[1]), "unseen", "mb_s")
            if not isinstance(found, str) and len(found) > 1:
                figures = found.values()
                spreads.append((max(figures) - min(figures)) / 2 / statistics.median(figures))
        return statistics.median(spreads) if spreads else None
