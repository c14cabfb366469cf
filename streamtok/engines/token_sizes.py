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
        every = dict(known)
        unclear = []  # ids of two texts of different sizes: the place tells which it is
        for text, id in texts.items():
            size = len(text.encode())
            if every.setdefault(id, size) != size:
                unclear.append(id)
        self._of_all = _Sizes(every)
        self._unclear = np.array(unclear, np.int64)
        self.are_clear = not unclear

    @property
    def table(self) -> npt.NDArray[np.uint16] | None:
        """The sizes by id, 0 where there is none; None where not all are dense and small."""
        sizes = self._of_all.sizes
        return sizes if self._of_all.ids is None and sizes.dtype == np.uint16 else None

    def are_clear_of(self, ids: IdArray) -> bool:
        """Whether none of these ids stands for two texts of different sizes."""
        return self.are_clear or not np.isin(ids, self._unclear).any()

    def of_text(self, ids: IdArray) -> npt.NDArray[Any]:
        """The size of each id, which is not special or added; 0 for one that is."""
        return self._of_text.of(ids)

    def of_all(self, ids: IdArray) -> npt.NDArray[Any]:
        """The size of each id. Raises ValueError for one that also stands for another text."""
        if not self.are_clear_of(ids):
            unclear = ids[np.isin(ids, self._unclear)][0]
            raise ValueError(
                f"id {unclear} is both of a special or added token and of another text, so "
                "the ids do not tell where it came from"
            )
        return self._of_all.of(ids)


class _Sizes:
    def __init__(self, known: Mapping[int, int]) -> None:
        ids = np.array(sorted(known), np.int64)
        sizes = np.array([known[id] for id in ids.tolist()], np.int64)
        most = int(sizes.max(initial=0))
        sizes = sizes.astype(np.uint16 if most < 1 << 16 else np.int64)
        self.ids: npt.NDArray[np.int64] | None = ids
        self.sizes: npt.NDArray[Any] = sizes
        if len(ids) and ids[-1] < _DENSE:
            self.ids = None
            self.sizes = np.zeros(int(ids[-1]) + 1, sizes.dtype)
            self.sizes[ids] = sizes

    def of(self, ids: IdArray) -> npt.NDArray[Any]:
        if self.ids is None:
            found: npt.NDArray[Any] = self.sizes.take(ids, mode="clip")
            if len(ids) and ids.max() >= len(self.sizes):
                found[ids >= len(self.sizes)] = 0
            return found
        if not len(self.ids):
            return np.zeros(len(ids), np.uint16)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[at] == ids, self.sizes[at], 0)
