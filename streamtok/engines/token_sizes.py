"""How many bytes of text each id stands for, as arrays: the way from ids to positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._types import IdArray
    from ..vocabulary.table import Vocabulary

__all__ = ["TokenSizes"]

_NO_ID = 2**32 - 1
_DENSE = 1 << 22  # ids; beyond them, sizes are searched


class TokenSizes:
    """The sizes of the tokens of a vocabulary, and of those whose texts are known."""

    def __init__(self, vocabulary: Vocabulary, texts: Mapping[str, int]) -> None:
        """texts: the special and added tokens, which stand for their own text."""
        ids = vocabulary.ids
        real = ids != _NO_ID
        known = dict(
            zip(ids[real].tolist(), np.diff(vocabulary.offsets)[real].tolist(), strict=True)
        )
        if vocabulary.byte_ids is not None:
            known |= dict.fromkeys(vocabulary.byte_ids.tolist(), 1)
        known.pop(_NO_ID, None)
        self._of_text = _Sizes(known)
        other = {id: len(text.encode()) for text, id in texts.items()}
        self._of_all = _Sizes(known | other)
        # Ids of two texts of different sizes: what they stand for depends on where they are.
        self._unclear = np.array(
            [id for id, size in other.items() if known.get(id, size) != size], np.int64
        )
        self.are_clear = not len(self._unclear)

    def of_text(self, ids: IdArray) -> npt.NDArray[Any]:
        """The size of each id, which is no special or added token; 0 for one that is."""
        return self._of_text.of(ids)

    def of_all(self, ids: IdArray) -> npt.NDArray[Any]:
        """The size of each id. Raises ValueError for one that also stands for another text."""
        if not self.are_clear and (found := np.isin(ids, self._unclear)).any():
            raise ValueError(
                f"id {ids[found][0]} is both of a special or added token and of another text, so "
                "the ids do not tell where it came from"
            )
        return self._of_all.of(ids)


class _Sizes:
    def __init__(self, known: Mapping[int, int]) -> None:
        ids = np.array(sorted(known), np.int64)
        sizes = np.array([known[id] for id in ids.tolist()], np.int64)
        most = int(sizes.max(initial=0))
        sizes = sizes.astype(np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else int)
        self._ids: npt.NDArray[np.int64] | None = ids
        self._sizes: npt.NDArray[Any] = sizes
        if len(ids) and ids[-1] < _DENSE:
            self._ids = None
            self._sizes = np.zeros(int(ids[-1]) + 1, sizes.dtype)
            self._sizes[ids] = sizes

    def of(self, ids: IdArray) -> npt.NDArray[Any]:
        if self._ids is None:
            found: npt.NDArray[Any] = self._sizes.take(ids, mode="clip")
            if len(ids) and ids.max() >= len(self._sizes):
                found[ids >= len(self._sizes)] = 0
            return found
        if not len(self._ids):
            return np.zeros(len(ids), np.uint8)
        at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.where(self._ids[at] == ids, self._sizes[at], 0)
