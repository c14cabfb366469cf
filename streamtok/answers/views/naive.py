"""Naive chunking: each chunk is decoded with "replace" and encoded by itself, as is often done.

An id of a chunk is right if the whole text has the same id at the same byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from ...encoding import Encoding

    Pairs = npt.NDArray[np.int64]


def encode_naively(encoding: Encoding, chunk: bytes, begin: int = 0) -> Pairs:
    """int64 [n, 2]: the ids of a chunk that begins at byte `begin`, and where each begins."""
    ids, spans = encoding.encode_with_offsets(
        chunk, "byte", disallowed_special=(), errors="replace"
    )
    return np.stack([ids.astype(np.int64), spans[:, 0] + begin], axis=1)


def are_right(naive: Any, whole: Any) -> npt.NDArray[np.bool_]:
    """bool: for each naive id, whether the whole text has it there. Both: pairs (id, start)."""
    return np.isin(_joined(naive), _joined(whole))


def _joined(pairs: Any) -> npt.NDArray[np.int64]:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 1] << 32 | table[:, 0]
