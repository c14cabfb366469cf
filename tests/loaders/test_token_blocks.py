"""Blocks of ids for the processes that train: against one list of all ids."""

from __future__ import annotations

import json
import pickle
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

import streamtok
from streamtok.errors import StateError
from streamtok.loaders.token_blocks import _shuffled


class Records(list[Any]):
    """Records that note which of them were read."""

    def __init__(self, sizes: list[int]):
        super().__init__()
        first = 0
        for size in sizes:
            self.append(np.arange(first, first + size, dtype=np.uint16))
            first += size
        self.read: list[int] = []

    def __getitem__(self, number: Any) -> Any:
        self.read.append(number)
        return super().__getitem__(number)


def records() -> Records:
    rng = random.Random(4)
    return Records([0, 1, 20, 3, 0, 7, *(rng.choice((0, 1, 2, 5, 30)) for _ in range(40)), 0])


def model(found: Records, order: list[int], length: int, first: int, step: int) -> list[list[int]]:
    """The blocks of one process: its records joined, and cut."""
    ids = [id for number in order[first::step] for id in list.__getitem__(found, number).tolist()]
    return [ids[at : at + length] for at in range(0, len(ids), length)]


@pytest.mark.parametrize("seed", [None, 0, 7])
@pytest.mark.parametrize("length", [1, 4, 64, 10_000])
@pytest.mark.parametrize(("ranks", "workers"), [(1, 1), (2, 1), (1, 3), (3, 2)])
def test_the_blocks_are_those_of_one_list(
    seed: int | None, length: int, ranks: int, workers: int
) -> None:
    found = records()
    everything: list[int] = []
    readers: dict[int, int] = {}  # which process read a record
    orders = []
    for epoch in range(2):
        order = list(range(len(found)))
        if seed is not None:
            order = [_shuffled(i, len(found), f"{seed} {epoch}") for i in order]
        orders.append(order)
    for rank in range(ranks):
        for worker in range(workers):
            who: dict[str, Any] = {"rank": rank, "ranks": ranks, "seed": seed}
            blocks = streamtok.TokenBlocks(found, length, **who).of_worker(worker, workers)
            first, step = rank + ranks * worker, ranks * workers
            for epoch, order in enumerate(orders):
                assert blocks.epoch == epoch
                found.read.clear()
                got = list(blocks)
                assert [one.tolist() for one in got] == model(found, order, length, first, step)
                assert all(one.dtype == np.int64 for one in got)
                if epoch == 0:
                    everything += [id for one in got for id in one.tolist()]
                    for number in found.read:
                        assert readers.setdefault(number, first) == first
    assert sorted(everything) == list(range(len(everything)))  # each id once
    assert len(everything) == sum(map(len, list.__iter__(found)))
    assert sorted(readers) == list(range(len(found)))
    if seed is not None:
        assert orders[0] != orders[1]
        assert orders[0] != sorted(orders[0])


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_going_on_after_any_block(seed: int | None, drop_last: bool) -> None:
    found = records()
    for rank, worker in (0, 0), (1, 1):
        who: dict[str, Any] = {
            "rank": rank, "ranks": 2, "worker": worker, "workers": 2, "seed": seed,
            "drop_last": drop_last,
        }  # fmt: skip
        blocks = streamtok.TokenBlocks(found, 7, **who)
        expected = [[block.tolist() for block in blocks] for _ in range(3)]
        assert all(
            len(block) == 7 for one in expected for block in one[: None if drop_last else -1]
        )
        blocks = streamtok.TokenBlocks(found, 7, **who)
        for epoch in range(2):
            for at, _ in enumerate(blocks, 1):
                state = json.loads(json.dumps(blocks.getstate()))
                again = streamtok.TokenBlocks(found, 7, **who)
                again.setstate(state)
                rest: list[list[int]] = []
                for _ in range(2):
                    rest += [block.tolist() for block in again]
                assert rest == expected[epoch][at:] + expected[epoch + 1]
                copied = pickle.loads(pickle.dumps(blocks))
                assert copied.getstate() == state


def test_going_on_reads_no_record_again() -> None:
    found = Records([3] * 1000)
    blocks = streamtok.TokenBlocks(found, 6, seed=1)
    reader = iter(blocks)
    for _ in range(400):
        next(reader)
    again = streamtok.TokenBlocks(found, 6, seed=1)
    found.read.clear()
    again.setstate(blocks.getstate())
    assert next(iter(again)).tolist() == next(reader).tolist()
    assert len(set(found.read)) <= 3
    assert len(found.read) <= 6  # both of them


def test_a_state_of_other_processes_is_refused() -> None:
    found = records()
    who: dict[str, Any] = {"rank": 1, "ranks": 3, "worker": 0, "workers": 2, "seed": 5}
    blocks = streamtok.TokenBlocks(found, 8, **who)
    next(iter(blocks))
    state = blocks.getstate()
    for name, value in (
        ("ranks", 4), ("rank", 2), ("workers", 3), ("worker", 1), ("seed", 6), ("seed", None),
        ("drop_last", True),
    ):  # fmt: skip
        other = streamtok.TokenBlocks(found, 8, **{**who, name: value})
        before = other.getstate()
        with pytest.raises(StateError, match=f"the state is of {name} "):
            other.setstate(state)
        assert other.getstate() == before
    with pytest.raises(StateError, match="of length 8, not 9"):
        streamtok.TokenBlocks(found, 9, **who).setstate(state)
    with pytest.raises(StateError, match="of records 47, not 46"):
        streamtok.TokenBlocks(found[:-1], 8, **who).setstate(state)
    for bad in (
        {},
        [],
        None,
        {**state, "at": -1},
        {**state, "offset": "x"},
        {**state, "epoch": 0.0},
    ):
        with pytest.raises(StateError, match="not a state"):
            blocks.setstate(bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="were begun, or belong to a worker"):
        blocks.of_worker(0, 2)
    alone = streamtok.TokenBlocks(found, 8)
    next(iter(alone))
    with pytest.raises(ValueError, match="were begun"):
        alone.of_worker(0, 2)
    alone.epoch = 0  # which it is
    with pytest.raises(ValueError, match="were begun"):
        alone.of_worker(0, 2)
    alone.epoch = 4
    assert alone.of_worker(1, 2).epoch == 4


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"length": 0}, "length must be a positive number, not 0"),
        ({"length": 2.0}, "length must be"),
        ({"ranks": 0}, "ranks must be"),
        ({"workers": True}, "workers must be"),
        ({"rank": 1}, "rank must be one of 0 to 0, not 1"),
        ({"worker": -1, "workers": 2}, "worker must be one of 0 to 1, not -1"),
        ({"seed": "x"}, "seed must be"),
    ],
)
def test_bad_arguments(args: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        streamtok.TokenBlocks([[1]], **{"length": 4, **args})
    with pytest.raises(ValueError, match="epoch must be"):
        streamtok.TokenBlocks([[1]], 4).epoch = -1


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000])
def test_a_shuffle_is_a_permutation(count: int) -> None:
    for key in "a", "b":
        assert sorted(_shuffled(i, count, key) for i in range(count)) == list(range(count))


def test_a_shuffle_is_even_and_stays_what_it_is() -> None:
    assert [_shuffled(i, 10, "0 0") for i in range(10)] == [2, 6, 5, 8, 7, 4, 0, 3, 1, 9]
    firsts = Counter(_shuffled(0, 5, f"{seed} 0") for seed in range(5000))
    assert sorted(firsts) == list(range(5))
    assert max(firsts.values()) - min(firsts.values()) < 250
    assert _shuffled(12345, 10**12, "1 1") < 10**12
