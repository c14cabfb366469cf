"""Blocks of a fixed length from records of ids, for each of the processes that train.

The records of a pass are numbered, in their own order or shuffled, and dealt: of `n` processes each
takes every n-th. It joins the ids of its records and cuts them into blocks. So the position of the
next block is the number of a record and an offset in it, and to go on there reads one record.

The order of a shuffled pass is a permutation that is computed for one number at a time (a Feistel
network over the bits of the number, as format-preserving ciphers have). It needs no memory, and it
is the same in each version of Python and NumPy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import StateError

if TYPE_CHECKING:
    import numpy.typing as npt

    Block = npt.NDArray[np.int64]

_ROUNDS = 4


class TokenBlocks:
    """An iterable over blocks of ids for one of the processes that train together.

    >>> records = [[1, 2, 3], [4, 5], [6, 7, 8, 9]]
    >>> blocks = streamtok.TokenBlocks(records, 4)
    >>> next(iter(blocks)).tolist()
    [1, 2, 3, 4]
    >>> state = blocks.getstate()
    >>> blocks.setstate(state)
    >>> [block.tolist() for block in blocks]
    [[5, 6, 7, 8], [9]]

    records: a sequence (`len` and integer indices) of ids, such as `TokenFiles`. length: ids in a
    block. rank of ranks: this process among those of all machines; worker of workers: this process
    among those that load for it. seed: shuffle the records, in another order in each pass; None:
    keep their order. drop_last: leave out the last block of a pass if it has fewer ids.

    Each iteration goes on where the last one stopped, up to the end of the pass, and the one after
    that begins the next pass. From the state of a process that has ended its pass nothing comes
    before the next pass: the others may still be in the old one.

    In a pass, each record goes to exactly one process, and each id into exactly one block, except
    for those that `drop_last` leaves out. Processes may get different numbers of blocks. Blocks are
    new arrays, int64 [length]. A block costs the records that it is made of, wherever the pass
    begins. Raises ValueError.
    """

    def __init__(
        self,
        records: Sequence[Any],
        length: int,
        *,
        rank: int = 0,
        ranks: int = 1,
        worker: int = 0,
        workers: int = 1,
        seed: int | None = None,
        drop_last: bool = False,
    ):
        for name, value, least in (
            ("length", length, 1), ("ranks", ranks, 1), ("workers", workers, 1),
        ):  # fmt: skip
            if type(value) is not int or value < least:
                raise ValueError(f"{name} must be a positive number, not {value!r}")
        for name, value, limit in ("rank", rank, ranks), ("worker", worker, workers):
            if type(value) is not int or not 0 <= value < limit:
                raise ValueError(f"{name} must be one of 0 to {limit - 1}, not {value!r}")
        if seed is not None and type(seed) is not int:
            raise ValueError(f"seed must be a number or None, not {seed!r}")
        self._records = records
        self._drop_last = drop_last
        # What must be the same where a state is taken up.
        self._who: dict[str, Any] = {
            "ranks": ranks,
            "rank": rank,
            "workers": workers,
            "worker": worker,
            "length": length,
            "seed": seed,
            "drop_last": drop_last,
            "records": len(records),
        }
        self._first, self._step = rank + ranks * worker, ranks * workers
        self._place = 0, 0, 0  # the pass, the number among our records of it, the id in that record
        self._has_ended = False  # that pass, so that the next one is due

    def of_worker(self, worker: int, workers: int) -> TokenBlocks:
        """The blocks of one of `workers` processes that share those of this object.

        They begin where this pass does. Raises ValueError if this object is in the middle of one.
        """
        has_begun = self._place[1:] != (0, 0) and not self._has_ended
        if has_begun or self._who["workers"] != 1:
            raise ValueError("blocks that were begun, or belong to a worker, cannot be shared")
        made = TokenBlocks(
            self._records,
            self._who["length"],
            rank=self._who["rank"],
            ranks=self._who["ranks"],
            worker=worker,
            workers=workers,
            seed=self._who["seed"],
            drop_last=self._drop_last,
        )
        made.epoch = self.epoch
        return made

    @property
    def epoch(self) -> int:
        """The number of the pass, from 0 on. If another one is set, that pass begins."""
        return self._place[0] + self._has_ended

    @epoch.setter
    def epoch(self, number: int) -> None:
        if type(number) is not int or number < 0:
            raise ValueError(f"epoch must be a number from 0 on, not {number!r}")
        if number != self.epoch:
            self._place, self._has_ended = (number, 0, 0), False

    def __iter__(self) -> Iterator[Block]:
        length = self._who["length"]
        if self._has_ended:
            self._place, self._has_ended = (self.epoch, 0, 0), False
        epoch, at, offset = self._place
        parts: list[Any] = []
        size = 0
        for number in range(at, self._count):
            ids = np.asarray(self._records[self._record(number, epoch)])
            while offset < len(ids):
                part = ids[offset : offset + length - size]
                parts.append(part)
                size += len(part)
                offset += len(part)
                if size == length:
                    self._place = epoch, number, offset
                    yield np.concatenate(parts, dtype=np.int64, casting="unsafe")
                    parts, size = [], 0
            offset = 0
        self._place, self._has_ended = (epoch, self._count, 0), True
        if size and not self._drop_last:
            yield np.concatenate(parts, dtype=np.int64, casting="unsafe")

    @property
    def _count(self) -> int:
        """How many records of a pass are ours."""
        return len(range(self._first, self._who["records"], self._step))

    def _record(self, number: int, epoch: int) -> int:
        """Our record `number` of a pass."""
        place = self._first + number * self._step
        seed = self._who["seed"]
        return place if seed is None else _shuffled(place, self._who["records"], f"{seed} {epoch}")

    def getstate(self) -> dict[str, Any]:
        """Where the next block begins, and in which process, as JSON. Costs nothing."""
        epoch, record, offset = self._place
        return {**self._who, "epoch": epoch, "at": record, "offset": offset}

    def setstate(self, state: dict[str, Any]) -> None:
        """Let the next iteration begin where `getstate` was called, also in another process.

        Raises StateError for the state of another process, of another number of processes or of
        other settings or records, and if it is not a state; nothing has changed then.
        """
        try:
            for name, value in self._who.items():
                if state[name] != value:
                    raise StateError(
                        f"the state is of {name} {state[name]}, not {value}: continue with the "
                        "same processes and settings, or begin a new pass"
                    )
            place = tuple(state[name] for name in ("epoch", "at", "offset"))
        except (KeyError, TypeError) as error:
            raise StateError(f"not a state of TokenBlocks: {error!r}") from None
        if any(type(one) is not int or one < 0 for one in place):
            raise StateError(f"not a state of TokenBlocks: its place is {place}")
        self._place, self._has_ended = (place[0], place[1], place[2]), False


def _shuffled(place: int, count: int, key: str) -> int:
    """The number, below `count`, that a permutation puts at a position."""
    half = max((count - 1).bit_length() + 1, 2) // 2
    mask = (1 << half) - 1
    while True:  # at most four times on average: the network permutes the numbers below 4**half
        left, right = place >> half, place & mask
        for number in range(_ROUNDS):
            text = f"{key} {number} {right}".encode()
            mixed = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
            left, right = right, left ^ mixed & mask
        place = left << half | right
        if place < count:
            return place
