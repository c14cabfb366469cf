"""Text in chunks to counted pieces."""

cimport cython

from streamtok._core.pieces cimport PieceTable
from streamtok._core.scanner cimport Scan, Scanner
from streamtok._core.types cimport u8, u64

@cython.final
cdef class PieceCounter:
    cdef Scanner scanner
    cdef readonly PieceTable table
    cdef readonly str errors
    cdef const u8* cut_pairs    # [128 * 128] whether text may be cut between two ASCII characters
    cdef object _owner, _view
    cdef u8* bytes              # of the open piece, and those after it
    cdef size_t size
    cdef size_t capacity
    cdef size_t unfinished      # strict: of these at the end, bytes of an incomplete character
    cdef Scan walk              # positions relative to `bytes`
    cdef u64 offset             # place of bytes[0] in all the text
    cdef int count(self, const u8* text, size_t readable, size_t end, Scan* walk, bint final,
                   u64 base) noexcept nogil
    cdef int take_in(self, const u8* text, size_t size, bint final) noexcept nogil
    cdef int check(self, const u8* text, size_t size, bint final, u64 offset) except -1
