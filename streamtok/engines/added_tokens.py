"""Added and special tokens in a text, with Hugging Face's flags, in streams.

Of the tokens that begin leftmost, the longest is taken, and the search goes on after it. One with
`single_word` is passed over where it touches a word; its text stays text. `lstrip` and `rstrip` let
a token take the spaces before and after it. The search still goes on after the token itself: so
spaces that a token took may be tokens once more, and then what follows them is text again. (All as
in the crate `tokenizers` 0.23, `added_vocabulary.rs`, Apache-2.0, found by experiment, too.)

What waits at the end of a chunk: what may begin a token, a token with `single_word` at the very
end, and, if there is a token with `lstrip`, the white space there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..normalizers.edges import BLANKS
from .rules import TokenFlags

if TYPE_CHECKING:
    from .._core.encode import SpecialMatcher

__all__ = ["GOES_ON", "NOTHING_FOUND", "Event", "Finder", "Finding", "can_overlap"]

_MAX_COMPARED = 256  # characters of a token: see `can_overlap`
_MAX_COMPARISONS = 1 << 30  # of characters

GOES_ON = -1
# (text, taken, id): text of a stretch, and what the token that ends it takes. id: None if it ends
# without one, GOES_ON if it does not end.
Event: TypeAlias = "tuple[str, str, int | None]"


class Finding(NamedTuple):
    """The state of the search in a stream."""

    held: str = ""  # not emitted yet
    searched: int = 0  # characters of it that begin no token; they are white space
    after_word: bool = False  # the character before it belongs to a word
    takes_blanks: bool = False  # for a token that was emitted: the white space it begins with

    @classmethod
    def from_json(cls, value: Any) -> Finding:
        """One that was saved as JSON. Raises ValueError if it is none."""
        held, searched, after_word, takes_blanks = value
        self = cls(held, searched, after_word, takes_blanks)
        if (
            [type(part) for part in self] != [str, int, bool, bool]
            or not 0 <= self.searched <= len(self.held)
            or self.held[: self.searched].strip(BLANKS)
        ):
            raise ValueError("expected a text that is searched, and how far")
        return self


NOTHING_FOUND = Finding()


class Finder:
    """Finds tokens. Immutable. `is_plain`: none has a flag that looks at its neighbours."""

    def __init__(self, matcher: SpecialMatcher, tokens: Sequence[tuple[int, TokenFlags]]) -> None:
        """tokens: (id, flags) of each of `matcher.specials`."""
        self.matcher = matcher
        self.tokens = tokens
        self.is_empty = matcher.is_empty
        self.is_plain = not any(any(flags[1:]) for _, flags in tokens)
        self._wants_blanks = any(flags.lstrip for _, flags in tokens)
        self._asks_for_words = any(flags.single_word for _, flags in tokens)

    def feed(
        self, state: Finding, text: str, final: bool
    ) -> tuple[Finding, list[Event], tuple[str, str] | None]:
        """The next state, what has become certain, and (text, rest) from a refused token on.

        final: the text ends. Nothing comes out with a refused token.
        """
        data = state.held + text if state.held else text
        end, found = self.matcher.finds(data, state.searched, final)
        start = 0  # of what is not emitted yet
        takes_blanks = state.takes_blanks
        events: list[Event] = []
        for at, stop, which in found:
            if which < 0:
                return state, [], (data[at:stop], data[at:])
            id, flags = self.tokens[which]
            if flags.single_word:
                if stop == len(data) and not final:
                    end = at
                    break
                before = is_word(data[at - 1]) if at else state.after_word
                if before or (stop < len(data) and is_word(data[stop])):
                    continue
            if takes_blanks:
                start, takes_blanks = _take_blanks(events, data, start, at)
            if takes_blanks:
                # They reach up to here: a token may be among them, but not one that has them all.
                is_blank = flags.lstrip and not data[at:stop].strip(BLANKS)
                events.append(("", data[start:stop], None if is_blank else id))
            else:
                begin = at
                if flags.lstrip:
                    begin = start + len(data[start:at].rstrip(BLANKS))
                events.append((data[start:begin], data[begin:stop], id))
            start, takes_blanks = stop, flags.rstrip
        if takes_blanks:
            start, takes_blanks = _take_blanks(events, data, start, end)
        sure = end
        if self._wants_blanks and not final and not takes_blanks:
            sure = start + len(data[start:end].rstrip(BLANKS))
        if sure > start:
            events.append((data[start:sure], "", GOES_ON))
        if final:
            return NOTHING_FOUND, events, None
        after_word = state.after_word
        if self._asks_for_words and sure:
            after_word = is_word(data[sure - 1])
        return Finding(data[sure:], end - sure, after_word, takes_blanks), events, None


def _take_blanks(events: list[Event], data: str, start: int, end: int) -> tuple[int, bool]:
    """Give a token that was emitted the white space that data[start:end] begins with.

    Returns where they end, and whether they may go on there.
    """
    rest = data[start:end]
    size = len(rest) - len(rest.lstrip(BLANKS))
    if size < len(rest):
        if size:
            events.append(("", rest[:size], None))
        return start + size, False
    if size:
        events.append(("", rest, None))
    return end, True


def is_word(char: str) -> bool:
    """Whether Rust's regular expressions match it with `\\w`."""
    if char.isascii():
        return char.isalnum() or char == "_"
    return _is_other_word(char)


@lru_cache(maxsize=1024)
def _is_other_word(char: str) -> bool:
    import numpy as np

    from ..patterns.unicode_classes import UnicodeTable

    return bool(UnicodeTable.load().sets["word"].contains(np.array([ord(char)]))[0])


def can_overlap(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether a text of one group may begin or end inside one of the other, or be in it.

    True also where finding out would cost too much.
    """
    if not first or not second:
        return False
    for group, other in ((first, second), (second, first)):
        # The comparison takes more than linear time and memory, so it needs bounds. Real files are
        # far below them.
        joined = "\0".join(other)
        if max(map(len, group)) > _MAX_COMPARED or len(group) * len(joined) > _MAX_COMPARISONS:
            return True
        beginnings = {text[:i] for text in other for i in range(1, len(text) + 1)}
        for text in group:
            if text in joined or any(text[i:] in beginnings for i in range(len(text))):
                return True
    return False
