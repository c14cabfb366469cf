from typing import final

import numpy as np
import numpy.typing as npt

from streamtok.pattern import Pattern

@final
class Scanner:
    n_states: int
    def __new__(cls, pattern: Pattern) -> Scanner: ...

def make_steps(
    accepts: npt.NDArray[np.bool_], transitions: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]: ...
