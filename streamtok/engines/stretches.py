"""Hugging Face's way from characters to what the pattern cuts, for whole texts and for streams.

1. Added and special tokens are found in the text; what is between them is a *stretch*.
2. Each stretch is normalized, for itself.
3. Those tokens that are `normalized` are found in the result, and cut it into smaller stretches.
4. Pre-tokenizers that change text change each of these by itself.

A `Place` is where a stream stands. It is immutable: a call works on a `Walk`, which begins at a
place and ends at the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .._core.encode import utf8_size
from ..normalizers.compiled import Changed, feed
from ..normalizers.links import held_by
from ..normalizers.step import text_of
from .added_tokens import GOES_ON, NOTHING_FOUND, Finder, Finding
from .offsets import Block, Runs, runs_from_json, runs_of_end, sources, total

if TYPE_CHECKING:
    from .._core.encode import SpecialMatcher
    from ..normalizers import Normalizer, State
    from ..normalizers.compiled import Compiled

__all__ = ["BEGINNING", "Place", "RefusedToken", "Stages", "Walk", "place_from_json"]


class RefusedToken(Exception):
    """A special token that is refused, and the bytes from where it begins to the end of the call's
    text, as far as they came in.
    """

    def __init__(self, text: str, rest: int) -> None:
        super().__init__(text)
        self.text, self.rest = text, rest


class Stages(NamedTuple):
    """The stages that change a text. Immutable."""

    raw: Finder
    normalizer: Normalizer | None
    normalized: Finder | None  # finds what is `normalized`
    second: Normalizer | None
    has_escapes: bool  # U+DC80 to U+DCFF stand for bytes
    at_once: Compiled | None  # what both normalizers make of the text between plain tokens
    # What each one makes of its text, if there is no table for both.
    first_table: Compiled | None = None
    second_table: Compiled | None = None
    # Finds what `normalized` does, in the core; None: the core cannot, or there is nothing.
    inner: SpecialMatcher | None = None


class Place(NamedTuple):
    """The position of a stream of characters in its stages. The bytes are of UTF-8."""

    raw: Finding = NOTHING_FOUND
    is_first: bool = True  # nothing but what the normalizers have is before what comes
    first: State | None = None  # the normalizer's; None: no stretch is open
    normalized: Finding = NOTHING_FOUND
    second: State | None = None
    first_runs: Runs = ()  # from the waiting normalized text to the text
    second_runs: Runs = ()  # from the waiting text of the core to the normalized one


BEGINNING = Place()


class Walk:
    """From one place of a stream to the next."""

    def __init__(
        self, stages: Stages, place: Place, waiting: int = 0, is_traced: bool = False
    ) -> None:
        """waiting: bytes of the text that wait at that place. is_traced: the blocks say exactly
        where text is from, however it is cut.
        """
        self.stages = stages
        self.is_traced = is_traced
        self.finder = stages.normalized if stages.inner is None else None  # or the core does
        self.has_second = stages.second is not None or self.finder is not None
        self.place = place
        self.is_first = place.is_first
        self.raw = place.raw
        self.first, self.second = place.first, place.second
        self.normalized = place.normalized
        self.first_blocks: list[Block] = []
        self.second_blocks: list[Block] = []
        self.parts: list[Any] = []  # as `Tail.encode_parts` takes them
        # Bytes that wait for the normalizers, by difference: counting all of them again for each
        # chunk would take quadratic time.
        changed, source = total(place.first_runs)
        self.first_held = waiting - source - utf8_size(place.raw.held)
        held = changed - total(place.second_runs)[1] - utf8_size(place.normalized.held)
        self.second_held = held if self.has_second else 0

    def feed(self, text: str, final: bool) -> None:
        """Take characters in. Raises RefusedToken."""
        self.raw, events, refused = self.stages.raw.feed(self.raw, text, final)
        if refused:
            found, rest = refused
            raise RefusedToken(found, utf8_size(rest))
        for at, (part, taken, id) in enumerate(events):
            try:
                is_last = final and at + 1 == len(events)
                self.normalize(part, id != GOES_ON or is_last)
            except RefusedToken as error:
                error.rest += utf8_size(taken) + utf8_size(self.raw.held)
                error.rest += sum([utf8_size(x) + utf8_size(y) for x, y, _ in events[at + 1 :]])
                raise
            if id != GOES_ON:
                self._end_stretch(taken, id, True)
        if final:
            self.normalize("", True)

    def _end_stretch(self, taken: str, id: int | None, is_raw: bool) -> None:
        """What comes next was not text of the stage: a token, or only what one takes with it."""
        size = utf8_size(taken)
        block: Block = ("", taken) if id is None else size
        self.is_first = False
        if id is None:
            self.parts.append(None)
        else:
            self.parts.append((id, size))
        if is_raw:
            self.first_blocks.append(block)
        if self.has_second and not (is_raw and id is None):
            self.second_blocks.append(block)

    def traced(self) -> list[tuple[list[Block], bool]]:
        """Of each change its blocks, and whether the last of them may take in more text: what a
        normalizer leaves out, or the white space after a token.
        """
        stages = self.stages
        grows = self.raw.takes_blanks or (stages.normalizer is not None and self.first is not None)
        found = [(self.first_blocks, grows)]
        if self.has_second:
            grows = self.normalized.takes_blanks or (
                stages.second is not None and self.second is not None
            )
            found.append((self.second_blocks, grows))
        return found

    def next_place(self, waiting: int) -> tuple[Place, int]:
        """The position of the stream then, and the bytes of its text that wait.

        waiting: bytes that the core holds.
        """
        before, size = self.place, utf8_size
        second_runs = before.second_runs
        if self.has_second:
            second_runs, waiting = runs_of_end(second_runs, self.second_blocks, waiting)
            waiting += self.second_held + size(self.normalized.held)
        first_runs, waiting = runs_of_end(before.first_runs, self.first_blocks, waiting)
        place = Place(
            self.raw, self.is_first, self.first, self.normalized, self.second, first_runs,
            second_runs,
        )  # fmt: skip
        return place, waiting + self.first_held + size(self.raw.held)

    def normalize(self, text: str, ends: bool) -> None:
        """Take in what is between two tokens. ends: nothing more of it comes."""
        normalizer = self.stages.normalizer
        if not text and self.first is None:
            return
        if normalizer is None:
            self.first = ()
            self.first_blocks.append((text, text))
            self._find_normalized(text, ends)
        else:
            self.first, blocks = self._fed(
                normalizer, self.stages.first_table, self.first, text, ends
            )
            self.first_blocks += blocks
            self.first_held += utf8_size(text) - sources(blocks)
            if self.is_first and self.second is None and not self.normalized.held:
                self._look_at_first(blocks)
            self._find_normalized(text_of(blocks), ends)
        if ends:
            self.first = None

    def _fed(
        self,
        normalizer: Normalizer,
        table: Compiled | None,
        state: State | None,
        text: str,
        ends: bool,
    ) -> tuple[State, list[Any]]:
        """What `compiled.feed` gives."""
        if self.is_traced and self.stages.has_escapes:
            table = None  # it knows no bytes that are not UTF-8, and the steps give other rows
        return feed(table, normalizer, state, text, ends, self.is_first, self.is_traced)

    def _look_at_first(self, blocks: list[Any]) -> None:
        """What follows text that was left out is not the first."""
        for block in blocks:
            if isinstance(block, Changed):
                self.is_first = not block.begins_left_out
                break
            text, source = block
            if text:
                break
            if source:
                self.is_first = False

    def _find_normalized(self, text: str, ends: bool) -> None:
        """Take in normalized text."""
        finder = self.finder
        if finder is None:
            self._change_again(text, ends)
            return
        before = self.normalized
        self.normalized, events, refused = finder.feed(before, text, ends)
        if refused:
            found, rest = refused
            raise RefusedToken(found, self._size_before(utf8_size(rest)))
        for part, taken, id in events:
            self._change_again(part, id != GOES_ON)
            if id != GOES_ON:
                self._end_stretch(taken, id, False)
        if ends:
            self._change_again("", True)

    def _change_again(self, text: str, ends: bool) -> None:
        """Take in normalized text that has no added token."""
        normalizer = self.stages.second
        if text and normalizer is None:
            self.parts.append(text)
            if self.has_second:
                self.second_blocks.append((text, text))
        elif normalizer is not None and (text or self.second is not None):
            self.second, blocks = self._fed(
                normalizer, self.stages.second_table, self.second, text, ends
            )
            if ends:
                self.second = None
            self.second_blocks += blocks
            self.second_held += utf8_size(text) - sources(blocks)
            if changed := text_of(blocks):
                self.parts.append(changed)

    def bytes_from(self, offset: int) -> int:
        """The bytes of the text from what the core has at `offset` of the parts."""
        sizes = [x[1] if isinstance(x, tuple) else utf8_size(x or "") for x in self.parts]
        rest = sum(sizes) - offset
        return self._size_before(rest) + utf8_size(self.raw.held)

    def _size_before(self, rest: int) -> int:
        """The bytes of the text from where the last `rest` bytes of the normalized text begin."""
        _, size = runs_of_end(self.place.first_runs, self.first_blocks, rest)
        return size + self.first_held


def place_from_json(value: Any, stages: Stages, waiting: int) -> tuple[Place, int]:
    """A place that was saved as JSON, and the bytes of its text that wait.

    waiting: bytes that the core holds. Raises ValueError and TypeError if it is not one.
    """
    finds = stages.normalized is not None and stages.inner is None
    raw, is_first, first, normalized, second, first_runs, second_runs = value
    raw, normalized = Finding.from_json(raw), Finding.from_json(normalized)
    first = _state_from_json(stages.normalizer, first)
    second = _state_from_json(stages.second, second)
    if type(is_first) is not bool or (first is None and second is not None):
        raise ValueError("expected the states of normalizers")
    if normalized != NOTHING_FOUND and (not finds or first is None):
        raise ValueError("expected no search in normalized text")
    first_runs, second_runs = runs_from_json(first_runs), runs_from_json(second_runs)
    if second_runs and stages.second is None and not finds:
        raise ValueError("expected no way back from a second change")
    if stages.second is not None or finds:
        now, before = total(second_runs)
        if now != waiting:
            raise ValueError("expected runs of as many bytes as wait")
        waiting = before + utf8_size(held_by(second) + normalized.held)
    now, before = total(first_runs)
    if now != waiting:
        raise ValueError("expected runs of as many bytes as wait")
    place = Place(raw, is_first, first, normalized, second, first_runs, second_runs)
    return place, before + utf8_size(held_by(first) + raw.held)


def _state_from_json(normalizer: Normalizer | None, value: Any) -> State | None:
    """What a `Place` has of a normalizer."""
    if value is None:
        return None
    if normalizer is None:
        if value:
            raise ValueError("expected no state of a normalizer")
        return ()
    return normalizer.check_state(value)
