import numpy as np
import numpy.typing as npt

def find_makers(
    blob: bytes, offsets: npt.NDArray[np.uint32], merges: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]: ...
