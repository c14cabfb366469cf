from typing import Any, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

from streamtok._core.scanner import Scanner
from streamtok._core.special import SpecialMatcher
from streamtok._core.vocab import TokenTable

@final
class Encoder:
    table: TokenTable
    scanner: Scanner | None
    def __new__(cls, table: TokenTable, scanner: Scanner | None) -> Encoder: ...
    def cache_bytes(self) -> int: ...
    def release(self) -> None: ...
    def encode(
        self, data: str | Buffer, matcher: SpecialMatcher, errors: str, into: str
    ) -> Any: ...
    def encode_split(self, data: Buffer, ends: npt.NDArray[np.int64], into: str) -> Any: ...
    def encode_piece(self, piece: Buffer) -> list[int]: ...
