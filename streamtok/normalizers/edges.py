"""Steps that look at the ends of a stretch: text is put before it, or white space removed.

`Prepend` and `Strip` are normalizers of `tokenizers`. `PrefixSpace` and `MetaspaceText` are what
its pre-tokenizers ByteLevel (with add_prefix_space) and Metaspace do to a text before they split
it.
"""

from __future__ import annotations

from typing import Any

from .growth import Growth, n_bytes
from .rope import Rope, extend_rope, rope_from_json
from .step import Blocks, Interest

__all__ = ["BLANKS", "MetaspaceText", "PrefixSpace", "Prepend", "Strip"]

# Unicode's White_Space. `str.strip()` would take U+001C to U+001F, too.
BLANKS = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
SCHEMES = ("always", "first", "never")


class MetaspaceText:
    """Each space becomes `replacement`, which is also put before a text that does not begin with
    it: always, never, or only before the stream's first stretch.
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

    def _puts(self, is_first: bool) -> bool:
        """Whether a stretch may get something before it."""
        return self.scheme == "always" or (self.scheme == "first" and is_first)

    def interest(self) -> Interest:
        puts = self.scheme != "never"
        spaces = [] if self.replacement == " " else [(32, 32)]
        return Interest(spaces, at_begin=puts, looks_at_begin=puts)

    def begin(self, is_first: bool) -> bool:
        """See `Step`. The state is whether something may still be put before the text."""
        return self._puts(is_first)

    def feed(self, state: bool, text: str, final: bool) -> tuple[bool, Blocks]:
        if not text:
            return state, []
        block = (text.replace(" ", self.replacement), text)
        if state and not block[0].startswith(self.replacement):
            return False, [(self.replacement, ""), block]
        return False, [block]

    def held(self, state: bool) -> str:
        return ""

    def check_state(self, value: Any) -> bool:
        if type(value) is not bool or (value and self.scheme == "never"):
            raise ValueError("expected whether the stretch has not begun yet")
        return value


class PrefixSpace(MetaspaceText):
    """A space before a text that does not begin with one."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(" ", "always")
        self.spec = ("PrefixSpace",)  # type: ignore[assignment]


class Prepend:
    """`prefix` before a text that is not empty; only_first: if nothing of a stream is before it."""

    __slots__ = ("growth", "only_first", "prefix", "spec")

    def __init__(self, prefix: str, only_first: bool = False) -> None:
        self.prefix, self.only_first = prefix, only_first
        self.spec = ("Prepend", prefix, *([True] if only_first else []))
        self.growth = Growth(put=prefix)

    def interest(self) -> Interest:
        return Interest(at_begin=bool(self.prefix))

    def begin(self, is_first: bool) -> bool:
        """See `Step`. The state is whether something may still be put before the text."""
        return is_first or not self.only_first

    def feed(self, state: bool, text: str, final: bool) -> tuple[bool, Blocks]:
        if not text:
            return state, []
        if state and self.prefix:
            return False, [(self.prefix, ""), (text, text)]
        return False, [(text, text)]

    def held(self, state: bool) -> str:
        return ""

    def check_state(self, value: Any) -> bool:
        if type(value) is not bool:
            raise ValueError("expected whether something may be put before the text")
        return value


class Strip:
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
        return Interest(
            holds=blanks, joins=blanks, at_begin=self.left, looks_at_begin=self.left,
            drops_at_begin=self.left, at_end=self.right,
        )  # fmt: skip

    def begin(self, is_first: bool) -> tuple[bool, Rope]:
        """See `Step`. The state is whether blanks at the left are still taken off, and the blanks
        that may be at the right end.
        """
        return self.left, ()

    def feed(
        self, state: tuple[bool, Rope], text: str, final: bool
    ) -> tuple[tuple[bool, Rope], Blocks]:
        at_left, rope = state
        blocks: Blocks = []
        if at_left and text:
            rest = text.lstrip(BLANKS)
            if len(rest) < len(text):
                blocks.append(("", text[: len(text) - len(rest)]))
            at_left, text = not rest, rest
        if self.right:
            kept = text.rstrip(BLANKS)
            if kept:
                out = "".join((*rope, kept))
                blocks.append((out, out))
                rope, text = (), text[len(kept) :]
            rope = extend_rope(rope, text)
            if final and rope:
                blocks.append(("", "".join(rope)))
                rope = ()
        elif text:
            blocks.append((text, text))
        return (at_left, rope), blocks

    def held(self, state: tuple[bool, Rope]) -> str:
        return "".join(state[1])

    def check_state(self, value: Any) -> tuple[bool, Rope]:
        if not isinstance(value, (list, tuple)) or len(value) != 2 or type(value[0]) is not bool:
            raise ValueError("expected whether the text has not begun, and white space")
        at_left, rope = value[0], rope_from_json(value[1])
        blanks = "".join(rope)
        if (at_left and not self.left) or (blanks and (at_left or not self.right)):
            raise ValueError("this step holds no white space at that end")
        if blanks.strip(BLANKS):
            raise ValueError("expected only white space to wait")
        return at_left, rope
