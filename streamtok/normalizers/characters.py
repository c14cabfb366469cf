"""Steps that change each character by itself: nothing ever waits.

Which characters they change is Unicode's of `tokenizers`' crates, not of the Python that runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from .char_sets import lower_case_pairs, one_of, ranges_of
from .edges import BLANKS
from .growth import Growth
from .step import Blocks, Interest, Ranges

__all__ = [
    "BertAccents",
    "BertChinese",
    "BertClean",
    "CharacterStep",
    "Lowercase",
    "Nmt",
    "StripAccents",
]

NMT_DROPPED = [(1, 8), (0xB, 0xB), (0xE, 0x1F), (0x7F, 0x7F), (0x8F, 0x8F), (0x9F, 0x9F)]
NMT_BLANKS = "\t\n\f\r\u1680\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd"
CHINESE = [
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)),
    *((0x2A700, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F)),
]


class CharacterStep:
    """A step without a state.

    Derived classes say which characters are left out or become several (`instead`), and which
    become one other (`one_for_one`).
    """

    __slots__ = ("_changes", "_dropped", "_leaves_ascii", "spec")
    instead = ""  # for a character of `_dropped`; "{}" is the character
    growth = Growth(1.0)

    def __init__(self, dropped: Ranges, mapped: Ranges) -> None:
        self.spec: tuple[Any, ...] = (type(self).__name__,)
        self._changes = [*dropped, *mapped]
        self._dropped = _pattern(tuple(dropped))
        self._leaves_ascii = all(low > 0x7F for low, _ in (*dropped, *mapped))

    def one_for_one(self, text: str) -> str:
        """`text`, in which nothing is left out or becomes several, with all else changed."""
        return text

    def interest(self) -> Interest:
        return Interest(self._changes)

    def normalize(self, text: str, is_first: bool) -> str:
        if text.isascii() and self._leaves_ascii:
            return text
        if self.instead:
            return self._dropped.sub(lambda m: self.instead.format(m[0]), self.one_for_one(text))
        return self._dropped.sub("", self.one_for_one(text))

    def begin(self, is_first: bool) -> None:
        """See `Step`."""

    def feed(self, state: None, text: str, final: bool) -> tuple[None, Blocks]:
        if text.isascii() and self._leaves_ascii:
            return None, [(text, text)] if text else []
        blocks: Blocks = []
        done = 0
        for found in self._dropped.finditer(text):
            start, end = found.span()
            if start > done:
                part = text[done:start]
                blocks.append((self.one_for_one(part), part))
            if self.instead:
                blocks.append((self.instead.format(found[0]), found[0]))
            else:
                blocks.append(("", found[0]))
            done = end
        part = text[done:]
        if part:
            blocks.append((self.one_for_one(part), part))
        return None, blocks

    def held(self, state: None) -> str:
        return ""

    def check_state(self, value: Any) -> None:
        if value is not None:
            raise ValueError("expected null: this step has no state")


class Lowercase(CharacterStep):
    """Each character's small letter, by Unicode 17.0 and without a look at its neighbours.

    So capital sigma always becomes sigma, which `str.lower` makes another one at the end of a word.
    """

    __slots__ = ()
    instead = "i\u0307"  # for capital I with a dot
    growth = Growth(1.5)  # capital A with a stroke has two bytes, its small letter three

    def __init__(self) -> None:
        super().__init__([(0x130, 0x130)], [])

    def one_for_one(self, text: str) -> str:
        if text.isascii():
            return text.lower()
        newer, table = _newer_letters()
        text = text.replace("Σ", "σ")  # the only letter whose small one depends on others
        if newer.search(text):
            text = text.translate(table)
        return text.lower()

    def interest(self) -> Interest:
        return Interest(_capitals())

    def normalize(self, text: str, is_first: bool) -> str:
        return self.one_for_one(text)  # str.lower makes capital I with a dot two characters, too

    def feed(self, state: None, text: str, final: bool) -> tuple[None, Blocks]:
        if "\u0130" not in text:
            return None, [(self.one_for_one(text), text)] if text else []
        return super().feed(state, text, final)


class StripAccents(CharacterStep):
    """What Unicode 9.0 calls a mark (Mn, Mc, Me) is left out."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(ranges_of("accents"), [])


class BertAccents(CharacterStep):
    """What Unicode 8.0 calls a nonspacing mark (Mn) is left out. BertNormalizer does NFD before."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(ranges_of("bert_accents"), [])


class BertChinese(CharacterStep):
    """A space on both sides of each Chinese character, as in BertNormalizer."""

    __slots__ = ()
    instead = " {} "
    growth = Growth(5 / 3)

    def __init__(self) -> None:
        super().__init__(CHINESE, [])


class _Blanking(CharacterStep):
    """Some characters are left out, and some become a space."""

    __slots__ = ("_blanks", "_table")

    def __init__(self, dropped: Ranges, blanks: str) -> None:
        super().__init__(dropped, _of(blanks))
        self._blanks = re.compile(one_of(_of(blanks)))

    def one_for_one(self, text: str) -> str:
        return self._blanks.sub(" ", text)


class Nmt(_Blanking):
    """Some control characters are left out, and white space becomes one space."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(NMT_DROPPED, NMT_BLANKS)


class BertClean(_Blanking):
    """What Unicode 8.0 calls a control, format or private character (Cc, Cf, Co) is left out, and
    so is U+FFFD. All white space becomes a space.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(ranges_of("bert_controls"), BLANKS.translate(dict.fromkeys(b" \v\f\x85")))


@lru_cache(maxsize=16)
def _pattern(dropped: tuple[tuple[int, int], ...]) -> re.Pattern[str]:
    return re.compile(one_of(dropped))


@lru_cache(maxsize=1)
def _newer_letters() -> tuple[re.Pattern[str], dict[int, str]]:
    """Capital letters that the oldest Python does not know: their pattern, their small letters."""
    pairs = lower_case_pairs()
    return re.compile(one_of(_of(pairs))), str.maketrans(pairs)


@lru_cache(maxsize=1)
def _capitals() -> Ranges:
    """The characters that `Lowercase` changes; all of them are in the first two planes."""
    text = "".join([chr(x) for x in range(0x20000) if x != 0x130 and not 0xD800 <= x < 0xE000])
    pairs = zip(text, Lowercase().one_for_one(text), strict=True)
    return [(0x130, 0x130), *((ord(char), ord(char)) for char, lower in pairs if char != lower)]


def _of(chars: Iterable[str]) -> Ranges:
    return [(ord(char), ord(char)) for char in chars]
