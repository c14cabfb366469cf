"""Steps that look at the ends of a segment: text is put before it, or white space removed.

`Prepend` and `Strip` are normalizers of `tokenizers`. `MetaspaceText` is what its pre-tokenizer
Metaspace does to a text before it splits it, and, with a space for the mark, what ByteLevel with
add_prefix_space does. `JoinedSpaces` is SentencePiece's.
"""

from __future__ import annotations

import re

from .growth import Growth, n_bytes
from .step import BEGIN, END, FIRST, Interest, Step

__all__ = ["BLANKS", "PREFIX_SPACE", "JoinedSpaces", "MetaspaceText", "Prepend", "Strip"]

# Unicode's White_Space. `str.strip()` would take U+001C to U+001F, too.
BLANKS = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
SCHEMES = ("always", "first", "never")
_MARK = "\u2581"
_RUN = re.compile("  +")


class MetaspaceText(Step):
    """Each space becomes `replacement`, which is also put before a text that does not begin with
    it: always, never, or only before the stream's first segment.
    """

    __slots__ = ("growth", "replacement", "scheme", "spec")

    def __init__(self, replacement: str, prepend_scheme: str) -> None:
        if len(replacement) != 1:
            raise ValueError(f"replacement must be one character, not {replacement!r}")
        if prepend_scheme not in SCHEMES:
            raise ValueError(f"prepend_scheme must be one of {SCHEMES}, not {prepend_scheme!r}")
        self.replacement, self.scheme = replacement, prepend_scheme
        self.spec = ("MetaspaceText", replacement, prepend_scheme)
        # A space grows, or else what is put before a first byte that is none.
        self.growth = Growth(1.0 + n_bytes(replacement))

    def interest(self) -> Interest:
        puts = self.scheme != "never"
        spaces = [] if self.replacement == " " else [(32, 32)]
        return Interest(spaces, at_begin=puts)

    def apply(self, text: str, where: int) -> str:
        text = text.replace(" ", self.replacement)
        is_at = {"always": BEGIN, "first": FIRST, "never": 0}[self.scheme]
        if where & is_at and text and not text.startswith(self.replacement):
            return self.replacement + text
        return text


PREFIX_SPACE = MetaspaceText(" ", "always")
"""Puts a space before a text that does not begin with one."""


class Prepend(Step):
    """`prefix` before a text that is not empty; only_first: if nothing of a stream is before it."""

    __slots__ = ("growth", "only_first", "prefix", "spec")

    def __init__(self, prefix: str, only_first: bool = False) -> None:
        self.prefix, self.only_first = prefix, only_first
        self.spec = ("Prepend", prefix, *([True] if only_first else []))
        self.growth = Growth(put=prefix)

    def interest(self) -> Interest:
        return Interest(at_begin=bool(self.prefix))

    def apply(self, text: str, where: int) -> str:
        is_put = text and where & (FIRST if self.only_first else BEGIN)
        return self.prefix + text if is_put else text


class Strip(Step):
    """Blanks (Unicode's White_Space) at the two ends are taken off."""

    __slots__ = ("left", "right", "spec")
    growth = Growth()

    def __init__(self, left: bool, right: bool) -> None:
        self.left, self.right = left, right
        self.spec = ("Strip", left, right)

    def interest(self) -> Interest:
        if not self.left and not self.right:
            return Interest()
        blanks = [(ord(blank), ord(blank)) for blank in BLANKS]
        return Interest(holds=blanks, joins=blanks, at_begin=self.left, at_end=self.right)

    def apply(self, text: str, where: int) -> str:
        if self.left and where & BEGIN:
            text = text.lstrip(BLANKS)
        return text.rstrip(BLANKS) if self.right and where & END else text


class JoinedSpaces(Step):
    """Extra spaces go, as in SentencePiece with `remove_extra_whitespaces`.

    Spaces at the beginning go, and each run of spaces becomes one. At the end, spaces and
    U+2581 go. Then each U+2581 becomes a space, which is not part of a run.
    """

    __slots__ = ()
    spec = ("JoinedSpaces",)
    growth = Growth(None, (_MARK, " "))

    def interest(self) -> Interest:
        mark, space = (ord(_MARK), ord(_MARK)), (32, 32)
        return Interest([mark], [mark, space], [mark, space], at_begin=True, at_end=True)

    def apply(self, text: str, where: int) -> str:
        if where & BEGIN:
            text = text.lstrip(" ")
        if where & END:
            text = text.rstrip(" " + _MARK)
        return _RUN.sub(" ", text).replace(_MARK, " ")
