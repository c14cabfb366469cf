import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer, disjoint_base

from streamtok._core.stream import Tail

@disjoint_base
class QuickStream:
    max_pending: int
    def _set_quick(self, tail: Tail) -> None: ...
    def encode(self, chunk: str | Buffer, final: bool = False) -> list[int]: ...
    def encode_to_numpy(self, chunk: str | Buffer, final: bool = False) -> NDArray[np.uint32]: ...
