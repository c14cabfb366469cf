from collections.abc import Iterable
from typing import Any, final

import numpy.typing as npt

from streamtok._core.vocab import TokenTable

class UnknownId(KeyError):
    id: int
    position: int
    def __init__(self, id: int, position: int) -> None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Decoder:
    def __new__(
        cls,
        table: TokenTable,
        specials: dict[int, bytes],
        others: dict[int, bytes] | None = None,
    ) -> Decoder: ...
    def token_bytes(self, id: int) -> bytes: ...
    def decode(
        self, ids: Iterable[int] | npt.NDArray[Any], skip_special: bool = False
    ) -> bytes: ...
