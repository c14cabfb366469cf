"""The calls of a stream of ids."""

from streamtok._core.decoder cimport Decoder
from streamtok._core.types cimport u8, u64

cdef struct Reached:        # where a stream of ids stands
    u64 tokens_in
    u64 bytes_out
    bint is_begun           # there was text: a format may drop its first space
    u8 held[4]              # bytes of an unfinished character
    u8 n_held


cdef class QuickDecoder:
    cdef Decoder decoder
    cdef bint skips_special, drops_space
    cdef bytes policy       # one of Python's error handlers
    cdef char busy
    cdef Reached reached
    cdef bytes read(self, object ids, Reached* after)
