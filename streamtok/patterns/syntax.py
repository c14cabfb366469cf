"""The grammar of pre-tokenization patterns: text in, a small tree out.

The dialect is the common part of Rust's `fancy-regex` (inside tiktoken) and Python's `regex`. A
spelling that the two read differently, such as `\\Z` or `[` inside a set, is refused by name rather
than guessed. Real patterns need two exceptions, both as in tiktoken: `$` matches only at the very
end of input, and `(?i:...)` uses simple case folding without the Turkish rules. This module does
not know about automata. It refuses only constructs whose syntax alone shows that no automaton can
follow them.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from typing import NoReturn

from ..errors import PatternError, UnsupportedPatternError
from .budget import Budget, shortened
from .tree import Atomic, Choice, Condition, Node, Repeat, Sequence, SetNode, can_be_empty
from .unicode_classes import CharSet, UnicodeTable

__all__ = ["MAX_DEPTH", "MAX_REPEAT", "parse"]

MAX_REPEAT = 1000
MAX_DEPTH = 100
FOLDING_STEPS = 200  # cost of folding any set, in steps of the budget


def parse(source: str, budget: Budget) -> Node:
    """The tree of the pattern `source`."""
    return _Parser(source, budget).parse()


@dataclass(frozen=True)
class _Flags:
    ignore_case: bool = False
    dot_all: bool = False


_FLAG_LETTERS = re.compile(r"\(\?([a-zA-Z-]*)[:)]")
_COUNTS = re.compile(r"\{(\d{0,9})(,?)(\d{0,9})\}", re.ASCII)
_LITERAL_ESCAPES = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "a": 7}
_SETS = {"d": "Nd", "s": "White_Space", "w": "word"}
_REFUSED_ESCAPES = (
    dict.fromkeys("bB<>", "word boundary")
    | dict.fromkeys("AG", "start anchor")
    | dict.fromkeys("0123456789kg", "back-reference")
    | {"Z": "end anchor before a line break"}  # the very end in Python, but not in Rust
    | {"K": "start reset", "R": "line break escape", "X": "grapheme escape"}
    | dict.fromkeys("hHNe", "escape")
)
_REFUSED_GROUPS = {
    "(?<=": "look-behind",
    "(?<!": "look-behind",
    "(?P=": "back-reference",
    "(?P>": "recursion",
    "(?&": "recursion",
    "(?R": "recursion",
    "(?(": "conditional",
    "(?|": "branch reset",
}


class _Parser:
    """A recursive descent over `source`; `at` is the next position to read."""

    def __init__(self, source: str, budget: Budget) -> None:
        self.source = source
        self.budget = budget
        self.at = 0
        self.depth = 0
        self.table = UnicodeTable.load()

    # -- errors

    def fail(self, message: str, position: int) -> NoReturn:
        raise PatternError(f"{message} at position {position} of the pattern")

    def refuse(self, construct: str, start: int, end: int) -> NoReturn:
        written = shortened(self.source[start:end])
        raise UnsupportedPatternError(
            f"{construct} {written!r} at position {start} of the pattern is not supported",
            construct=construct,
            position=start,
        )

    # -- reading

    def looking_at(self, text: str) -> bool:
        return self.source.startswith(text, self.at)

    def skip(self, text: str) -> bool:
        """Step over `text` if it comes next."""
        found = self.looking_at(text)
        self.at += len(text) * found
        return found

    def read_until(self, end: str, start: int) -> str:
        """Step over everything up to and including `end`; return the text before `end`."""
        stop = self.source.find(end, self.at)
        if stop < 0:
            self.fail(f"{self.source[start : self.at]!r} without {end!r}", start)
        text = self.source[self.at : stop]
        self.at = stop + len(end)
        return text

    # -- structure

    def parse(self) -> Node:
        if any("\ud800" <= char <= "\udfff" for char in self.source):
            raise PatternError("the pattern contains a surrogate code point")
        flags = _Flags()
        start = self.at
        while (letters := self.flag_letters()) and self.source[self.at + 2 + len(letters)] == ")":
            self.at += 3 + len(letters)
            flags = self.changed(flags, letters, start)
            start = self.at
        node = self.choice(flags)
        if self.at < len(self.source):
            self.fail("unbalanced ')'", self.at)
        return node

    def choice(self, flags: _Flags) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse(f"nesting deeper than {MAX_DEPTH}", self.at, self.at)
        options = [self.sequence(flags)]
        while self.skip("|"):
            options.append(self.sequence(flags))
        self.depth -= 1
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def sequence(self, flags: _Flags) -> Node:
        parts: list[Node] = []
        while self.at < len(self.source) and self.source[self.at] not in "|)":
            start = self.at
            node = self.atom(flags)
            if node is not None:
                parts.append(self.quantified(node, start))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def quantified(self, node: Node, start: int) -> Node:
        position = self.at
        bounds = self.quantifier()
        if bounds is None:
            return node
        low, high = bounds
        if high is not None and high < low:
            self.fail("repeat counts out of order", position)
        if max(low, high or 0) > MAX_REPEAT:
            self.refuse(f"repeat count above {MAX_REPEAT}", position, self.at)
        lazy = self.skip("?")
        possessive = not lazy and self.skip("+")
        if self.quantifier() is not None:
            self.fail("multiple repeat", position)
        self.budget.spend(self.at - start)  # can_be_empty may visit all of it
        if can_be_empty(node) and (high is None or high > 1):
            # Engines differ in when they leave a loop that no longer consumes text.
            self.refuse("repeat of something that can be empty", start, self.at)
        repeat = Repeat(node, low, high, lazy)
        return Atomic(repeat, self.source[start : self.at], start) if possessive else repeat

    def quantifier(self) -> tuple[int, int | None] | None:
        if self.skip("*"):
            return 0, None
        if self.skip("+"):
            return 1, None
        if self.skip("?"):
            return 0, 1
        if not self.looking_at("{"):
            return None
        match = _COUNTS.match(self.source, self.at)
        if match is None or not (match[1] or match[3]):
            return None
        self.at = match.end()
        low = int(match[1] or 0)  # `{,n}` counts from 0
        return low, (int(match[3]) if match[3] else None) if match[2] else low

    def atom(self, flags: _Flags) -> Node | None:
        """The next item, or None for a comment."""
        start = self.at
        char = self.source[start]
        if char == "(":
            return self.group(flags)
        if char == "[":
            return SetNode(self.bracket(flags))
        if char == "\\":
            if self.skip("\\z"):
                return Condition(CharSet.from_ranges([]), at_end=True)
            found = self.escape(flags)
            return SetNode(self.literal(found, flags) if isinstance(found, int) else found)
        if char in "*+?":
            self.fail("nothing to repeat", start)
        self.at += 1
        if char == "{":
            self.refuse("brace that does not begin a repeat", start, self.at)  # fuzzy in `regex`
        if char == "^":
            self.refuse("start anchor", start, self.at)
        if char == "$":
            return Condition(CharSet.from_ranges([]), at_end=True)
        if char == ".":
            newline = [] if flags.dot_all else [(10, 10)]
            return SetNode(~CharSet.from_ranges(newline))
        return SetNode(self.literal(ord(char), flags))

    def group(self, flags: _Flags) -> Node | None:
        start = self.at
        for opening, construct in _REFUSED_GROUPS.items():
            if self.looking_at(opening):
                self.refuse(construct, start, start + len(opening))
        if self.skip("(?#"):
            self.read_until(")", start)
            return None
        if self.skip("(?=") or self.skip("(?!"):
            negated = self.source[self.at - 1] == "!"
            return self.look_ahead(self.closed(self.choice(flags), start), negated, start)
        if self.skip("(?>"):
            node = self.closed(self.choice(flags), start)
            return Atomic(node, self.source[start : self.at], start)
        if self.skip("(?P<") or self.skip("(?<"):
            name = self.read_until(">", start)
            if not name.isidentifier():
                self.fail("bad group name", start)
        elif letters := self.flag_letters():
            self.at += 3 + len(letters)
            if self.source[self.at - 1] == ")":
                # In Rust, such a flag applies up to the end of its group; Python changed its rule.
                self.refuse("flag that is not at the start", start, self.at)
            flags = self.changed(flags, letters, start)
        elif not self.skip("(?:"):
            self.at += 1
            if self.looking_at("?") or self.looking_at("*"):
                self.fail("unknown kind of group", start)
        return self.closed(self.choice(flags), start)

    def closed(self, node: Node, start: int) -> Node:
        if not self.skip(")"):
            self.fail("'(' without ')'", start)
        return node

    def look_ahead(self, node: Node, negated: bool, start: int) -> Condition:
        """A one-character look-ahead as a condition on the next character."""
        sets, at_end = [], False
        for option in node.options if isinstance(node, Choice) else (node,):
            if not isinstance(option, (SetNode, Condition)):
                self.refuse("look-ahead beyond one character", start, self.at)
            sets.append(option.charset)
            at_end |= isinstance(option, Condition) and option.at_end
            self.budget.spend(len(option.charset.toggles))
        charset = CharSet.union(sets)
        return Condition(~charset if negated else charset, at_end != negated)

    # -- flags

    def flag_letters(self) -> str:
        """The flag letters if an opening such as `(?i:` or `(?i)` comes next, else ""."""
        match = _FLAG_LETTERS.match(self.source, self.at)
        return match[1] if match else ""

    def changed(self, flags: _Flags, letters: str, start: int) -> _Flags:
        on, minus, off = letters.partition("-")
        if minus and not off:
            self.fail("'-' without a flag", start)
        for letter in on + off:
            if letter not in "is":
                self.refuse(f"flag {letter!r}", start, self.at)
        return _Flags(
            ignore_case=("i" in on or flags.ignore_case) and "i" not in off,
            dot_all=("s" in on or flags.dot_all) and "s" not in off,
        )

    # -- characters

    def literal(self, point: int, flags: _Flags) -> CharSet:
        charset = CharSet.from_ranges([(point, point)])
        return self.folded(charset, flags)

    def folded(self, charset: CharSet, flags: _Flags) -> CharSet:
        self.budget.spend(5 + 2 * len(charset.toggles))
        if not flags.ignore_case:
            return charset
        self.budget.spend(FOLDING_STEPS + len(charset.toggles))
        return self.table.fold(charset)

    def escape(self, flags: _Flags, in_set: bool = False) -> int | CharSet:
        """Read a backslash escape: a code point or a set of code points."""
        start = self.at
        self.at += 2
        letter = self.source[start + 1 : self.at]
        if letter == "":
            self.fail("'\\' without a character", start)
        if letter.lower() in _SETS:
            charset = self.table.sets[_SETS[letter.lower()]]
            self.budget.spend(len(charset.toggles))
            return ~charset if letter.isupper() else charset
        if letter in "pP":
            return self.property(flags, start)
        if letter in _LITERAL_ESCAPES:
            return _LITERAL_ESCAPES[letter]
        if letter in "xuU":
            return self.hexadecimal(letter, start)
        if letter == "b" and in_set:
            return 8
        if letter in _REFUSED_ESCAPES:
            self.refuse(_REFUSED_ESCAPES[letter], start, self.at)
        if letter.isascii() and letter.isalnum():
            self.fail(f"unknown escape {self.source[start : self.at]!r}", start)
        return ord(letter)

    def hexadecimal(self, letter: str, start: int) -> int:
        if self.skip("{"):
            digits = self.read_until("}", start)
        else:
            size = {"x": 2, "u": 4, "U": 8}[letter]
            digits = self.source[self.at : self.at + size]
            self.at += size
            if len(digits) < size:
                digits = ""
        if not digits or not set(digits) <= set(string.hexdigits):
            self.fail(f"bad escape {shortened(self.source[start : self.at])!r}", start)
        point = int(digits, 16)
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            self.fail(f"{shortened(self.source[start : self.at])!r} is not a character", start)
        return point

    def property(self, flags: _Flags, start: int) -> CharSet:
        if self.skip("{"):
            name = self.read_until("}", start)
        else:
            name = self.source[self.at : self.at + 1]
            self.at += 1
        negated = (self.source[start + 1] == "P") != name.startswith("^")
        charset = self.table.find(name.removeprefix("^"))
        if charset is None:
            self.refuse("property", start, self.at)
        charset = self.folded(charset, flags)
        return ~charset if negated else charset

    def bracket(self, flags: _Flags) -> CharSet:
        start = self.at
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse(f"nesting deeper than {MAX_DEPTH}", self.at, self.at)
        self.at += 1
        negated = self.skip("^")
        sets: list[CharSet] = []
        ranges: list[tuple[int, int]] = []
        first = True
        common: CharSet | None = None  # of the operands before each `&&`
        while first or not self.looking_at("]"):
            position = self.at
            if not first and self.skip("&&"):
                common = self.in_common(common, ranges, sets, flags)
                sets, ranges = [], []
                first = True
                continue
            low = self.set_item(flags, start)
            first = False
            next_two = self.source[self.at : self.at + 2]
            if next_two[:1] != "-" or next_two in ("-", "-]"):
                if isinstance(low, int):
                    ranges.append((low, low))
                else:
                    sets.append(low)
                continue
            if next_two == "--":
                self.refuse("set operation", self.at, self.at + 2)
            self.at += 1
            high = self.set_item(flags, start)
            if not isinstance(low, int) or not isinstance(high, int) or high < low:
                self.fail(f"bad range {self.source[position : self.at]!r}", position)
            ranges.append((low, high))
        self.at += 1
        self.depth -= 1
        charset = self.in_common(common, ranges, sets, flags)
        return ~charset if negated else charset

    def in_common(
        self,
        common: CharSet | None,
        ranges: list[tuple[int, int]],
        sets: list[CharSet],
        flags: _Flags,
    ) -> CharSet:
        """The union of `ranges` and `sets`, folded, and intersected with `common` if not None."""
        self.budget.spend(len(ranges) + sum(len(charset.toggles) for charset in sets))
        charset = self.folded(CharSet.union([CharSet.from_ranges(ranges), *sets]), flags)
        return charset if common is None else common & charset

    def set_item(self, flags: _Flags, start: int) -> int | CharSet:
        if self.source.startswith(("&&", "--", "~~"), self.at):
            self.refuse("set operation", self.at, self.at + 2)
        if self.looking_at("["):
            if self.source[self.at + 1 : self.at + 2] in (":", "=", "."):
                self.refuse("POSIX class", self.at, self.at + 2)
            return self.bracket(flags)
        if self.at >= len(self.source):
            self.fail("'[' without ']'", start)
        if self.looking_at("\\"):
            return self.escape(flags, in_set=True)
        self.at += 1
        return ord(self.source[self.at - 1])
