"""Texts to ids: scanner, special tokens and cells together."""

cimport cython

from streamtok._core.cells cimport Work, Workspace
from streamtok._core.output cimport Spares
from streamtok._core.scanner cimport Scan, Scanner
from streamtok._core.special cimport Found, SpecialMatcher
from streamtok._core.types cimport u8
from streamtok._core.vocab cimport TokenTable

@cython.final
cdef class Encoder:
    cdef readonly TokenTable table
    cdef readonly Scanner scanner
    cdef void* _ready           # a Workspace that is owned, or NULL
    cdef list _pool             # more of them
    cdef Spares _spares
    cdef Workspace take(self)
    cdef void give(self, Workspace workspace)

cdef int encode_whole(Encoder encoder, Work* w, SpecialMatcher matcher, const u8* p, size_t n,
                      bint count_only, size_t* total, Found* refused) except -1 nogil
cdef int encode_span(Encoder encoder, Work* w, const u8* buffer, size_t readable, size_t end,
                     bint final, Scan* s) except -1 nogil
cdef int commit_open(Encoder encoder, Work* w, const u8* buffer, Scan* s,
                     size_t* retry_at) except -1 nogil
cdef int encode_whole(Encoder encoder, Work* w, SpecialMatcher matcher, const u8* p, size_t n,
                      bint count_only, size_t* total, Found* refused) except -1 nogil
