"""How much of an open piece is already encoded for good."""

from streamtok._core.merge cimport Merger
from streamtok._core.types cimport u8
from streamtok._core.vocab cimport Tokens

cdef enum:
    WINDOW = 1024       # bytes of a long piece that are merged at a time

cdef Py_ssize_t stable_tokens(const Tokens* t, Merger* m, Merger* scratch, const u8* p, size_t n,
                              size_t* stable_bytes) except -1 nogil
