"""A window on a text or its chunks, which are read no further than needed.

Positions count the characters of a str or a Prompt, and the bytes of anything else.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .._core.encode import repaired
from ..engines.prompt_encoder import repaired_prompt
from ..engines.texts import text_view
from ..files import read_chunks
from ..prompts import Prompt, prompt_of

if TYPE_CHECKING:
    from ..engines.control_finder import ControlFinder

__all__ = ["TextWindow", "character_ends", "is_buffer"]


class TextWindow:
    """A text that is read, and dropped, from the left. `is_str`: positions are characters."""

    def __init__(self, source: Any) -> None:
        """source: str, Prompt, bytes-like, an iterable of chunks, or a file. If the first chunk is
        a Prompt, later ones may be Prompts or str, which is plain text. Surrogates in a str that
        are not escaped bytes are repaired, so that no position is inside a pair.

        Raises TypeError for any other source; reading later raises it for chunks of mixed types.
        """
        self._chunks: Iterator[Any] = iter(())
        self._base = 0  # the position where the held text begins
        self._control: list[tuple[int, int]] | None = None
        prompt = prompt_of(source)
        is_given = prompt is not None or isinstance(source, str) or is_buffer(source)
        self.is_whole = self.is_given_whole = is_given
        if isinstance(source, str):
            self._held: Any = repaired(text_view(source), "surrogateescape")
        elif prompt is not None:
            self._held = repaired_prompt(prompt)
        elif self.is_whole:
            self._held = text_view(source)
        elif isinstance(source, Iterable) or hasattr(source, "read"):
            self._chunks = read_chunks(source)
            self._held = None
            first = self._next()
            self._held = "" if first is None else first
        else:
            raise TypeError(
                "text must be str, bytes-like, an iterable of them, or a file, not "
                f"{type(source).__name__}"
            )
        self.is_str = isinstance(self._held, str | Prompt)

    def _next(self) -> Any:
        """The next chunk, as str, bytes or Prompt; None at the end."""
        for chunk in self._chunks:
            prompt = prompt_of(chunk)
            if isinstance(chunk, str) and isinstance(self._held, Prompt):
                prompt = Prompt(chunk) if chunk else Prompt()  # an empty chunk is not a border
            if prompt is not None:
                chunk = repaired_prompt(prompt)
            elif isinstance(chunk, str):
                chunk = repaired(str.__str__(chunk), "surrogateescape")
            else:
                if not is_buffer(chunk):
                    raise TypeError(
                        f"a chunk must be str or bytes-like, not {type(chunk).__name__}"
                    )
                chunk = bytes(chunk)
            kinds = {Prompt if isinstance(x, Prompt) else type(x) for x in (self._held, chunk)}
            if self._held is not None and len(kinds) > 1:
                raise TypeError(
                    "all chunks must be str, or all bytes-like, and Prompts come after a first "
                    "one, such as Prompt(): these are mixed"
                )
            return chunk
        self.is_whole = True
        return None

    @property
    def known_end(self) -> int:
        """The position after the text that has been read."""
        return self._base + len(self._held)

    def reaches(self, position: int) -> bool:
        """Whether the text reaches `position`; reads up to there."""
        if self.known_end < position and not self.is_whole:
            parts = []
            size = self.known_end
            try:
                while size < position and (chunk := self._next()) is not None:
                    parts.append(chunk)
                    size += len(chunk)
            finally:
                self._control = None
                self._held = self._held[:0].join([self._held, *parts])
        return self.known_end >= position

    def is_end(self, position: int) -> bool:
        """Whether the text ends at `position` or before; reads up to there."""
        return not self.reaches(position + 1)

    def at(self, start: int, stop: int) -> Any:
        """The text from `start` to `stop`, or as much as exists, as str, Prompt or bytes."""
        if stop - self._base > len(self._held):
            self.reaches(stop)
        part = self._held[start - self._base : max(stop - self._base, 0)]
        return part if self.is_str else bytes(part)

    def text_at(self, start: int, stop: int) -> Any:
        """As `at`, but a Prompt is returned as a str."""
        part = self.at(start, stop)
        return str(part) if isinstance(part, Prompt) else part

    def control_spans(self, finder: ControlFinder, stop: int) -> list[tuple[int, int]]:
        """(start, end) of the control tokens of a Prompt, in order, including all before `stop`."""
        self.reaches(stop + finder.reach)
        if self._control is None:
            found = finder.places(self._held)
            self._control = [(self._base + start, self._base + end) for start, end in found]
        return self._control

    def drop(self, before: int) -> None:
        """Forget the text before this position, if it came in chunks."""
        if not self.is_given_whole:
            self._control = None
            self._held = self._held[before - self._base :]
            self._base = before


def is_buffer(value: object) -> bool:
    """Whether `value` is bytes-like."""
    try:
        memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def character_ends(text: Any, start: int, stop: int) -> list[int]:
    """The offsets from `start` to `stop` where a character of a str or bytes ends, ascending.

    Each byte that is not UTF-8 counts as a character.
    """
    stop = min(stop, len(text))
    if isinstance(text, str | Prompt):
        return list(range(start, stop + 1))
    begin = start
    while begin > max(start - 3, 0) and begin < len(text) and text[begin] & 0xC0 == 0x80:
        begin -= 1
    if begin < len(text) and text[begin] & 0xC0 == 0x80:
        begin = start
    characters = bytes(text[begin : stop + 3]).decode("utf-8", "surrogateescape")
    sizes = (len(one.encode("utf-8", "surrogateescape")) for one in characters)
    return [p for p in itertools.accumulate(sizes, initial=begin) if start <= p <= stop]
