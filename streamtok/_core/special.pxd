"""Finds special tokens in bytes."""

cimport cython

from streamtok._core.types cimport i32, u8, u32

cdef enum Finding:
    NOTHING         # no special token begins before the end of the bytes
    PARTIAL         # one may begin at `start`: the bytes end too early to tell
    ALLOWED         # buffer[start:end] is the special token `which`
    DISALLOWED      # buffer[start:end] is text that must not be there

cdef struct Found:
    Finding kind
    size_t start
    size_t end
    i32 which

cdef struct TrieNode:
    u8 byte
    bint is_disallowed
    i32 which           # number of the special token that ends here, or -1
    i32 child           # first of the nodes below, or -1
    i32 sibling         # next node below the same parent, or -1

@cython.final
cdef class SpecialMatcher:
    cdef readonly tuple specials        # the strings that may match, in order of preference
    cdef readonly object allowed
    cdef list _nodes
    cdef TrieNode* nodes
    cdef u8* is_allowed
    cdef u32* ids
    cdef i32[256] roots
    cdef int single                     # the one byte that all begin with, or -1
    cdef int second                     # the one that follows it in all of them, or -1
    cdef bint both                      # whether there are allowed and disallowed ones
    cdef readonly bint is_empty
    cdef size_t longest                 # bytes of the longest string
    cdef Found find(self, const u8* p, size_t start, size_t end, bint final) noexcept nogil
    cdef bint crosses(self, const u8* p, size_t place, size_t end) noexcept nogil
