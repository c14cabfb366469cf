import numpy as np
import numpy.typing as npt

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
def pairs(spans: npt.NDArray[np.int64]) -> list[tuple[int, int]]: ...
