"""The open end of a stream: bytes that wait, and where the walk over them stands."""

cimport cython

from streamtok._core.encoder cimport Encoder
from streamtok._core.scanner cimport Scan
from streamtok._core.special cimport SpecialMatcher
from streamtok._core.types cimport u8, u32, u64

cdef struct Mark:           # all of a tail but its bytes; positions are relative to `bytes`
    size_t size             # bytes held, well-formed unless they are kept as they are
    size_t searched         # of these, known to begin no special token
    u8[3] partial           # the bytes behind them: those of a character that is not complete
    u8 partial_size
    Scan scan
    Scan other              # the second hypothesis, see stream.pyx
    bint has_other
    size_t retry_at         # see encoder.commit_open
    size_t fork_at          # bytes beyond the last acceptance from which a fork is worth trying
    u64 offset              # place of bytes[0] in the stream
    u64 bytes_in            # bytes that came in
    u64 tokens_out          # ids that went out

cdef enum Policy:           # what to do with bytes that are no UTF-8
    REFUSE
    REPAIR
    KEEP

@cython.final
cdef class Tail:
    cdef Encoder encoder
    cdef SpecialMatcher matcher
    cdef readonly str errors
    cdef Policy policy
    cdef u8* bytes
    cdef size_t capacity
    cdef Mark mark
    cdef readonly object note   # what the caller remembers with the mark
    cdef char busy
    cdef object feed(self, object chunk, bint final, str into, object out, size_t limit,
                     object expected, object note)
    cdef object encode_draft(self, Mark* m, object chunk, bint final, str into, object out,
                             size_t limit)
