"""The step that replaces runs of some characters, as `tokenizers.normalizers.Replace` with a Regex.

A run needs not wait: as soon as it is long enough, its replacement comes out, and the rest of it is
left out. Only regular expressions of this kind are understood: one character or set, such as
`\\s`, `[\\r\\n]` or `[^a-z]`, then nothing, `+` or `{2,}`. Others are refused by name.
"""

from __future__ import annotations

import re
from typing import Any

from .char_sets import one_of
from .edges import BLANKS
from .growth import Growth, n_bytes
from .step import Blocks, Interest

__all__ = ["ReplaceRuns"]

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}
_ONE = r"\\[sSnrtfv]|\\[^\w\s]|[^\\\[\](){}.*+?^$|&-]"
_REGEX = re.compile(rf"(?P<set>\[\^?(?:(?:{_ONE})(?:-(?!\\s)(?:{_ONE}))?)+\]|{_ONE}|-|&)"
                    r"(?P<times>\+|\{(?P<least>[1-9]\d{0,2}),\})?")  # fmt: skip
_PARTS = re.compile(rf"({_ONE})(?:-({_ONE}))?", re.DOTALL)
_State = tuple[str, bool]


class ReplaceRuns:
    """Each run that `regex` matches becomes `new`. Raises ValueError for other kinds of `regex`."""

    __slots__ = ("_is_each", "_least", "_members", "_run", "growth", "new", "regex", "spec")

    def __init__(self, regex: str, new: str) -> None:
        found = _REGEX.fullmatch(regex)
        if not found:
            raise ValueError(
                f"the regular expression {regex!r} is not supported: expected one character or set "
                "of characters, then nothing, + or {2,}"
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

    def begin(self, is_first: bool) -> _State:
        """See `Step`. The state is a run that is still too short, and whether the text before is in
        a run that has been replaced.
        """
        return "", False

    def feed(self, state: _State, text: str, final: bool) -> tuple[_State, Blocks]:
        held, inside = state
        blocks: Blocks = []
        done = 0
        if inside and text:
            rest = self._run.match(text)
            done = rest.end() if rest else 0
            if done:
                blocks.append(("", text[:done]))
            inside = done == len(text)
        text, end = held + text, len(held) + len(text)
        held = ""
        for run in self._run.finditer(text, done):
            is_open = run.end() == end and not final and not self._is_each
            if run.end() - run.start() >= self._least:
                inside = is_open
                if run[0] == self.new:
                    continue
                if run.start() > done:
                    part = text[done : run.start()]
                    blocks.append((part, part))
                blocks.append((self.new, run[0]))
                done = run.end()
            elif is_open:
                held = run[0]
                end -= len(held)
        if end > done:
            blocks.append((text[done:end], text[done:end]))
        return ("", False) if final else (held, inside), blocks

    def held(self, state: _State) -> str:
        return state[0]

    def check_state(self, value: Any) -> _State:
        if not isinstance(value, (list, tuple)) or [type(part) for part in value] != [str, bool]:
            raise ValueError("expected a run that waits, and whether one has been replaced")
        held, inside = value
        if held and (inside or len(held) >= self._least or not self._run.fullmatch(held)):
            raise ValueError("expected a run that is too short to be replaced")
        if inside and self._is_each:
            raise ValueError("this step replaces characters, not runs")
        return held, inside


def _members(spelled: str) -> list[tuple[int, int]]:
    """The ranges of a set, or of a character."""
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
            ranges += [(ord(char), ord(char)) for char in BLANKS]
            continue
        low = _char(first)
        high = _char(last) if last else low
        if high < low:
            raise ValueError(f"the set {spelled!r} has an empty range")
        ranges.append((low, high))
    return sorted(ranges)


def _others(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """All other characters. Bytes that are not UTF-8, which are surrogates here, are none."""
    found, low = [], 0
    for first, last in sorted([*ranges, (0xD800, 0xDFFF)]):
        if first > low:
            found.append((low, first - 1))
        low = max(low, last + 1)
    if low <= 0x10FFFF:
        found.append((low, 0x10FFFF))
    if not found:
        raise ValueError("a set without any character is not supported")
    return found


def _char(spelled: str) -> int:
    if len(spelled) == 2:
        return ord(_ESCAPES.get(spelled[1], spelled[1]))
    return ord(spelled)
