"""Compile the tree of a pre-tokenization pattern to the tables of a DFA.

There are three steps. First, the sets of the pattern divide the code points into classes, the
alphabet. Second, the tree becomes a nondeterministic automaton whose branches are ordered by
preference, as a backtracking engine would try them. Third, the subset construction runs all
branches together: a state is the *ordered* list of the branches still alive, and a branch that
reaches the end of the pattern cuts off those after it. So a later acceptance always comes from a
preferred branch, and the last one wins.

Look-ahead is a condition on the class of the next character, or on the end of input. It is checked
when that class is known, so acceptance depends on a state *and* on the class after it.

An atomic group (a possessive quantifier is one) commits to its first match. It becomes a separate
DFA, which is left only where it cannot continue. If it could continue and still fail later, the
choice would depend on text arbitrarily far ahead; such a group is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import PatternError, UnsupportedPatternError
from .budget import Budget, shortened
from .minimise import minimised, surely_accepting
from .syntax import parse
from .tables import CODE_POINTS_PER_BLOCK, Tables
from .tree import Atomic, Choice, Condition, Node, Repeat, Sequence, SetNode
from .unicode_classes import CODE_POINTS, CharSet

__all__ = ["MAX_CLASSES", "MAX_STATES", "compile_tables"]

MAX_STATES = 4096
MAX_CLASSES = 255
CELLS_PER_STEP = 16  # array cells that numpy processes in the time of one step

Uint8 = npt.NDArray[np.uint8]
Uint16 = npt.NDArray[np.uint16]


def compile_tables(source: str) -> Tables:
    """The minimal DFA of the pattern `source`; `patterns/budget.py` bounds the work."""
    budget = Budget(source)
    tree = parse(source, budget)
    alphabet = _Alphabet(tree, budget)
    branches = _Branches(alphabet, budget)
    start = branches.add(tree, _Branches.ACCEPT)
    transitions, accepts = minimised(*_subsets(branches, start, budget))
    if accepts[1].any():
        raise UnsupportedPatternError(
            "the pattern can match the empty string: empty match is not supported",
            construct="empty match",
            position=0,
        )
    if not accepts.any():
        raise PatternError("the pattern matches no text at all")
    return _with_merged_classes(transitions, accepts, alphabet, budget)


class _Alphabet:
    """The coarsest partition of the code points in which no set of the pattern divides a class."""

    def __init__(self, tree: Node, budget: Budget) -> None:
        sets = list(dict.fromkeys(_sets_of(tree)))
        edges = np.unique(np.concatenate([[0, CODE_POINTS], *(s.toggles for s in sets)]))
        budget.spend(len(sets) * len(edges) // CELLS_PER_STEP)
        self.firsts = edges[:-1].astype(np.int64)  # of runs of code points in one class
        inside = np.array([s.contains(self.firsts) for s in sets]).reshape(-1, len(self.firsts))
        _, seen_first, groups = np.unique(inside, axis=1, return_index=True, return_inverse=True)
        # Number the classes by their first code point, so that equal patterns give equal tables.
        order = np.argsort(np.argsort(seen_first))
        self.run_class = order[groups.reshape(-1)]
        self.size = len(seen_first)
        self.end = 1 << self.size  # the bit for the end of input
        self.everything = 2 * self.end - 1
        samples = self.firsts[np.sort(seen_first)]
        self.masks = {s: _mask(s.contains(samples)) for s in sets}  # a bit for each class


def _mask(members: npt.NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(members, bitorder="little").tobytes(), "little")


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _sets_of(node: Node) -> Iterator[CharSet]:
    match node:
        case SetNode(charset) | Condition(charset):
            yield charset
        case Sequence(children) | Choice(children):
            for child in children:
                yield from _sets_of(child)
        case Repeat(item) | Atomic(item):
            yield from _sets_of(item)


class _Branches:
    """The nondeterministic automaton, built from its end to its start.

    A node is a step or a fork. A step has a mask of classes, and the node that a character of these
    classes leads to. A fork has the nodes reachable without a character, preferred ones first, each
    with the mask of classes allowed next.
    """

    ACCEPT = 0  # the node at the end of the pattern
    MATCH = -1  # the target of its move

    def __init__(self, alphabet: _Alphabet, budget: Budget) -> None:
        self.alphabet = alphabet
        self.budget = budget
        self.words = 1 + alphabet.size // 64  # of a mask
        self.steps: list[tuple[int, int] | None] = [None]
        self.forks: list[list[tuple[int, int]]] = [[]]
        self._moves: dict[int, list[tuple[int, int]]] = {}
        self._atomic: dict[int, _Atomic] = {}  # by the identity of a node of the tree

    def step(self, mask: int, target: int) -> int:
        return self._append((mask, target), [])

    def fork(self, *targets: int) -> int:
        return self._append(None, [(self.alphabet.everything, target) for target in targets])

    def _append(self, step: tuple[int, int] | None, fork: list[tuple[int, int]]) -> int:
        self.budget.spend(4 + self.words + len(fork))
        self.steps.append(step)
        self.forks.append(fork)
        return len(self.steps) - 1

    def add(self, node: Node, target: int) -> int:
        """Add nodes for `node` that lead to `target`; return the first of them."""
        match node:
            case SetNode(charset):
                return self.step(self.alphabet.masks[charset], target)
            case Condition(charset, at_end):
                allowed = self.alphabet.masks[charset] | self.alphabet.end * at_end
                return self._append(None, [(allowed, target)])
            case Sequence(parts):
                for part in reversed(parts):
                    target = self.add(part, target)
                return target
            case Choice(options):
                return self.fork(*(self.add(option, target) for option in options))
            case Repeat():
                return self._add_repeat(node, target)
            case Atomic():
                return self._add_atomic(node, target)

    def _add_repeat(self, node: Repeat, target: int) -> int:
        def either(again: int, leave: int) -> list[int]:
            return [leave, again] if node.lazy else [again, leave]

        after = target
        if node.high is None:
            loop = self.fork()
            again = self.add(node.item, loop)
            everything = self.alphabet.everything
            self.forks[loop] = [(everything, way) for way in either(again, target)]
            after = loop
        else:
            for _ in range(node.high - node.low):
                after = self.fork(*either(self.add(node.item, after), target))
        for _ in range(node.low):
            after = self.add(node.item, after)
        return after

    def _add_atomic(self, node: Atomic, target: int) -> int:
        if id(node) not in self._atomic:  # a repeat adds the same node several times
            self._atomic[id(node)] = _committed(node, self.alphabet, self.budget)
        transitions, leaves = self._atomic[id(node)]
        n_states = len(transitions)
        self.budget.spend(20 * n_states + transitions.size // CELLS_PER_STEP)
        states = [self.fork() for _ in range(n_states)]
        everything = self.alphabet.everything
        for state in range(1, n_states):
            ways = [
                (everything, self.step(_mask(transitions[state] == following), states[following]))
                for following in np.unique(transitions[state]).tolist()
                if following
            ]
            self.forks[states[state]] = [*ways, (leaves[state], target)]
        return states[1]

    def moves(self, node: int) -> list[tuple[int, int]]:
        """The moves of `node`, preferred ones first: (mask of classes, node after the character).

        For MATCH, the mask has the classes before which the match may end.
        """
        if node not in self._moves:
            found: list[tuple[int, int]] = []
            seen: dict[int, int] = {}
            stack = [(self.alphabet.everything, node)]
            while stack:
                mask, at = stack.pop()
                self.budget.spend(self.words)
                # Only the first way to a node counts, for each class separately.
                mask &= ~seen.get(at, 0)
                if not mask:
                    continue
                seen[at] = seen.get(at, 0) | mask
                step = self.steps[at]
                if at == self.ACCEPT:
                    found.append((mask, self.MATCH))
                elif step is not None:
                    if mask & step[0]:
                        found.append((mask & step[0], step[1]))
                else:
                    stack += [(mask & way[0], way[1]) for way in reversed(self.forks[at])]
            self._moves[node] = found
        return self._moves[node]


class _Atomic(NamedTuple):
    """The DFA of an atomic group."""

    transitions: Uint16
    leaves: list[int]  # for each state, a mask of the classes before which the match is final


def _committed(node: Atomic, alphabet: _Alphabet, budget: Budget) -> _Atomic:
    """The DFA of `node`, to be left before classes where it accepts and cannot continue."""
    branches = _Branches(alphabet, budget)
    start = branches.add(node.item, _Branches.ACCEPT)
    transitions, accepts = minimised(*_subsets(branches, start, budget))
    accepting = accepts.astype(bool)
    # An acceptance that can be continued is not final; another must be sure to follow.
    undecided = accepting[:, :-1] & (transitions > 0)
    if (undecided & ~surely_accepting(transitions, accepts)[transitions]).any():
        raise UnsupportedPatternError(
            f"{shortened(node.text)!r} at position {node.position} of the pattern commits to "
            "a match that depends on text arbitrarily far ahead",
            construct="atomic group or possessive quantifier",
            position=node.position,
        )
    accepting[:, :-1] &= transitions == 0
    return _Atomic(transitions, [_mask(row) for row in accepting])


def _subsets(branches: _Branches, start: int, budget: Budget) -> tuple[Uint16, Uint8]:
    """The subset construction over ordered lists of nodes; state 0 is dead, state 1 the start."""
    size = branches.alphabet.size
    numbers: dict[tuple[int, ...], int] = {(): 0, (start,): 1}
    queue = list(numbers)
    rows: list[list[int]] = []
    accepted: list[int] = []
    for state in queue:
        undecided = branches.alphabet.everything  # classes before which nothing was accepted yet
        following: list[dict[int, None]] = [{} for _ in range(size)]  # used as ordered sets
        budget.spend(size)
        for node in state:
            for mask, target in branches.moves(node):
                mask &= undecided
                budget.spend(mask.bit_count() + branches.words)
                if target == _Branches.MATCH:
                    undecided &= ~mask
                else:
                    for index in _bits(mask):
                        following[index][target] = None
        row = []
        for targets in map(tuple, following):
            if targets not in numbers:
                numbers[targets] = len(numbers)
                queue.append(targets)
            row.append(numbers[targets])
        rows.append(row)
        accepted.append(branches.alphabet.everything & ~undecided)
        if len(numbers) > 4 * MAX_STATES:
            budget.refuse(f"more than {MAX_STATES} states")
    accepts = [[mask >> index & 1 for index in range(size + 1)] for mask in accepted]
    return np.array(rows, np.uint16), np.array(accepts, np.uint8)


def _with_merged_classes(
    transitions: Uint16, accepts: Uint8, alphabet: _Alphabet, budget: Budget
) -> Tables:
    """The tables, after merging classes that no state tells apart."""
    size = alphabet.size
    columns = np.concatenate([transitions, accepts[:, :size]])
    merged: dict[bytes, int] = {}
    new_class = [merged.setdefault(column.tobytes(), len(merged)) for column in columns.T]
    if len(merged) > MAX_CLASSES:
        budget.refuse(f"more than {MAX_CLASSES} character classes")
    if len(transitions) > MAX_STATES:
        budget.refuse(f"more than {MAX_STATES} states")
    kept = [new_class.index(number) for number in range(len(merged))]
    lengths = np.diff(alphabet.firsts, append=CODE_POINTS)
    classes = np.repeat(np.array(new_class, np.uint8)[alphabet.run_class], lengths)
    blocks: dict[bytes, int] = {}
    rows = classes.reshape(-1, CODE_POINTS_PER_BLOCK)
    # Nearly all pages equal the page before.
    begins = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]).any(axis=1)))
    numbers = [blocks.setdefault(row.tobytes(), len(blocks)) for row in rows[begins]]
    pages = np.repeat(np.array(numbers, np.uint16), np.diff(begins, append=len(rows)))
    return Tables(
        transitions=np.ascontiguousarray(transitions[:, kept]),
        accepts=np.ascontiguousarray(accepts[:, [*kept, size]]),
        class_pages=pages,
        class_blocks=np.frombuffer(b"".join(blocks), np.uint8).reshape(-1, CODE_POINTS_PER_BLOCK),
    )
