from typing import final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

from streamtok.pattern import Pattern

@final
class Scanner:
    n_states: int
    def __new__(cls, pattern: Pattern, stand_ins: npt.NDArray[np.uint8] | None) -> Scanner: ...
    def use_tier(self, number: int) -> str | None: ...
    def marks(
        self, text: Buffer, start: int, blocks: int, stand_ins: bool = False
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]: ...
    def stand_in(self, text: Buffer, start: int, size: int) -> npt.NDArray[np.uint8]: ...

def make_steps(
    accepts: npt.NDArray[np.bool_], transitions: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]: ...
