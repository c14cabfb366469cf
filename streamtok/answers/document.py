"""An editable text and its ids: an edit encodes only what it changes.

The text is kept in blocks between clean cuts; each block is encoded independently and keeps its
ids. An edit replaces the blocks that it touches, and a neighbour as well if the cut between them is
no longer clean. A prompt is cut only inside spans of text. If an encoding has no clean cuts
(because it changes text before cutting it, or its pattern has no tables), there is one block.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.encode import ARRAY, COUNT
from ..errors import DisallowedSpecialError
from ..prompts import Prompt, is_inside_text, prompt_of
from .prefixes import feed

if TYPE_CHECKING:
    from .._types import IdArray
    from .text_settings import Settings

__all__ = ["Change", "Document"]

_NEAR = 4  # for this many last blocks, totals are computed from the end
_BLOCK = 1024  # approximate characters of a block, which one typed letter encodes again
_CHARACTERS = operator.attrgetter("text")  # of totals


class Change(NamedTuple):
    """What an edit did to the ids: `ids[first : first + removed]` became `added`."""

    first: int
    removed: int
    added: list[int]


class _Block(NamedTuple):
    text: str | Prompt
    ids: IdArray
    n_bytes: int


class _Totals(NamedTuple):
    """The totals before a block: characters, ids, bytes of UTF-8."""

    text: int = 0
    ids: int = 0
    n_bytes: int = 0

    def moved(self, blocks: Iterable[_Block], sign: int) -> _Totals:
        """The totals with these blocks added (sign 1) or subtracted (sign -1)."""
        at = self
        for text, ids, size in blocks:
            at = _Totals(
                at.text + sign * len(text), at.ids + sign * len(ids), at.n_bytes + sign * size
            )
        return at


class Document:
    """A text and its ids. `ids` always equals `Encoding.encode(text)` with the same settings.

    Positions are characters of `text`. An edit that raises changes nothing. One thread at a time.

    >>> doc = enc.document("hello world")
    >>> doc.replace(6, 11, "there")
    Change(first=1, removed=1, added=[612])
    >>> doc.text, doc.ids == enc.encode("hello there")
    ('hello there', True)
    """

    def __init__(self, settings: Settings, text: str | Prompt) -> None:
        """Raises the errors of `Encoding.encode`."""
        settings, text = settings.of(text)
        self._settings = settings
        self._template = settings.template
        self._cuts = settings.definition.texts.cuts
        self._blocks: list[_Block] = []
        self._totals = [_Totals()]  # before each block; computed on demand
        self._whole: _Totals | None = _Totals()  # after the last block; None if not computed
        self.append(text)

    @property
    def text(self) -> str | Prompt:
        """str: the whole text; a Prompt if the document began with one. O(len(text))."""
        text: str | Prompt = self._text_of(self._blocks)
        return text

    @property
    def ids(self) -> list[int]:
        """list[int]: all ids. O(len(ids))."""
        ids: list[int] = self.to_numpy().tolist()
        return ids

    def to_numpy(self) -> IdArray:
        """numpy.uint32 [n]: all ids, as one new array."""
        ids: IdArray = self._template.around(_joined([block.ids for block in self._blocks]))
        return ids

    def __len__(self) -> int:
        """int: the number of ids."""
        return self._end().ids + self._template.size

    @property
    def n_characters(self) -> int:
        """int: the length of the text in characters."""
        return self._end().text

    def append(self, text: str | Prompt) -> Change:
        """Change: append `text`, as `replace` at the end would. Costs O(len(text))."""
        size = self.n_characters
        return self.replace(size, size, text)

    def replace(self, start: int, stop: int, text: str | Prompt) -> Change:
        """Change: replace the characters start:stop with `text`.

        Encodes the edit and about a kilobyte around it, or more if a pre-token, a special token or,
        in a document that began with a Prompt, a span of control extends further. Raises IndexError
        for a position outside the text, TypeError if `text` is not a str (or, in such a document, a
        Control or a Prompt), and ValueError for a disallowed special token that the edit would
        create.
        """
        prompt = prompt_of(text)
        if not isinstance(text, str) and (prompt is None or self._settings.prompts is None):
            more = "" if prompt is None else ": begin it with a Prompt, such as document(Prompt())"
            raise TypeError(f"a document takes str, not {type(text).__name__}{more}")
        new: str | Prompt = str.__str__(text) if isinstance(text, str) else text
        if self._settings.prompts is not None:
            new = Prompt(new) if new or prompt is not None else Prompt()
        size = self.n_characters
        if not 0 <= start <= stop <= size:
            raise IndexError(f"the text has {size} characters: there is no {start}:{stop} in it")
        if start == stop and (not text if prompt is None else not prompt.spans):
            return Change(len(self._template.before) + self._end().ids, 0, [])
        first, last = self._around(start, stop)
        blocks = self._blocks
        before = self._before(first)
        old: Any = self._text_of(blocks[first:last])
        new = old[: start - before.text] + new + old[stop - before.text :]
        while True:
            left, right = self._context(first, last)
            if first > 0 and not self._is_clean(left + new + right, len(left)):
                first -= 1
                new = blocks[first].text + new
            elif last < len(blocks) and not self._is_clean(left + new + right, len(left + new)):
                new += blocks[last].text
                last += 1
            else:
                break
        made = self._encoded(left, new, right, self._before(first).n_bytes)
        removed = _joined([block.ids for block in blocks[first:last]])
        added = _joined([block.ids for block in made])
        change = _change(len(self._template.before) + self._before(first).ids, removed, added)
        total = self._end().moved(blocks[first:last], -1).moved(made, 1)
        # The cached totals are cleared first, so that the edit is one assignment.
        self._whole = None
        del self._totals[first + 1 :]
        blocks[first:last] = made
        self._whole = total
        return change

    @property
    def stable(self) -> int:
        """int: the number of leading ids that no appended text can change.

        A prompt cache may keep these while a chat grows. Encodes only the last block, or
        as many blocks as the longest special token can span.
        """
        number = len(self._blocks)
        reach = max(self._settings.matcher.reach, 1)
        end = self._before(number)
        while number > 0 and (
            end.n_bytes - self._before(number).n_bytes < reach or number == len(self._blocks)
        ):
            number -= 1
        text = self._text_of(self._blocks[number:])
        certain = feed(self._settings.tail(self._template), text, False, COUNT)
        return self._before(number).ids + certain  # `certain` includes ids of the template

    def __repr__(self) -> str:
        return f"<Document: {self.n_characters} characters, {len(self)} ids>"

    # Blocks

    def _text_of(self, blocks: Iterable[_Block]) -> Any:
        """The text of blocks, a str or a Prompt."""
        nothing: Any = "" if self._settings.prompts is None else Prompt()
        return nothing.join([block.text for block in blocks])

    def _end(self) -> _Totals:
        """The totals of the whole text."""
        if self._whole is None:
            known = len(self._totals) - 1
            self._whole = self._totals[-1].moved(self._blocks[known:], 1)
        return self._whole

    def _before(self, number: int) -> _Totals:
        """The totals before block `number`, computed from the end if that is near, as when
        appending.
        """
        totals = self._totals
        if number >= len(totals) and number >= len(self._blocks) - _NEAR:
            return self._end().moved(self._blocks[number:], -1)
        while len(totals) <= number:
            totals.append(totals[-1].moved(self._blocks[len(totals) - 1 : len(totals)], 1))
        return totals[number]

    def _around(self, start: int, stop: int) -> tuple[int, int]:
        """The range (first, last) of the blocks that hold the characters start:stop.

        It includes a block that ends at `start`, since inserted text continues that block.
        """
        n = len(self._blocks)
        if start == stop == self._end().text:
            return max(n - 1, 0), n
        totals = self._totals
        while totals[-1].text < max(stop, 1):
            totals.append(totals[-1].moved(self._blocks[len(totals) - 1 : len(totals)], 1))
        first = bisect.bisect_left(totals, start, 1, key=_CHARACTERS) - 1
        return first, max(bisect.bisect_left(totals, stop, 1, key=_CHARACTERS), first + 1)

    def _context(self, first: int, last: int) -> tuple[Any, Any]:
        """The text before and after these blocks that a cut can depend on."""
        reach = max(self._settings.matcher.reach, 1)
        left = right = self._text_of(())
        while first > 0 and len(left) < reach:
            first -= 1
            left = self._blocks[first].text + left
        while last < len(self._blocks) and len(right) < reach:
            right += self._blocks[last].text
            last += 1
        return left[-reach:], right[:reach]

    def _is_clean(self, text: Any, at: int, flat: str | None = None) -> bool:
        """Whether the text has a clean cut at this offset. flat: str(text), if known."""
        if self._cuts is None:
            return False
        if at in (0, len(text)):
            return True
        if isinstance(text, Prompt):
            if not is_inside_text(text, at):
                return False
            text = str(text) if flat is None else flat
        if "\ud800" <= text[at - 1] <= "\udbff" and "\udc00" <= text[at] <= "\udfff":
            return False  # a surrogate pair is one character
        return self._cuts.find(text, self._settings.matcher, at, at + 1) == at

    def _encoded(self, left: Any, text: Any, right: Any, offset: int) -> list[_Block]:
        """The blocks of `text`, between `left` and `right`. offset: bytes before it, for errors."""
        whole = left + text + right
        flat = str(whole) if isinstance(whole, Prompt) else whole
        at, end = len(left), len(left) + len(text)
        made: list[_Block] = []
        while at < end:
            cut = end
            candidate = at + _BLOCK
            while self._cuts is not None and candidate < end:
                candidate = self._cuts.find(flat, self._settings.matcher, candidate, end)
                if candidate < 0:
                    break
                if self._is_clean(whole, candidate, flat):
                    cut = candidate
                    break
                candidate += 1
            made.append(self._block(whole[at:cut], offset))
            offset += made[-1].n_bytes
            at = cut
        if not made and isinstance(text, Prompt) and text.spans:  # a border without characters
            made.append(self._block(text, offset))
        return made

    def _block(self, text: Any, offset: int) -> _Block:
        try:
            ids = self._settings.encode(text, ARRAY)
        except DisallowedSpecialError as refused:
            raise DisallowedSpecialError(offset + refused.offset, refused.text) from None
        return _Block(text, ids, len(str(text).encode("utf-8", "surrogatepass")))


def _joined(parts: list[IdArray]) -> IdArray:
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)


def _change(first: int, old: IdArray, new: IdArray) -> Change:
    """The change from `old` to `new`, without their common prefix and suffix."""
    shortest = min(len(old), len(new))
    differs = np.flatnonzero(old[:shortest] != new[:shortest])
    same = int(differs[0]) if len(differs) else shortest
    rest = shortest - same
    differs = np.flatnonzero(old[len(old) - rest :] != new[len(new) - rest :])
    at_end = rest - 1 - int(differs[-1]) if len(differs) else rest
    return Change(first + same, len(old) - same - at_end, new[same : len(new) - at_end].tolist())
