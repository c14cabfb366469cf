from typing import final

import numpy as np
import numpy.typing as npt

@final
class MergeLoop:
    def __new__(
        cls,
        data: npt.NDArray[np.uint8],
        sizes: npt.NDArray[np.uint32],
        counts: npt.NDArray[np.uint64],
        byte_ids: npt.NDArray[np.uint32],
        most: int,
        min_frequency: int,
        by_place: bool,
        fall: int = 4096,
    ) -> MergeLoop: ...
    @property
    def n_merges(self) -> int: ...
    @property
    def most(self) -> int: ...
    def run(self, effort: int) -> bool: ...
    def merges(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]: ...
