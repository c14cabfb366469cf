from typing import final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

from streamtok._core.scanner import Scanner
from streamtok._core.special import SpecialMatcher

@final
class Cuts:
    def __new__(cls, scanner: Scanner, clean_cut_pairs: npt.NDArray[np.bool_]) -> Cuts: ...
    def find(
        self,
        text: str | Buffer,
        matcher: SpecialMatcher,
        start: int,
        stop: int,
        from_end: bool = False,
    ) -> int: ...
