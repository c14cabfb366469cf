"""Ids to bytes."""

cimport cython

from streamtok._core.types cimport u8, u32, u64
from streamtok._core.vocab cimport TokenTable

cdef struct Entry:
    u8 bytes[15]                # of the token, or a `Far`
    u8 size                     # of the token, or where else it is


@cython.final
cdef class Decoder:
    cdef TokenTable table
    cdef dict specials          # id -> bytes
    cdef dict others            # id -> bytes
    cdef u32* rank_of           # [max_id + 1] token of the id or NONE; NULL: ids are ranks, or sparse
    cdef Entry* entries         # [n_entries] by id; NULL until they are needed
    cdef u32 n_entries          # 0: ids are too sparse for them
    cdef list kept              # bytes that the entries point to
    cdef u32 find(self, u64 id) noexcept
    cdef bytes join(self, const u64* ids, size_t n, bint skip_special)
    cdef int make_entries(self) except -1
    cdef object unpack(self, object ids, bint skip_special, const char* errors)
    cdef bytes decode_slowly(self, object ids, bint skip_special)
    cdef bytes decode_counted(self, object ids, bint skip_special, size_t* count)
