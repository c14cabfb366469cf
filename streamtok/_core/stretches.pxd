"""Long pieces, merged in stretches."""

from streamtok._core.merge cimport Merger
from streamtok._core.signals cimport Watch
from streamtok._core.types cimport u8, u32
from streamtok._core.vocab cimport Tokens

cdef struct Growing:    # tokens; `items` is moved by realloc
    u32* items
    size_t count
    size_t capacity

cdef int merge_stretches(const Tokens* t, Merger* m, const u8* p, size_t n,
                         Growing* out, Watch* watch) except -1 nogil
