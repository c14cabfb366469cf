"""Which pair is next."""

from streamtok._core.pair_state cimport Merging, Pair
from streamtok._core.types cimport u64

cdef int new_table(Merging* m, u64 slots) except -1 nogil
cdef int reserve_pairs(Merging* m, u64 more) except -1 nogil
cdef void sort_into_buckets(Merging* m) noexcept nogil
cdef int place_record(Merging* m, Pair* record) except -1 nogil
cdef Pair* choose(Merging* m) except? NULL nogil
