"""What goes wrong where chunks are encoded one by one: which ids the whole text does not have.

*Naive* decodes each chunk with errors="replace" and encodes it by itself, as is often done. An id
is right if encoding the whole text gives the same id at the same byte.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..encoding import Encoding

    Offsets = npt.NDArray[np.int64]

__all__ = ["Offline", "encode_naively"]


def encode_naively(encoding: Any, chunk: bytes) -> list[int]:
    """list[int]: a chunk by itself. encoding: streamtok's or tiktoken's."""
    ids: list[int] = encoding.encode(chunk.decode("utf-8", "replace"), disallowed_special=())
    return ids


class Offline:
    """The ids of a whole text, for comparison. The text must be UTF-8."""

    def __init__(self, data: bytes, encoding: Encoding):
        self.data, self.encoding = data, encoding
        self.ids, self.spans = encoding.encode_with_offsets(data, "byte", disallowed_special=())
        self.id_at: Offsets = np.full(len(data) + 1, -1, np.int64)  # that starts there, or -1
        self.id_at[self.spans[:, 0]] = self.ids
        # Where an engine changes the text or leaves some out, or a model has unknown pieces, sizes
        # of tokens are not offsets, and several ids may begin at one place.
        self._pairs: set[tuple[int, int]] | None = None
        are_sizes = encoding._is_plain and encoding._vocabulary.model is None
        if not are_sizes or encoding.pattern is None or not encoding.pattern.is_total:
            self._pairs = {*zip(self.spans[:, 0].tolist(), self.ids.tolist(), strict=True)}

    def cuts(self, chunk_size: int) -> Offsets:
        """int64: the positions between two chunks of so many bytes."""
        return np.arange(chunk_size, len(self.data), chunk_size)

    def is_inside_token(self, cuts: Offsets) -> npt.NDArray[np.bool_]:
        """bool: for each cut, whether no id of the whole text starts there."""
        return self.id_at[cuts] < 0

    def right(self, begin: int, chunk: bytes, ids: Sequence[int]) -> npt.NDArray[np.bool_]:
        """bool: for each id of a chunk encoded by itself, whether the whole text has it there."""
        starts = self.naive_starts(begin, chunk, ids)
        inside = (starts >= begin + _strays(chunk)) & (starts < begin + len(chunk))
        found = np.zeros(len(starts), np.bool_)
        if self._pairs is None:
            found[inside] = self.id_at[starts[inside]] == np.array(ids, np.int64)[inside]
        else:
            pairs = zip(starts.tolist(), ids, strict=True)
            found[:] = inside & np.fromiter((pair in self._pairs for pair in pairs), np.bool_)
        return found

    def naive_starts(self, begin: int, chunk: bytes, ids: Sequence[int]) -> Offsets:
        """int64: where in the whole text each id of a chunk encoded by itself would begin.

        Not in the chunk for ids of U+FFFD that stand for the rest of a character.
        """
        if self._pairs is None:
            sizes = self.encoding._token_sizes.of_all(np.array(ids, np.uint32)).astype(np.int64)
            starts = np.cumsum(sizes) - sizes
        else:
            text = chunk.decode("utf-8", "replace")
            starts = self.encoding.encode_with_offsets(text, "byte", disallowed_special=())[1][:, 0]
        return begin + starts - 2 * _strays(chunk)

    def errors(self, chunks: Sequence[bytes], results: Sequence[Sequence[int]]) -> dict[str, int]:
        """dict: how many ids of naive `results` are wrong, and how many chunks do not come back."""
        right = begin = 0
        for chunk, ids in zip(chunks, results, strict=True):
            right += int(np.count_nonzero(self.right(begin, chunk, ids)))
            begin += len(chunk)
        return {
            "wrong_tokens": sum(map(len, results)) - right,
            "broken_chunks": sum(
                map(operator.ne, map(self.encoding.decode_bytes, results), chunks)
            ),
        }


def _strays(chunk: bytes) -> int:
    """Bytes of a character begun in the chunk before. Each becomes a U+FFFD, which has 3 bytes."""
    strays = 0
    while strays < min(3, len(chunk)) and 0x80 <= chunk[strays] < 0xC0:
        strays += 1
    return strays
