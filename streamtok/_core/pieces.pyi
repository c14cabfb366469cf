from typing import final

import numpy as np
import numpy.typing as npt

@final
class PieceTable:
    limit: int
    def __new__(cls, limit: int = 0) -> PieceTable: ...
    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def absorb(self, other: PieceTable, shift: int = 0) -> bool: ...
    def prune(self) -> tuple[int, int]: ...
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
    ) -> bool: ...
