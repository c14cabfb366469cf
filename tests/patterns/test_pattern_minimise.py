"""The fast algorithms over automata against slow and obvious ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtok.patterns.minimise import equivalent_states, surely_accepting, surely_ending


def all_lead_to(states: set[int], state: int, transitions: Any, accepts: Any) -> bool:
    """Whether `state` accepts at the end, and before each class or else goes on to `states`."""
    onward = transitions[state][accepts[state, :-1] == 0]
    return bool(accepts[state, -1]) and set(onward.tolist()) <= states


def test_minimal_automata_are_what_rounds_over_all_states_give() -> None:
    """Hopcroft's algorithm against Moore's, which is slow and obvious."""
    rng = np.random.default_rng(11)
    for _ in range(300):
        n, k = int(rng.integers(2, 14)), int(rng.integers(1, 4))
        transitions = rng.integers(0, n, (n, k)).astype(np.uint16)
        accepts = (rng.random((n, k + 1)) < rng.choice([0.1, 0.5, 0.9])).astype(np.uint8)
        transitions[0], accepts[0] = 0, 0
        found = equivalent_states(transitions, accepts).tolist()
        block = [tuple(row) for row in accepts.tolist()]
        while True:
            finer = [(block[s], tuple(block[t] for t in transitions[s].tolist())) for s in range(n)]
            finer = [finer.index(x) for x in finer]
            if len(set(finer)) == len(set(block)):
                break
            block = finer
        assert [found.index(x) for x in found] == [block.index(x) for x in block]
        sure, ending = set[int](), set(range(1, n))
        for _ in range(n):
            sure = {s for s in range(n) if all_lead_to(sure, s, transitions, accepts)}
            ending = {s for s in ending if all_lead_to(ending, s, transitions, accepts)}
        assert set(np.flatnonzero(surely_accepting(transitions, accepts))) == sure
        assert set(np.flatnonzero(surely_ending(transitions, accepts))) == ending
