"""The smallest equivalent automaton, and the states in which an acceptance is certain.

For any automaton, the functions here follow each transition at most a logarithmic number of times:
repeated passes over the whole table would take quadratic time for `a{1000}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Uint8 = npt.NDArray[np.uint8]
    Uint16 = npt.NDArray[np.uint16]
    Bools = npt.NDArray[np.bool_]

__all__ = ["equivalent_states", "minimised", "surely_accepting", "surely_ending"]


def minimised(transitions: Uint16, accepts: Uint8) -> tuple[Uint16, Uint8]:
    """The equivalent automaton with the fewest states, numbered in breadth-first order.

    States that lead to no acceptance merge with the dead state.
    """
    block = equivalent_states(transitions, accepts)
    if block[1] == block[0]:  # nothing matches, but the start stays state 1
        return np.zeros_like(transitions[:2]), np.zeros_like(accepts[:2])
    numbers = {int(block[0]): 0, int(block[1]): 1}
    members = [0, 1]  # one state of each block
    for state in members:
        for following in transitions[state].tolist():
            if int(block[following]) not in numbers:
                numbers[int(block[following])] = len(numbers)
                members.append(following)
    renumber = np.zeros(int(block.max()) + 1, np.uint16)
    renumber[list(numbers)] = list(numbers.values())
    return renumber[block[transitions[members]]], accepts[members]


def equivalent_states(transitions: Uint16, marks: Uint8) -> npt.NDArray[np.intp]:
    """intp [n_states]: the block of each state; states share one if no text tells them apart.

    marks: [n_states, any]; states with different marks are always told apart.

    Uses Hopcroft's algorithm: when a block that was processed before is split, all its parts are
    processed except the one with the most incoming transitions. So each transition is visited a
    logarithmic number of times.
    """
    n_states = len(transitions)
    columns = np.unique(transitions, axis=1)
    n_classes = columns.shape[1]
    order = np.argsort(columns.reshape(-1), kind="stable")
    sources, classes = (order // n_classes).tolist(), (order % n_classes).tolist()
    starts = np.searchsorted(columns.reshape(-1)[order], np.arange(n_states + 1)).tolist()
    block: list[int] = np.unique(marks, axis=0, return_inverse=True)[1].reshape(-1).tolist()
    members: list[set[int]] = [set() for _ in range(max(block) + 1)]
    for state, number in enumerate(block):
        members[number].add(state)
    weights = [sum(starts[s + 1] - starts[s] for s in states) for states in members]
    waiting = set(range(len(members)))
    waiting.remove(weights.index(max(weights)))
    while waiting:
        # For each state with a transition into this block: the mask of classes that lead there.
        leading: dict[int, int] = {}
        for target in members[waiting.pop()]:
            for at in range(starts[target], starts[target + 1]):
                leading[sources[at]] = leading.get(sources[at], 0) | 1 << classes[at]
        parts: dict[int, dict[int, list[int]]] = {}
        for state, mask in leading.items():
            parts.setdefault(block[state], {}).setdefault(mask, []).append(state)
        for number, found in parts.items():
            split = list(found.values())
            if sum(map(len, split)) == len(members[number]):
                split.pop()  # every state has such a class: one part keeps the number
            pieces = [number]
            for states in split:
                members[number].difference_update(states)
                for state in states:
                    block[state] = len(members)
                pieces.append(len(members))
                members.append(set(states))
                weights.append(sum(starts[s + 1] - starts[s] for s in states))
                weights[number] -= weights[-1]
            if number not in waiting:
                pieces.remove(max(pieces, key=weights.__getitem__))
            waiting.update(pieces)
    return np.array(block, np.intp)


def surely_accepting(transitions: Uint16, accepts: Uint8) -> Bools:
    """The states from which every text is accepted after a bounded number of characters."""
    edges = _Edges(transitions, accepts[:, :-1] == 0)
    open_ = np.bincount(edges.sources, minlength=len(transitions))  # classes not sure yet
    sure: Bools = np.zeros(len(transitions), bool)
    while (found := (open_ == 0) & (accepts[:, -1] != 0) & ~sure).any():
        sure |= found
        open_ -= np.bincount(edges.into(found), minlength=len(transitions))
    return sure


def surely_ending(transitions: Uint16, accepts: Uint8) -> Bools:
    """The states from which every text is accepted, at the latest at its end; never state 0."""
    edges = _Edges(transitions, accepts[:, :-1] == 0)
    unsure: Bools = accepts[:, -1] == 0
    unsure[0] = True
    found = unsure.copy()
    while found.any():
        found = (np.bincount(edges.into(found), minlength=len(transitions)) > 0) & ~unsure
        unsure |= found
    return ~unsure


class _Edges:
    """The `chosen` transitions, sorted by target."""

    def __init__(self, transitions: Uint16, chosen: Bools) -> None:
        flat = np.flatnonzero(chosen)
        targets = transitions.reshape(-1)[flat]
        order = np.argsort(targets, kind="stable")
        self.sources = flat[order] // transitions.shape[1]
        self.starts = np.searchsorted(targets[order], np.arange(len(transitions) + 1))

    def into(self, states: Bools) -> npt.NDArray[np.intp]:
        """The sources of the transitions into `states`, one for each transition."""
        numbers = np.flatnonzero(states).tolist()
        parts = [self.sources[self.starts[s] : self.starts[s + 1]] for s in numbers]
        return np.concatenate(parts) if parts else self.sources[:0]
