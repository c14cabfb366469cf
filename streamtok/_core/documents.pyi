from typing import Any

import numpy as np
import numpy.typing as npt

from streamtok._core.encoder import Encoder
from streamtok._core.special import SpecialMatcher

def encode_documents(
    encoder: Encoder,
    texts: list[Any],
    matcher: SpecialMatcher,
    errors: str,
    before: int,
    after: int,
) -> tuple[npt.NDArray[np.uint32], list[int]] | None: ...
