"""Ids to bytes."""

cimport cython

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from streamtok._core.types cimport NONE, i64, u8, u32, u64
from streamtok._core.vocab cimport TokenTable, Tokens


@cython.final
cdef class Decoder:
    """Immutable: token bytes by id, special tokens and `others`, which no text becomes, included.

    An id that is both a token's and a special token's is taken for the special token's.
    """

    cdef TokenTable table
    cdef dict specials          # id -> bytes
    cdef dict others            # id -> bytes
    cdef u32* rank_of           # [max_id + 1] token of the id or NONE; NULL: ids are ranks, or sparse

    def __cinit__(self, TokenTable table not None, dict specials not None, dict others=None):
        cdef const Tokens* t = table.tokens()
        cdef u32 i
        cdef bint is_shared = any(id <= table.max_id for id in specials)
        self.table = table
        self.specials = specials
        self.others = others or {}
        if is_shared or not table.is_dense:
            if table.max_id >= 16 * t.n + (1 << 16):
                if table.is_rising:
                    return
                raise ValueError(
                    f"ids up to {table.max_id} for {t.n} tokens, in another order than the merges"
                )
            self.rank_of = <u32*>malloc((<size_t>table.max_id + 1) * sizeof(u32))
            if self.rank_of == NULL:
                raise MemoryError("no memory for the decoder")
            for i in range(table.max_id + 1):
                self.rank_of[i] = NONE
            for i in range(t.n):
                if t.ids[i] != NONE:
                    self.rank_of[t.ids[i]] = i
            for id in specials:
                if id <= table.max_id:
                    self.rank_of[id] = NONE

    def __dealloc__(self):
        free(self.rank_of)

    cdef u32 find(self, u64 id) noexcept:
        cdef const Tokens* t = self.table.tokens()
        cdef size_t low = 0, high = t.n, middle
        if id > self.table.max_id:
            return NONE
        if self.rank_of != NULL:
            return self.rank_of[id]
        if self.table.is_dense:
            return <u32>id
        while low < high:
            middle = (low + high) // 2
            if t.ids[middle] < id:
                low = middle + 1
            else:
                high = middle
        return <u32>low if low < t.n and t.ids[low] == id else <u32>NONE

    def token_bytes(self, id):
        """bytes of one token; KeyError if there is none of this id."""
        cdef const Tokens* t = self.table.tokens()
        cdef u32 token = self.find(checked_id(id, 0))
        if token != NONE:
            return t.blob[t.offsets[token]:t.offsets[token + 1]]
        if id in self.specials:
            return self.specials[id]
        if id in self.others:
            return self.others[id]
        raise KeyError(str(id))

    def decode(self, ids, bint skip_special=False):
        """bytes of the tokens in a row.

        ids: iterable of int, or an integer array. Raises UnknownId (a KeyError) at the first id
        that is in neither table, OverflowError at one that is no uint32.
        """
        cdef const i64[::1] view
        cdef const u64[::1] wide
        cdef u64* raw
        cdef size_t n, i
        if isinstance(ids, (np.ndarray, memoryview)) or hasattr(ids, "__array_interface__"):
            ids = np.asarray(ids)
            if ids.ndim != 1:
                raise TypeError(f"ids must be one row, not an array of {ids.ndim} dimensions")
            if ids.size == 0:
                return b""
            if ids.dtype.kind not in "iu":
                raise TypeError(f"ids must be integers, not {ids.dtype}")
            if ids.dtype == np.uint64:
                wide = np.ascontiguousarray(ids)
                return self.join(&wide[0], wide.shape[0], skip_special)
            view = np.ascontiguousarray(ids, dtype=np.int64)
            return self.join(<const u64*>&view[0], view.shape[0], skip_special)
        ids = tuple(ids)            # a list could change its length under our hands
        n = len(ids)
        raw = <u64*>malloc((n + 1) * sizeof(u64))
        if raw == NULL:
            raise MemoryError(f"no memory to decode {n} ids")
        try:
            for i, value in enumerate(ids):
                raw[i] = checked_id(value, i)
            return self.join(raw, n, skip_special)
        finally:
            free(raw)

    cdef bytes join(self, const u64* ids, size_t n, bint skip_special):
        cdef const Tokens* t = self.table.tokens()
        cdef size_t total = 0, size, i, k = 0
        cdef u32 token
        cdef list parts = []        # bytes of the special tokens, in turn
        cdef bytes part, result
        cdef u8* p
        for i in range(n):
            token = self.find(ids[i])
            if token != NONE:
                total += t.offsets[token + 1] - t.offsets[token]
                continue
            if ids[i] > 0xFFFFFFFF:
                raise OverflowError(f"id {<i64>ids[i]} is no uint32 (position {i})")
            found = self.specials.get(ids[i])
            if found is not None and skip_special:
                found = b""
            elif found is None:
                found = self.others.get(ids[i])
            if found is None:
                raise UnknownId(ids[i], i)
            part = found
            parts.append(part)
            total += len(part)
        result = PyBytes_FromStringAndSize(NULL, total)
        p = <u8*>PyBytes_AS_STRING(result)
        for i in range(n):
            token = self.find(ids[i])
            if token != NONE:
                size = t.offsets[token + 1] - t.offsets[token]
                memcpy(p, t.blob + t.offsets[token], size)
            else:
                part = parts[k]
                k += 1
                size = len(part)
                memcpy(p, <const u8*>PyBytes_AS_STRING(part), size)
            p += size
        return result


cdef u64 checked_id(value, i) except? 0xFFFFFFFFFFFFFFFF:
    if not isinstance(value, int):
        try:
            value = value.__index__()
        except AttributeError:
            raise TypeError(
                f"{type(value).__name__!r} object cannot be interpreted as an integer (position {i})"
            ) from None
    if value < 0 or value > 0xFFFFFFFF:
        raise OverflowError(f"id {value} is no uint32 (position {i})")
    return value


class UnknownId(KeyError):
    """An id that is in neither table; `position`: its place in the ids that were passed."""

    def __init__(self, id, position):
        super().__init__(f"Invalid token for decoding: {id} (position {position})")
        self.id = id
        self.position = position

    def __reduce__(self):
        return type(self), (self.id, self.position)
