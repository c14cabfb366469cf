"""Blocks of token ids for PyTorch: for each process that trains, and each worker of its loader.

    files = streamtok.TokenFiles("train.ds")     # or EncodedTexts(enc, texts)
    loader = DataLoader(TorchBlocks(files, length=1024, seed=0), batch_size=8, num_workers=2)

`streamtok.TokenBlocks` does the work: it deals the records to all processes and workers, cuts them
into blocks, and has a state, which only the same process with as many workers takes. Here it learns
from torch which process and which worker this is. torchdata's `StatefulDataLoader` calls
`state_dict` and `load_state_dict` in the workers; with `num_workers=0` you can call them yourself.

Without torch the same class is a plain iterable of NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import streamtok

try:
    from torch import distributed
    from torch.utils.data import IterableDataset, get_worker_info
except ImportError:
    distributed = None  # type: ignore[assignment]
    IterableDataset = object  # type: ignore[assignment, misc]

    def get_worker_info() -> Any:
        """None, as in the process that makes the loader."""
        return None


def this_process() -> tuple[int, int]:
    """(rank, number of processes) of the process group, if there is one."""
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


class TorchBlocks(IterableDataset):  # type: ignore[misc]
    """int64 arrays [length] of the ids in records; arguments as for `streamtok.TokenBlocks`.

    Make it when the process group is there, or give rank and ranks. `set_epoch` before each pass,
    as for a DistributedSampler: workers that are started anew do not know which pass it is.
    """

    def __init__(
        self,
        records: Sequence[Any],
        length: int,
        *,
        seed: int | None = None,
        rank: int | None = None,
        ranks: int | None = None,
        drop_last: bool = True,  # a batch needs blocks of one length
    ) -> None:
        super().__init__()
        if rank is None or ranks is None:
            rank, ranks = this_process()
        self.blocks = streamtok.TokenBlocks(
            records, length, rank=rank, ranks=ranks, seed=seed, drop_last=drop_last
        )
        self._own: streamtok.TokenBlocks | None = None

    def own(self) -> streamtok.TokenBlocks:
        """The blocks of this worker."""
        worker = get_worker_info()
        if worker is None:
            return self.blocks
        if self._own is None:
            self._own = self.blocks.of_worker(worker.id, worker.num_workers)
        return self._own

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.own())

    def set_epoch(self, epoch: int) -> None:
        """Begin this pass."""
        self.blocks.epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """Where the next block of this worker begins; to be saved with the model."""
        return self.own().getstate()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next pass begin where `state_dict` was called."""
        self.own().setstate(state)


class EncodedTexts(Sequence[Any]):
    """Texts as records: each is encoded when it is read, and the id `end` follows it."""

    def __init__(
        self, encoding: streamtok.Encoding, texts: Sequence[str], end: int | None = None
    ) -> None:
        self.encoding = encoding
        self.texts = texts
        self.end = encoding.eot_token if end is None else end

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, number: Any) -> Any:
        text = self.texts[number]
        ids = self.encoding.encode_to_numpy(text, disallowed_special=(), errors="replace")
        return np.append(ids, np.uint32(self.end))
