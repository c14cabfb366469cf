"""Find the control tokens of a prompt, in each run of control separately.

This is step 1 of `reference/renaming.py`, extended to runs that arrive in chunks. Other added
tokens are searched for, too, since they may hide control tokens. The core later finds those other
tokens again, in text and control together.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .._core.encode import GivenToken, SpecialMatcher, has_surrogate, repaired
from ..errors import StateError
from ..prompts import prompt_of
from .changing import flag_bits, is_in_word

if TYPE_CHECKING:
    from ..prompts import Prompt
    from .rules import TokenFlags

__all__ = ["ControlFinder", "SoughtToken"]

_RUNS_KEPT = 1024  # cached runs of control, which templates repeat
_LONGEST_KEPT = 4096  # characters of a cached run

_Part = Any  # of the core's input: str, bytes, a GivenToken, or None for a border


class Run(NamedTuple):
    """A run of control that may continue. Positions are offsets in `data`."""

    data: bytes = b""  # the held bytes, after a few earlier bytes of the run
    held: int = 0  # start of the held bytes, where a token may begin
    searched: int = 0  # where a token that is not normalized may begin
    begin: int = 0  # where the last token that is not normalized ends

    @property
    def size(self) -> int:
        """The number of held bytes."""
        return len(self.data) - self.held


class SoughtToken(NamedTuple):
    """A token to search for in control."""

    text: str
    id: int
    flags: TokenFlags
    is_control: bool


class _Search:
    """Finds some tokens in bytes; the tokens are given in order of preference."""

    def __init__(self, tokens: Sequence[SoughtToken]) -> None:
        texts = frozenset(token.text for token in tokens)
        self._matcher = SpecialMatcher([(token.text, token.id) for token in tokens], texts, ())
        self._given = [
            GivenToken(
                token.id, token.text.encode(), flag_bits(token.flags), token.flags.normalized
            )
            if token.is_control
            else None
            for token in tokens
        ]
        self._is_word = [token.flags.single_word for token in tokens]

    def find(
        self, data: bytes, begin: int, start: int, stop: int, final: bool
    ) -> tuple[int, list[tuple[int, int, GivenToken | None]]]:
        """(open, matches in data[start:stop]). Unless `final`, a token may begin at `open`.

        A match is (start, end, token), with None for a token that is not control. Of the characters
        next to a token, only those in data[begin:stop] are seen.
        """
        open_from, matches = self._matcher.finds(data, start, stop, final)
        found: list[tuple[int, int, GivenToken | None]] = []
        for first, last, index in matches:
            if self._is_word[index]:
                if last == stop and not final:
                    return first, found  # the next character may belong to a word
                left = data[max(begin, first - 4) : first].decode("utf-8", "ignore")[-1:]
                right = data[last : min(last + 4, stop)].decode("utf-8", "ignore")[:1]
                if is_in_word(left) or is_in_word(right):
                    continue
            found.append((first, last, self._given[index]))
        return open_from, found


class ControlFinder:
    """Turns chunks with control into the core's input. Immutable except for a cache."""

    def __init__(self, tokens: Sequence[SoughtToken], normalized: Sequence[SoughtToken]) -> None:
        """tokens: found first; normalized: found in the text between those."""
        self._first, self._second = _Search(tokens), _Search(normalized)
        # How many characters after a position may belong to a token that begins before it, or touch
        # one.
        self.reach = max([len(token.text) for token in (*tokens, *normalized)], default=0) + 1
        self.known: dict[str, list[_Part]] = {}  # cache of whole runs; the core looks here first
        self._begin = functools.lru_cache(_RUNS_KEPT)(
            lambda text: self._searched(Run(), text, False)
        )

    def parts(
        self, chunk: Any, run: Run | None, final: bool
    ) -> tuple[list[_Part], Run | None, int]:
        """(parts, the open run afterwards, its number of held bytes). run: the open run before.

        Raises TypeError unless the chunk is a Prompt, a t-string or a text.
        """
        prompt = prompt_of(chunk)
        # As in codecs, an empty chunk of text has no effect: it is not a border.
        spans = (((chunk, False),) if len(chunk) else ()) if prompt is None else prompt.spans
        parts: list[_Part] = []
        if run is not None and not (spans[0][1] if spans else not final):
            parts, run = self._searched(run, "", True)
        for at, (text, is_control) in enumerate(spans):
            if not is_control:
                parts.append(text)
                continue
            if run is None and at == 0:
                parts.append(None)
            ends = final or at + 1 < len(spans)
            if run is not None or len(text) > _LONGEST_KEPT:
                found, run = self._searched(run or Run(), text, ends)
            else:
                found, run = (self.of_run(text), None) if ends else self._begin(text)
            parts += found
        return parts, run, 0 if run is None else run.size

    def places(self, prompt: Prompt) -> list[tuple[int, int]]:
        """The spans of the control tokens in the text of a prompt, in characters."""
        found, at = [], 0
        for text, is_control in prompt.spans:
            end = at
            for part in self.of_run(text) if is_control else ():
                is_token = type(part) is GivenToken
                start, end = end, end + len((part.text if is_token else part).decode())
                if is_token:
                    found.append((start, end))
            at += len(text)
        return found

    def packed(self, run: Run | None) -> bytes:
        """A run as bytes, for saved states."""
        return b"" if run is None else json.dumps([run.data.decode("latin-1"), *run[1:]]).encode()

    def unpacked(self, data: bytes) -> tuple[Run | None, int]:
        """(run, its number of held bytes). Raises StateError for damaged bytes."""
        if not data:
            return None, 0
        try:
            text, held, searched, begin = json.loads(data)
            run = Run(text.encode("latin-1"), held, searched, begin)
            run.data[held:].decode()
            offsets = [0, begin, held, searched, len(text)]
            if sorted(offsets) != offsets or {*map(type, offsets)} != {int}:
                raise ValueError
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise StateError(
                "the saved stream state is damaged: no stream has such control"
            ) from None
        return run, run.size

    def of_run(self, text: str) -> list[_Part]:
        """The parts of a whole run of control."""
        found = self.known.get(text)
        if found is None:
            found, _ = self._searched(Run(), text, True)
            if len(text) <= _LONGEST_KEPT:
                if len(self.known) >= _RUNS_KEPT:
                    self.known.clear()
                self.known[text] = found
        return found

    def _searched(self, run: Run, text: str, ends: bool) -> tuple[list[_Part], Run | None]:
        """(parts, the run afterwards), for the held bytes of `run` followed by `text`."""
        if not text and not run.size:
            return [], None if ends else run
        if has_surrogate(text, 0, len(text)):
            text = repaired(text, "replace")  # or escaped bytes could complete a text's character
        data = run.data + text.encode()
        open_from, found = self._first.find(data, 0, run.searched, len(data), ends)
        tokens = []
        begin, start = run.begin, run.held
        for first, last, given in found:
            tokens += self._second.find(data, begin, start, first, True)[1]
            tokens.append((first, last, given))
            begin = start = last
        stop, others = self._second.find(data, begin, start, open_from, ends)
        parts: list[_Part] = []
        done = run.held
        for first, last, given in [*tokens, *others]:
            if given is not None:
                if first > done:
                    parts.append(data[done:first])
                parts.append(given)
                done = last
        if stop > done:
            parts.append(data[done:stop])
        if ends:
            return parts, None
        cut = max(0, stop - 4)
        return parts, Run(data[cut:], stop - cut, open_from - cut, max(0, begin - cut))
