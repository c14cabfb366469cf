"""`Pieces`: how a pre-token becomes ids in a model without merges."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import PieceModel

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Pieces"]

_NO_ID = 2**32 - 1  # of a byte that has none


class Pieces:
    """The pieces of a model, with their ids. Immutable, and can be pickled.

    kind: "WordPiece", "WordLevel", "Unigram", or "SentencePiece unigram", "… word" or "… char".
    blob, offsets, ids: the pieces end to end, in order of their bytes; piece i is
    blob[offsets[i]:offsets[i + 1]]. unknown: the id of a pre-token that has no pieces (Unigram: of
    a run of characters). Of WordPiece alone: prefix, of the pieces that are not the first of their
    pre-token, and most_characters, of a pre-token that is not unknown. Of the others but WordLevel:
    scores, by id, and byte_ids, of the bytes of unknown text. mark: put before a pre-token that
    does not begin with it, as Metaspace does after WhitespaceSplit.
    """

    __slots__ = (
        "blob", "byte_ids", "core", "ids", "kind", "mark", "most_characters", "offsets", "prefix",
        "scores", "unknown",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        blob: bytes,
        offsets: npt.NDArray[np.uint32],
        ids: npt.NDArray[np.uint32],
        unknown: int,
        prefix: str = "",
        most_characters: int = 0,
        scores: npt.NDArray[np.float64] | None = None,
        byte_ids: npt.NDArray[np.uint32] | None = None,
        mark: str = "",
    ) -> None:
        """Raises ValueError for arrays that do not fit together, TypeError for other types."""
        self.kind, self.blob, self.unknown = kind, blob, unknown
        self.prefix, self.most_characters, self.mark = prefix, most_characters, mark
        self.offsets, self.ids = _frozen(offsets, np.uint32), _frozen(ids, np.uint32)
        self.scores = None if scores is None else _frozen(scores, np.float64)
        self.byte_ids = None if byte_ids is None else _frozen(byte_ids, np.uint32)
        self.core = PieceModel(
            kind, blob, self.offsets, self.ids, unknown, prefix.encode(), most_characters,
            self.scores, self.byte_ids, mark.encode(),
        )  # fmt: skip

    @classmethod
    def of_ids(cls, kind: str, ids: Mapping[str, int], unknown: int, **more: Any) -> Pieces:
        """Those of a dictionary; more: what else the model has."""
        return cls(kind, *_in_order(ids), unknown, **more)

    @classmethod
    def of_scores(
        cls, pieces: Sequence[tuple[str, float]], unknown: int, has_fallback: bool
    ) -> Pieces:
        """Unigram: the pieces with their scores, by id.

        has_fallback: an unknown run becomes the ids of <0x00> … <0xFF> for its bytes, if it can.
        """
        ids = {text: id for id, (text, _) in enumerate(pieces)}
        byte_ids = None
        if has_fallback:
            known = [ids.get(f"<0x{byte:02X}>", _NO_ID) for byte in range(256)]
            byte_ids = np.array(known, np.uint32)
        scores = np.array([score for _, score in pieces], np.float64)
        return cls("Unigram", *_in_order(ids), unknown, scores=scores, byte_ids=byte_ids)

    def with_mark(self, mark: str) -> Pieces:
        """The same pieces, with this mark before pre-tokens."""
        return Pieces(
            self.kind, self.blob, self.offsets, self.ids, self.unknown, self.prefix,
            self.most_characters, self.scores, self.byte_ids, mark,
        )  # fmt: skip

    @property
    def digest(self) -> str:
        """The SHA-256 of all that decides about ids, in hexadecimal."""
        about = self.kind, self.unknown, self.prefix, self.most_characters, self.mark
        sha = hashlib.sha256(repr(about).encode())
        for array in (self.offsets, self.ids, self.scores, self.byte_ids):
            if array is not None:
                sha.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
        sha.update(self.blob)
        return sha.hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return Pieces, (
            self.kind, self.blob, self.offsets, self.ids, self.unknown, self.prefix,
            self.most_characters, self.scores, self.byte_ids, self.mark,
        )  # fmt: skip


def _frozen(array: npt.NDArray[Any], dtype: Any) -> npt.NDArray[Any]:
    if array.dtype != dtype or array.ndim != 1:
        raise TypeError(f"expected a flat array of {np.dtype(dtype)}, found {array.dtype}")
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


def _in_order(
    ids: Mapping[str, int],
) -> tuple[bytes, npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    texts = sorted(ids)  # code points are in the order of their UTF-8
    parts = [text.encode() for text in texts]
    offsets = np.zeros(len(parts) + 1, np.uint32)
    np.cumsum([*map(len, parts)], dtype=np.uint32, out=offsets[1:])
    return b"".join(parts), offsets, np.array([*map(ids.__getitem__, texts)], np.uint32)
