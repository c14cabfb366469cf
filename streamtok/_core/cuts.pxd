"""Places where a text may be cut, and the parts encoded each by itself."""

cimport cython

from streamtok._core.scanner cimport Scanner
from streamtok._core.source cimport Source
from streamtok._core.special cimport SpecialMatcher
from streamtok._core.types cimport u8, u32

@cython.final
cdef class Cuts:
    cdef Scanner scanner
    cdef const u8* pairs
    cdef u32 columns
    cdef object _owner
    cdef size_t next(self, const Source* s, SpecialMatcher matcher, size_t start,
                     size_t stop) noexcept nogil
    cdef size_t last(self, const Source* s, SpecialMatcher matcher, size_t start,
                     size_t stop) noexcept nogil
    cdef bint is_cut(self, const Source* s, SpecialMatcher matcher, size_t place) noexcept nogil
