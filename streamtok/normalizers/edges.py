"""Steps at the ends of a segment, which prepend text or remove white space.

`Prepend` and `Strip` are normalizers of `tokenizers`. `MetaspaceText` does what the pre-tokenizer
Metaspace does to a text before splitting it or, if the replacement is a space, what ByteLevel with
add_prefix_space does. `JoinedSpaces` is SentencePiece's.
"""

from __future__ import annotations

import re

from .growth import Growth, n_bytes
from .step import BEGIN, END, FIRST, Interest, Step

__all__ = ["PREFIX_SPACE", "WHITE_SPACE", "JoinedSpaces", "MetaspaceText", "Prepend", "Strip"]

# Unicode's White_Space. `str.strip()` would also remove U+001C to U+001F.
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
SCHEMES = ("always", "first", "never")
_MARK = "\u2581"
_RUN = re.compile("  +")


class MetaspaceText(Step):
    """Each space becomes `replacement`, which is also prepended to a text that does not begin with
    it. prepend_scheme: "always", "never", or "first" (only in the first segment of a stream).
    """

    __slots__ = ("growth", "replacement", "scheme", "spec")

    def __init__(self, replacement: str, prepend_scheme: str) -> None:
        if len(replacement) != 1:
            raise ValueError(f"replacement must be one character, not {replacement!r}")
        if prepend_scheme not in SCHEMES:
            raise ValueError(f"prepend_scheme must be one of {SCHEMES}, not {prepend_scheme!r}")
        self.replacement, self.scheme = replacement, prepend_scheme
        self.spec = ("MetaspaceText", replacement, prepend_scheme)
        # In the worst case, `replacement` is prepended to a first byte that is not a space.
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
"""Prepends a space to a text that does not begin with one."""


class Prepend(Step):
    """Prepends `prefix` to a non-empty text; only_first: only at the start of a stream."""

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
    """Removes white space (Unicode's White_Space) at the start, the end or both."""

    __slots__ = ("left", "right", "spec")
    growth = Growth()

    def __init__(self, left: bool, right: bool) -> None:
        self.left, self.right = left, right
        self.spec = ("Strip", left, right)

    def interest(self) -> Interest:
        if not self.left and not self.right:
            return Interest()
        spaces = [(ord(char), ord(char)) for char in WHITE_SPACE]
        return Interest(holds=spaces, joins=spaces, at_begin=self.left, at_end=self.right)

    def apply(self, text: str, where: int) -> str:
        if self.left and where & BEGIN:
            text = text.lstrip(WHITE_SPACE)
        return text.rstrip(WHITE_SPACE) if self.right and where & END else text


class JoinedSpaces(Step):
    """Removes extra spaces, like SentencePiece with `remove_extra_whitespaces`.

    Spaces at the start are removed, as are spaces and U+2581 at the end. Each run of spaces becomes
    one space. After that, each U+2581 becomes a space.
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
