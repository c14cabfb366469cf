"""The merge engine: byte pair encoding of one stretch of bytes."""

from streamtok._core.types cimport u8, u32, u64
from streamtok._core.vocab cimport Tokens

cdef enum:
    SCAN_LIMIT = 40     # stretches up to here are merged by scanning for the lowest rank: at most 63

cdef struct Node:       # doubly linked list over the bytes of the stretch
    u32 previous
    u32 next
    u32 token
    u32 version         # a merge bumps it: candidates that carry an older one are stale

cdef struct Candidate:  # a pair that may merge: ordered by place, then position
    u64 key             # place in the order (rank) << 32 | position of the left node
    u32 left_version
    u32 right_version

cdef struct Merger:     # scratch of one thread, grown as needed
    Node* nodes
    Candidate* heap
    size_t capacity     # nodes; the heap holds three times as many candidates
    u32* result         # tokens of the last call
    size_t result_capacity

cdef void merger_free(Merger* m) noexcept nogil
cdef Py_ssize_t merge(const Tokens* t, Merger* m, const u8* p, size_t n) except -1 nogil
cdef Py_ssize_t merge_alone(const Tokens* t, Merger* m, const u8* p, size_t n,
                            u32* tokens) except -1 nogil
cdef int merge_many(const Tokens* t, Merger* m, const u8* pieces, size_t stride, const u8* sizes,
                    size_t count, u32* tokens, u8* counts) except -1 nogil
