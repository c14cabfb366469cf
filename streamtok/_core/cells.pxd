"""Pieces to ids."""

cimport cython

from streamtok._core.known cimport Known
from streamtok._core.merge cimport Merger
from streamtok._core.signals cimport Watch
from streamtok._core.text cimport Room
from streamtok._core.types cimport i64, u8, u32, u64
from streamtok._core.vocab cimport TokenTable, Tokens

cdef enum:
    BATCH = 256             # pieces found, then encoded, at a time
    MIDDLE_PIECE = 64       # longest piece that is merged together with others
    PENDING = 512           # pieces that wait to be merged, at the most

cdef struct Gap:            # where the ids of a piece that waits belong
    size_t at               # in `out`
    u64 hash                # of a piece of more than 15 bytes; 0: it is short
    u32 which               # of the pieces of its kind that wait

cdef struct Waiting:        # new pieces of one kind, each `stride` bytes after the one before
    size_t count
    u8[PENDING] sizes
    u8[PENDING] counts      # of tokens
    u8* bytes
    u32* tokens

cdef struct Work:           # everything mutable that one encoding thread needs
    u32* out                # ids
    size_t count
    size_t capacity
    Known known             # what is remembered
    Gap[PENDING] gaps       # in order
    size_t gap_count
    bint is_alone           # the pieces at hand are too few to wait for company
    Waiting short_pieces    # 16 bytes apart, as keys of cells
    Waiting middle_pieces   # of up to MIDDLE_PIECE bytes
    Merger merger
    Merger scratch
    Room room               # UTF-8 of a str, or a copy of bytes that others may write to
    Watch watch             # when signals were looked at
    u8* window              # the last full window of a long piece: endless runs repeat it
    u32* window_ids
    size_t window_count
    size_t window_stable    # bytes of it that are final; 0: nothing remembered

@cython.final
cdef class Workspace:
    cdef Work c

cdef int reserve(Work* w, size_t more) except -1 nogil
cdef int emit(const Tokens* t, Work* w, const u32* tokens, size_t count) except -1 nogil
cdef size_t commit_window(TokenTable table, Work* w, const u8* p, size_t n) except? 0 nogil
cdef size_t commit_sure(TokenTable table, Work* w, const u8* p, size_t n) except? 0 nogil
cdef int encode_rest(TokenTable table, Work* w, const u8* p, size_t n) except -1 nogil
cdef int encode_pieces(TokenTable table, Work* w, const u8* buffer, size_t readable, size_t start,
                       const i64* ends, size_t count) except -1 nogil
cdef void forget_gaps(Work* w) noexcept nogil
cdef int settle(TokenTable table, Work* w) except -1 nogil
