"""Blocks of token ids for PyTorch, from a file that `streamtok encode` wrote.

    blocks = TokenBlocks("train.u16", length=1024)
    sampler = DistributedSampler(blocks)  # shuffles, and deals the blocks to all processes
    loader = DataLoader(blocks, batch_size=8, sampler=sampler, num_workers=2)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for rows in loader:  # int64 [8, 1025]
            inputs, targets = rows[:, :-1], rows[:, 1:]

With torchdata's `StatefulDataLoader` in place of `DataLoader`, a stopped training continues with
the next batch. Without torch, the class is a sequence of NumPy arrays: stack them for JAX.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

try:
    from torch.utils.data import Dataset
except ImportError:
    Dataset = object  # type: ignore[assignment, misc]


class TokenBlocks(Dataset):  # type: ignore[misc]
    """int64 arrays [length + 1]: the inputs are block[:-1], the targets block[1:].

    path: a file of ids, .npy, .u16 or .u32; only blocks that are asked for are read. Ids at the end
    that do not fill a block are left out.
    """

    def __init__(self, path: str, length: int) -> None:
        self.path = path
        self.length = length
        suffix = os.path.splitext(path)[1]
        if suffix == ".npy":
            self.ids = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            self.ids = np.memmap(path, {".u16": "<u2", ".u32": "<u4"}[suffix], "r")

    def __len__(self) -> int:
        return (len(self.ids) - 1) // self.length

    def __getitem__(self, number: int) -> np.ndarray:
        if not 0 <= number < len(self):
            raise IndexError(number)
        start = number * self.length
        return self.ids[start : start + self.length + 1].astype(np.int64)

    def __reduce__(self) -> Any:  # workers open the file again
        return type(self), (self.path, self.length)
