from typing import final

import numpy as np
import numpy.typing as npt

def spell(
    lefts: npt.NDArray[np.uint32], rights: npt.NDArray[np.uint32], spelled: bytes | memoryview
) -> tuple[bytes, npt.NDArray[np.uint32]]: ...

@final
class TokenTable:
    max_id: int
    is_dense: bool
    is_rising: bool
    def __new__(
        cls,
        blob: bytes,
        offsets: npt.NDArray[np.uint32],
        ids: npt.NDArray[np.uint32],
        lefts: npt.NDArray[np.uint32] | None = None,
        byte_ids: npt.NDArray[np.uint32] | None = None,
        ties: npt.NDArray[np.uint32] | None = None,
        parts: tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]] | None = None,
    ) -> TokenTable: ...
    def prepare_prefixes(self) -> None: ...
    def sorted(self) -> list[int]: ...
    def find(self, token: bytes) -> int | None: ...
    def lefts(self) -> npt.NDArray[np.uint32]: ...
    @property
    def longest(self) -> int: ...
    @property
    def longest_unreachable(self) -> int: ...
