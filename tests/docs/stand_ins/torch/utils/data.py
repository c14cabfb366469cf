"""Datasets and their loader; each worker has a copy of the dataset, as a process would."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np


class IterableDataset:
    pass


class WorkerInfo(NamedTuple):
    id: int
    num_workers: int


_here: list[WorkerInfo] = []  # which worker this is


def get_worker_info() -> WorkerInfo | None:
    return _here[0] if _here else None


class DataLoader:
    """Batches of whole workers in turn. With states, as torchdata's StatefulDataLoader has."""

    def __init__(self, dataset: Any, batch_size: int, num_workers: int = 0):
        self.dataset = dataset
        self.batch_size = batch_size
        self.num_workers = num_workers
        self._workers = [dataset]
        self._restored: list[Any] | None = None

    def _in(self, number: int, function: Any, *args: Any) -> Any:
        _here[:] = [WorkerInfo(number, self.num_workers)] if self.num_workers else []
        try:
            return function(*args)
        finally:
            _here.clear()

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers:
            data = pickle.dumps(self.dataset)
            self._workers = [pickle.loads(data) for _ in range(self.num_workers)]
        for number, state in enumerate(self._restored or ()):
            self._in(number, self._workers[number].load_state_dict, state)
        self._restored = None
        readers = [self._in(i, iter, one) for i, one in enumerate(self._workers)]
        left = list(range(len(readers)))
        while left:
            for number in tuple(left):
                batch = self._in(number, list, itertools.islice(readers[number], self.batch_size))
                if not batch:
                    left.remove(number)
                    continue
                yield np.stack(batch)

    def state_dict(self) -> list[Any]:
        return [self._in(i, one.state_dict) for i, one in enumerate(self._workers)]

    def load_state_dict(self, states: list[Any]) -> None:
        self._restored = states
