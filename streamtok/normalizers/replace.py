"""Steps that replace a string, runs of some characters, or runs of unknown characters.

`Replace` and `ReplaceRuns` are `tokenizers.normalizers.Replace` with a String and with a Regex.
Occurrences are found from left to right and do not overlap. Only one kind of regular expression is
supported: one character or set, such as `\\s`, `[\\r\\n]` or `[^a-z]`, then nothing, `+` or
`{n,}`. Others are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .char_sets import one_of
from .edges import WHITE_SPACE
from .growth import Growth, n_bytes
from .step import Interest, Step

__all__ = ["Replace", "ReplaceRuns", "UnknownRuns"]

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}
_ONE = r"\\[sSnrtfv]|\\[^\w\s]|[^\\\[\](){}.*+?^$|&-]"
_REGEX = re.compile(rf"(?P<set>\[\^?(?:(?:{_ONE})(?:-(?!\\s)(?:{_ONE}))?)+\]|{_ONE}|-|&)"
                    r"(?P<times>\+|\{(?P<least>[1-9]\d{0,2}),\})?")  # fmt: skip
_PARTS = re.compile(rf"({_ONE})(?:-({_ONE}))?", re.DOTALL)


class Replace(Step):
    """Each `old` becomes `new`. `old` must not be empty."""

    __slots__ = ("growth", "new", "old", "spec")

    def __init__(self, old: str, new: str) -> None:
        if not old:
            raise ValueError("the string that is replaced must not be empty")
        self.old, self.new = old, new
        self.spec = ("Replace", old, new)
        self.growth = Growth(replaced=(old, new))

    def interest(self) -> Interest:
        points = [(ord(char), ord(char)) for char in self.old]
        if len(points) == 1:
            return Interest(points)
        return Interest(holds=points[:-1], joins=points[1:])

    def apply(self, text: str, where: int) -> str:
        return text.replace(self.old, self.new)


class ReplaceRuns(Step):
    """Each run that `regex` matches becomes `new`. Raises ValueError for an unsupported `regex`."""

    __slots__ = ("_is_each", "_least", "_members", "_run", "growth", "new", "regex", "spec")

    def __init__(self, regex: str, new: str) -> None:
        found = _REGEX.fullmatch(regex)
        if not found:
            raise ValueError(
                f"the regular expression {regex!r} is not supported: expected one character or set "
                "of characters, then nothing, + or {n,}"
            )
        self.regex, self.new = regex, new
        self.spec = ("ReplaceRuns", regex, new)
        self._is_each = not found["times"]
        self._least = int(found["least"] or 1)
        self._members = members = _members(found["set"])
        self.growth = Growth(n_bytes(new) / (self._least * n_bytes(chr(members[0][0]))))
        one = one_of(members)
        self._run = re.compile(one if self._is_each else f"{one}+")

    def interest(self) -> Interest:
        if self._is_each:
            return Interest(self._members)
        return Interest(self._members, self._members, self._members)

    def apply(self, text: str, where: int) -> str:
        return self._run.sub(lambda run: self.new if len(run[0]) >= self._least else run[0], text)


class UnknownRuns(Step):
    """Each run of characters that are not in `known` becomes the one character `unknown`.

    SentencePiece emits one id for such a run. Raises ValueError if `unknown` is in `known`.
    """

    __slots__ = ("_run", "_unknown", "growth", "spec", "unknown")

    def __init__(self, known: str, unknown: str) -> None:
        if len(unknown) != 1 or unknown in known:
            raise ValueError(f"expected an unknown character, found {unknown!r}")
        self.unknown = unknown
        self.spec = ("UnknownRuns", known, unknown)
        self.growth = Growth(n_bytes(unknown))
        self._unknown = _all_but((ord(one), ord(one)) for one in known)
        self._run = re.compile(f"{one_of(self._unknown)}+")

    def interest(self) -> Interest:
        return Interest(self._unknown, self._unknown, self._unknown)

    def apply(self, text: str, where: int) -> str:
        return self._run.sub(self.unknown, text)


def _members(spelled: str) -> list[tuple[int, int]]:
    """The ranges of a set or a character, as spelled in a regular expression."""
    ranges = []
    if spelled == "\\S":
        return _others(_members("\\s"))
    if spelled.startswith("[^"):
        return _others(_members(f"[{spelled[2:]}"))
    inner = spelled[1:-1] if len(spelled) > 2 and spelled[0] == "[" else spelled
    if inner in ("-", "&"):
        return [(ord(inner), ord(inner))]
    for first, last in _PARTS.findall(inner):
        if "\\S" in (first, last):
            raise ValueError(f"the set {spelled!r} is not supported")
        if first == "\\s":
            if last:
                raise ValueError(f"the set {spelled!r} is not supported")
            ranges += [(ord(char), ord(char)) for char in WHITE_SPACE]
            continue
        low = _char(first)
        high = _char(last) if last else low
        if high < low:
            raise ValueError(f"the set {spelled!r} has an empty range")
        ranges.append((low, high))
    return sorted(ranges)


def _others(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """All other characters, but no surrogates, which represent bytes that are not UTF-8."""
    found = _all_but([*ranges, (0xD800, 0xDFFF)])
    if not found:
        raise ValueError("a set without any character is not supported")
    return found


def _all_but(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    found, low = [], 0
    for first, last in sorted(ranges):
        if first > low:
            found.append((low, first - 1))
        low = max(low, last + 1)
    return [*found, (low, 0x10FFFF)] if low <= 0x10FFFF else found


def _char(spelled: str) -> int:
    if len(spelled) == 2:
        return ord(_ESCAPES.get(spelled[1], spelled[1]))
    return ord(spelled)
