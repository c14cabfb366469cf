"""A hash table from pieces to how often they were seen."""

cimport cython

from streamtok._core.types cimport i64, u8, u64

cdef struct Piece:          # two to a cache line
    u64 low                 # up to 15 bytes, zeros behind them, and their number in the last byte;
    u64 high                # for longer ones a hash, and LONG with the place in the arena
    u64 count               # 0: an empty slot
    u64 first               # where in all the text it was seen first

cdef enum:
    BATCH = 256             # pieces that are looked up together

cdef enum:                  # whether there is room for more
    FITS = 0
    OVER_LIMIT = 1
    NO_MEMORY = 2

@cython.final
cdef class PieceTable:
    cdef Piece* slots
    cdef u64 mask           # number of slots - 1
    cdef u64 used           # slots that hold a piece
    cdef u8* arena          # long pieces, each behind its length in 4 bytes
    cdef size_t arena_size
    cdef size_t arena_capacity
    cdef readonly size_t limit
    cdef size_t other_bytes # memory of the owner's that counts against the limit
    cdef int reserve(self, size_t pieces, size_t wanted) noexcept nogil
    cdef int reserve_for(self, PieceTable other, size_t pieces, size_t wanted) noexcept nogil
    cdef void take_over(self, PieceTable other, u64 shift) noexcept nogil
    cdef void add(self, const u8* text, size_t readable, size_t start, const i64* ends,
                  size_t count, u64 base) noexcept nogil
    cdef void put(self, const u8* bytes, size_t size, u64 count, u64 first) noexcept nogil
    cdef size_t size_of(self, const Piece* piece) noexcept nogil
    cdef const u8* bytes_of(self, const Piece* piece) noexcept nogil
    cdef size_t memory(self) noexcept nogil
