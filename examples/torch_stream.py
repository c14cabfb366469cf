"""Blocks of token ids from endless documents, for PyTorch.

    loader = DataLoader(TokenBlocks(enc, documents, length=1024), batch_size=8, num_workers=2)

Documents are encoded one by one, an end-of-text token follows each, and the ids are cut into
blocks of a fixed length; what is left of one block begins the next. With several workers each
takes every n-th document. `state_dict()` says where the next block begins, and `load_state_dict`
goes on there; torchdata's `StatefulDataLoader` calls them in its workers, and with `num_workers=0`
you can call them yourself.

Without torch the same class is a plain iterable of NumPy arrays, which is how the tests run it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypedDict

import numpy as np

import streamtok

try:
    from torch.utils.data import IterableDataset, get_worker_info
except ImportError:
    IterableDataset = object  # type: ignore[assignment, misc]

    def get_worker_info() -> Any:
        """None, as in the process that makes the loader."""
        return None


class State(TypedDict):
    documents: int  # that were used up, of this worker's
    ids: list[int]  # of them, those that no block has yet


class TokenBlocks(IterableDataset):  # type: ignore[misc]
    """int64 arrays [length]: the ids of documents one after the other.

    documents: called for each pass, gives the documents in the same order each time.
    """

    def __init__(
        self,
        encoding: streamtok.Encoding,
        documents: Callable[[], Iterable[str | bytes]],
        length: int,
    ) -> None:
        super().__init__()
        self.encoding = encoding
        self.documents = documents
        self.length = length
        self._used = 0
        self._left = np.zeros(0, np.int64)

    def state_dict(self) -> State:
        """Where the next block of this worker begins; to be saved with the model."""
        return {"documents": self._used, "ids": self._left.tolist()}

    def load_state_dict(self, state: State) -> None:
        """The next pass begins where `state_dict` was called."""
        self._used, self._left = state["documents"], np.array(state["ids"], np.int64)

    def __iter__(self) -> Iterator[np.ndarray]:
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        used, left = self._used, self._left
        own = itertools.islice(self.documents(), first + used * step, None, step)
        while True:
            while len(left) >= self.length:
                block, left = left[: self.length], left[self.length :]
                self._used, self._left = used, left
                yield block
            document = next(own, None)
            if document is None:
                break
            ids = self.encoding.encode_to_numpy(document, disallowed_special=(), errors="replace")
            left = np.concatenate([left, ids, [self.encoding.eot_token]])
            used += 1
        self._used, self._left = 0, left[:0]  # the next pass begins anew
