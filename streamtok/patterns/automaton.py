"""The automaton of a pre-tokenization pattern: how to walk it, and what its tables prove.

To cut a text, begin at state 1 and read the characters in order; let c be the class of the next
one. If `accepts[state, c]`, the pre-token may end before it: remember the position. Then move to
`transitions[state, c]`. In state 0 nothing can follow: the pre-token ends at the last remembered
position, and the next one begins there, again at state 1. At the end of the text, the last column
of `accepts` decides. `Automaton.findall` does exactly this. (Being in state 1 does not prove that a
pre-token begins here: `a*b` returns to it.)

A character that no pre-token can begin with is skipped, as by tiktoken's `find_iter`: it produces
no output. This never happens if `is_total`, as is the case for all patterns that OpenAI has
published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..threads import cached_property
from .minimise import surely_ending
from .tables import CODE_POINTS_PER_BLOCK, Tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Uint8 = npt.NDArray[np.uint8]
    Uint16 = npt.NDArray[np.uint16]
    Bools = npt.NDArray[np.bool_]

__all__ = ["Automaton"]

_Scalar = TypeVar("_Scalar", bound=np.generic)


class Automaton:
    """Immutable tables, and the facts that they prove about all texts."""

    transitions: Uint16  # see `Tables`
    accepts: Uint8
    class_pages: Uint16
    class_blocks: Uint8

    def __init__(self, tables: Tables) -> None:
        self.transitions, self.accepts, self.class_pages, self.class_blocks = tables
        for table in tables:
            table.setflags(write=False)

    @property
    def n_states(self) -> int:
        """Number of states, including the dead state 0; state 1 is the start."""
        return int(self.transitions.shape[0])

    @property
    def n_classes(self) -> int:
        """Number of character classes that the pattern distinguishes."""
        return int(self.transitions.shape[1])

    def class_of(self, point: int) -> int:
        """The class of a code point."""
        page, offset = divmod(point, CODE_POINTS_PER_BLOCK)
        return int(self.class_blocks[self.class_pages[page], offset])

    @cached_property
    def _lists(self) -> tuple[list[list[int]], list[list[int]], list[int], dict[str, int]]:
        """`transitions`, `accepts`, `settled`, and a cache of the classes of characters."""
        return self.transitions.tolist(), self.accepts.tolist(), self.settled.tolist(), {}

    def spans(self, text: str, until: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield (start, end) of each pre-token of `text`: the slow walk that the tables define.

        until: pre-tokens that end at or after this offset may be missing.
        """
        transitions, accepts, settled, classes = self._lists
        at_end = self.n_classes
        until = len(text) if until is None else until
        start = 0
        while start < len(text):
            state = 1
            end = position = start
            while state and position < len(text):
                if position >= until and settled[state]:
                    return
                character = text[position]
                following = classes.get(character)
                if following is None:
                    following = classes[character] = self.class_of(ord(character))
                if accepts[state][following]:
                    end = position
                state = transitions[state][following]
                position += 1
            if state and accepts[state][at_end]:
                end = len(text)
            if end > start:
                yield start, end
            start = max(end, start + 1)  # no pre-token begins with this character: skip it

    def findall(self, text: str) -> list[str]:
        """The pre-tokens of `text`."""
        return [text[start:end] for start, end in self.spans(text)]

    @cached_property
    def is_total(self) -> bool:
        """Whether every character of every text is part of a pre-token, so that none is skipped."""
        queue = [1]  # states in which a pre-token has begun and could not have ended yet
        seen = {1}
        for state in queue:
            rest = self.transitions[state][self.accepts[state, :-1] == 0]
            new = set(rest.tolist())
            if not self.accepts[sorted(new), -1].all():  # the dead state does not accept either
                return False
            queue += sorted(new - seen)
            seen |= new
        return True

    @cached_property
    def begins(self) -> Bools:
        """(n_classes,): whether a pre-token can begin with a character of the class."""
        return np.array(self.transitions[1] > 0)

    @cached_property
    def closed(self) -> Automaton | None:
        """This automaton made total: each character that is skipped becomes a pre-token.

        None if more than the first character decides whether text is skipped.
        """
        if self.is_total:
            return self
        if (self.transitions == 1).any():  # state 1 is reached inside a pre-token, too
            return None
        n = self.n_states
        transitions = np.concatenate([self.transitions, np.zeros_like(self.transitions[:1])])
        transitions[1, ~self.begins] = n
        accepts = np.concatenate([self.accepts, np.ones_like(self.accepts[:1])])
        found = Automaton(Tables(transitions, accepts, self.class_pages, self.class_blocks))
        return found if found.is_total else None

    @cached_property
    def settled(self) -> Uint8:
        """(n_states,): 1 if, whatever follows, the pre-token ends here or later.

        The tables may omit an acceptance where a later one is certain, so the last accepted
        position can lie far before the end of the bytes that surely belong to the pre-token. A
        state is settled if it accepts at the end of input and, before every class, accepts or moves
        to a settled state. As every text ends, the largest set with this property is the right one.
        """
        return _read_only(surely_ending(self.transitions, self.accepts).astype(np.uint8))

    @cached_property
    def cut_pairs(self) -> Bools:
        """(n_classes, n_classes): whether no pre-token ever has class a directly before class b.

        Whatever came before, there is a boundary between the two. The pre-tokens before it may
        still depend on the text after it (see `clean_cut_pairs`); those after it do not depend on
        the text before it.
        """
        dead = self.transitions == 0
        pairs = np.ones((self.n_classes, self.n_classes), bool)
        for row in self.transitions:  # every state is reachable
            pairs &= dead[row] | (row == 0)[:, None]
        return _read_only(pairs)

    @cached_property
    def clean_cut_pairs(self) -> Bools:
        """The `cut_pairs` where the text before the cut may also be encoded on its own.

        To the text before the cut, class b then acts like the end of input. With GPT-2's pattern,
        a newline and a letter are a cut pair, but not a clean one: a newline at the end of input
        joins the white space before it; a newline before a letter does not.
        """
        as_at_end = self.accepts[:, :-1] == self.accepts[:, -1:]
        pairs = self.cut_pairs.copy()
        for row in self.transitions:
            pairs &= as_at_end[row] | (row == 0)[:, None]
        return _read_only(pairs)


def _read_only(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    array.setflags(write=False)
    return array
