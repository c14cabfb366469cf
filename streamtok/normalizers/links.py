"""What waits for a step: blocks of the steps before it, as its text and the source of that.

A *link* is a tuple of (text, source, is aligned), in order. `compose` puts the blocks of two steps
together. Where the ends of their blocks do not meet, the blocks are joined until they do; if
they have not met at the end of a call, the text comes out at once, as if it were put in, and the
source with the last of its text, unless it is long. So nothing waits for another block to end, and
memory stays bounded.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from .step import Block, Blocks, whole_block

__all__ = [
    "LONGEST_HELD",
    "Link",
    "State",
    "compose",
    "has_long",
    "held_by",
    "join_link",
    "link_from_json",
    "unread_by",
    "with_unread",
]

Entry: TypeAlias = "tuple[str, str, bool]"
Link: TypeAlias = "tuple[Entry, ...]"
# Of each step its context, and what waits for it. JSON makes lists of the tuples.
State: TypeAlias = "tuple[tuple[int, Link], ...]"

LONGEST_HELD = 1024  # characters that wait; above, the steps hold less
MANY = 32  # entries; above that, entries are joined to wholes


def join_link(link: Link) -> str:
    """The text that waits."""
    return "".join([text for text, _, _ in link])


def held_by(state: State | None) -> str:
    """The source characters that wait; none, where there is no state."""
    return "".join([source for _, link in reversed(state or ()) for _, source, _ in link])


def has_long(state: State) -> bool:
    """Whether more than LONGEST_HELD characters wait. Costs no more, however many do."""
    waiting = sum([len(source) for _, link in state for _, source, _ in link])
    return waiting > LONGEST_HELD


def unread_by(state: State) -> tuple[State, str] | None:
    """The state before what waits, and that; None where it is long, or waits for later steps."""
    if any([link for _, link in state[1:]]) or has_long(state):
        return None
    return tuple([(context, ()) for context, _ in state]), held_by(state)


def with_unread(state: State, text: str) -> State:
    """What `unread_by` takes apart."""
    return ((state[0][0], ((text, text, True),)), *state[1:]) if text else state


def link_from_json(value: Any) -> Link:
    """A link that was saved as JSON. Raises ValueError if it is none."""
    if not isinstance(value, (list, tuple)):
        raise ValueError("expected a list of blocks")
    link = []
    for entry in value:
        if (
            not isinstance(entry, (list, tuple))
            or [type(part) for part in entry] != [str, str, bool]
            or (entry[2] and len(entry[0]) != len(entry[1]))
        ):
            raise ValueError("expected blocks of a text, its source, and whether they are aligned")
        link.append(tuple(entry))
    return tuple(link)


def compose(link: Link, given: Blocks, out: Blocks) -> tuple[Link, Blocks]:
    """The blocks of two steps, together.

    Args: the link so far; what the first step has given now; what the second step has made of both,
    as far as it could. Returns the new link and the blocks (text of the second step, source of the
    first).
    """
    if not link and len(out) == 1 and len(out[0][0]) == len(out[0][1]):  # a quick way, not another
        result, taken = out[0]
        if len(taken) == sum([len(text) for text, _ in given]):
            return (), given if result == taken else _relabelled(given, result)
    walk = _Walk(link, given)
    for result, taken in out:
        if len(result) == len(taken) and not walk.ahead:
            walk.take_aligned(result, 0)
        else:
            walk.take_whole(result, taken)
    return walk.end()


def _relabelled(given: Blocks, result: str) -> Blocks:
    """`given`, with as many characters of `result` instead of each text."""
    blocks: Blocks = []
    done = 0
    for text, source in given:
        size = len(text)
        part = result[done : done + size]
        if size == len(source):
            blocks.append((part, source))
        else:
            blocks += whole_block(part, source)
        done += size
    return blocks


class _Walk:
    """Along both sides at once: the blocks of the first step, and those of the second.

    An open *group* is a block in the making: its sources stand for more than its texts do, by
    `ahead` characters of the text between the steps.
    """

    def __init__(self, link: Link, given: Blocks) -> None:
        entries = [(text, source, len(text) == len(source)) for text, source in given]
        self.queue: list[Entry] = [*reversed(entries), *reversed(link)]  # the next one is last
        self.used = 0  # characters of the next entry that are taken; it is aligned
        self.blocks: Blocks = []
        self.run: list[Block] = []  # aligned blocks, to be joined
        self.texts: list[str] = []  # of the open group
        self.sources: list[str] = []
        self.last = ""  # what its last source stands for
        self.ahead = 0

    def take_aligned(self, result: str, done: int) -> None:
        """result[done:] stands for as many characters, one for one; no group is open."""
        while done < len(result):
            text, source, aligned = self.queue[-1]
            if aligned:
                size = min(len(text) - self.used, len(result) - done)
                self.run.append((result[done : done + size], source[self.used : self.used + size]))
                done += size
                self._use(size, len(text))
                continue
            self.queue.pop()
            size = len(text)
            self.texts.append(result[done : done + size])
            self.sources.append(source)
            self.last, self.ahead = text, max(size - len(result) + done, 0)
            done += size
            if not self.ahead:
                self._close()

    def take_whole(self, result: str, taken: str) -> None:
        """`result` stands for `taken`."""
        if not self.ahead:  # what was left out before it comes first
            self._close_left_out()
        if len(result) == len(taken) > self.ahead:  # aligned: only its beginning is in the group
            size = self.ahead
            self.texts.append(result[:size])
            self.ahead = 0
            self._close()
            self.take_aligned(result, size)
            return
        self.texts.append(result)
        self.ahead -= len(taken)
        while self.ahead < 0:
            text, source, aligned = self.queue[-1]
            if aligned:
                size = min(len(text) - self.used, -self.ahead)
                self.sources.append(source[self.used : self.used + size])
                self.ahead += size
                self._use(size, len(text))
            else:
                self.queue.pop()
                self.sources.append(source)
                self.last = text
                self.ahead += len(text)
        if not self.ahead:
            self._close()

    def end(self) -> tuple[Link, Blocks]:
        """What `compose` returns."""
        if self.ahead:
            source = "".join(self.sources)
            self.sources = [source[:-LONGEST_HELD]]
            self.queue.append((self.last[-self.ahead :], source[-LONGEST_HELD:], False))
            self._close()
        else:
            self._close_left_out()
            self._join_run()
        if self.used:
            text, source, _ = self.queue[-1]
            self.queue[-1] = (text[self.used :], source[self.used :], True)
        return _shortened(self.queue), self.blocks

    def _close_left_out(self) -> None:
        """Make what the first step left out next a block."""
        while self.queue and not self.queue[-1][0]:
            self.sources.append(self.queue.pop()[1])
        if self.sources:
            self._close()

    def _use(self, size: int, length: int) -> None:
        """Take `size` characters of the next entry, which is aligned and has `length`."""
        self.used += size
        if self.used == length:
            self.queue.pop()
            self.used = 0

    def _close(self) -> None:
        """Make the open group a block."""
        self._join_run()
        self.blocks += whole_block("".join(self.texts), "".join(self.sources))
        self.texts, self.sources = [], []

    def _join_run(self) -> None:
        """Make one block of the aligned ones."""
        if len(self.run) == 1:
            self.blocks += self.run
        elif self.run:
            texts, sources = zip(*self.run, strict=True)
            self.blocks.append(("".join(texts), "".join(sources)))
        self.run = []


def _shortened(queue: list[Entry]) -> Link:
    """The entries, the next one first, joined such that adding a character to a long link costs a
    constant number of copied characters, over many calls (as in a binary counter).
    """
    link: list[Entry] = []
    for entry in reversed(queue):
        while link and len(link[-1][0]) <= 2 * len(entry[0]):
            text, source, aligned = link[-1]
            if aligned != entry[2] and len(link) < MANY:
                break
            if not aligned and len(link) < MANY:
                break
            entry = (text + entry[0], source + entry[1], aligned and entry[2])
            link.pop()
        link.append(entry)
    return tuple(link)
