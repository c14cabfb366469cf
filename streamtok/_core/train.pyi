from typing import Any, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

from streamtok._core.encode import Scanner

@final
class PretokenTable:
    def __new__(cls) -> PretokenTable: ...
    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def export(
        self,
    ) -> tuple[
        npt.NDArray[np.uint8],
        npt.NDArray[np.uint32],
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint64],
    ]: ...
    def load(
        self,
        data: npt.NDArray[np.uint8],
        sizes: npt.NDArray[np.uint32],
        counts: npt.NDArray[np.uint64],
        firsts: npt.NDArray[np.uint64],
    ) -> None: ...

@final
class PretokenCounter:
    table: PretokenTable
    errors: str
    def __new__(cls, scanner: Scanner, errors: str) -> PretokenCounter: ...
    @property
    def pending(self) -> int: ...
    @property
    def bytes_in(self) -> int: ...
    @property
    def is_in_character(self) -> bool: ...
    @property
    def nbytes(self) -> int: ...
    def worker(self) -> PretokenCounter: ...
    def part_end(self, chunk: str | Buffer, start: int, size: int) -> tuple[int, int]: ...
    def feed(
        self,
        chunk: str | Buffer,
        start: int = 0,
        stop: int | None = None,
        final: bool = False,
        checked: bool = False,
    ) -> None: ...
    def check_bytes(
        self, chunk: str | Buffer, start: int, stop: int, final: bool, base: int
    ) -> None: ...
    def count_documents(self, documents: list[Any], start: int, stop: int) -> None: ...
    def go_on(self, other: PretokenCounter, more: bytes = b"") -> None: ...
    def restart(self) -> None: ...
    def getstate(self) -> tuple[int, bytes]: ...
    def setstate(self, bytes_in: int, pending: bytes) -> None: ...

@final
class MergeLoop:
    def __new__(
        cls,
        data: npt.NDArray[np.uint8] | npt.NDArray[np.uint32],
        sizes: npt.NDArray[np.uint32],
        counts: npt.NDArray[np.uint64],
        symbol_ids: npt.NDArray[np.uint32],
        most: int,
        min_frequency: int,
        by_position: bool,
        length_limit: int = 0xFFFFFFFF,
    ) -> MergeLoop: ...
    @property
    def n_merges(self) -> int: ...
    @property
    def most(self) -> int: ...
    def run(self, effort: int) -> bool: ...
    def merges(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]: ...
