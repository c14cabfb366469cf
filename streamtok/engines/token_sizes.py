"""The size in bytes of each token of a merge vocabulary, to locate ids in a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import token_spans

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._types import IdArray
    from ..vocabulary.table import Vocabulary

__all__ = ["TokenSizes"]

_NO_ID = 2**32 - 1
_DENSE = 1 << 22  # ids; a vocabulary with larger ones is searched, not indexed


class TokenSizes:
    """The sizes of the tokens of a vocabulary. Immutable."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        ids, sizes = vocabulary.ids, np.diff(vocabulary.offsets).astype(np.uint16)
        of_bytes = np.empty(0, np.uint32) if vocabulary.byte_ids is None else vocabulary.byte_ids
        others = (ids != _NO_ID) & ~np.isin(ids, of_bytes)
        ids = np.concatenate([ids[others], of_bytes])
        sizes = np.concatenate([sizes[others], np.ones(len(of_bytes), np.uint16)])
        self._ids: IdArray | None = None
        if ids.max() < _DENSE:
            self._sizes = np.zeros(int(ids.max()) + 1, np.uint16)
            self._sizes[ids] = sizes
        else:
            order = np.argsort(ids)
            self._ids, self._sizes = ids[order], sizes[order]

    def spans(self, ids: IdArray, id_spans: npt.NDArray[np.int64], start: int) -> npt.NDArray[Any]:
        """int64 [n, 2]: byte spans, in the core's text, of the ids from a call of `Tail.encode`.

        id_spans: as that call returned them; start: `Tail.reached` before the call.
        """
        if self._ids is not None:
            ids = np.searchsorted(self._ids, ids).astype(np.uint32)
        return token_spans(ids, self._sizes, id_spans, start)
