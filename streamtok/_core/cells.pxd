"""Pieces to ids, and what is remembered of them."""

cimport cython

from streamtok._core.merge cimport Merger
from streamtok._core.text cimport Room
from streamtok._core.types cimport i64, u8, u16, u32, u64
from streamtok._core.vocab cimport TokenTable, Tokens

cdef enum:
    BATCH = 256             # pieces found, then encoded, at a time
    CELL_IDS = 4            # ids that a cache cell holds
    LONG_PIECE = 256        # longest piece that is remembered
    MANY = 15               # count of a cell whose ids are in the arena

cdef struct Cell:           # a short piece and its ids, half a cache line
    u64 low                 # bytes 0 .. 7
    u64 high                # bytes 8 .. 14; above them 4 bits of length and 4 bits of count
    u32[CELL_IDS] ids

cdef struct LongCell:       # a piece of more than 15 bytes
    u64 hash                # 0: empty
    u32 at                  # of the ids in the arena; the piece's bytes follow them
    u16 size
    u16 count

cdef struct Work:           # everything mutable that one encoding thread needs
    u32* out                # ids
    size_t count
    size_t capacity
    Cell* cells
    u64 cell_mask
    size_t cells_used
    size_t cells_limit
    LongCell* long_cells
    size_t long_used
    u32* arena              # ids of pieces with more than four, and what belongs to long cells
    size_t arena_used
    Merger merger
    Merger scratch
    Room room               # UTF-8 of a str
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
cdef int encode_rest(TokenTable table, Work* w, const u8* p, size_t n) except -1 nogil
cdef int encode_pieces(TokenTable table, Work* w, const u8* buffer, size_t readable, size_t start,
                       const i64* ends, size_t count) except -1 nogil
