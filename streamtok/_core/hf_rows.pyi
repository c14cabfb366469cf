import numpy as np
import numpy.typing as npt

from .encode import TokenTable

def fill_rows(
    ids: npt.NDArray[np.uint32],
    ends: npt.NDArray[np.int64],
    matrix: npt.NDArray[np.int64],
    mask: npt.NDArray[np.int64] | None,
    before: tuple[int, ...],
    after: tuple[int, ...],
    most: int,
    cuts_left: bool,
    pads_left: bool,
    filling: int,
) -> None: ...
def list_rows(
    table: TokenTable,
    ids: npt.NDArray[np.uint32],
    ends: npt.NDArray[np.int64],
    before: tuple[int, ...],
    after: tuple[int, ...],
    most: int,
    cuts_left: bool,
    width: int,
    pads_left: bool,
    filling: int,
) -> list[list[int]]: ...
