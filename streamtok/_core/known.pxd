"""What is remembered of pieces."""

from streamtok._core.types cimport st_load64, st_mix, u8, u16, u32, u64
from streamtok._core.vocab cimport Tokens

cdef extern from "keys.h" nogil:
    u64 st_cell_hash(u64 low, u64 high) noexcept
    const u64 st_key_masks[32]
    const u64 ST_KEY_MASK

cdef enum:
    CELL_IDS = 4            # ids that a cell holds
    LONG_PIECE = 256        # longest piece that is remembered
    MANY = 7                # count of a cell whose ids are in the arena
    IDLE = 8                # flag of a count: nobody has asked for the piece since the last sweep
    IDLE_LONG = 0x8000      # the same of a long cell's

cdef struct Cell:           # a short piece and its ids, half a cache line
    u64 low                 # bytes 0 .. 7
    u64 high                # bytes 8 .. 14; above them 4 bits of length and 4 of count and IDLE
    u32[CELL_IDS] ids

cdef struct LongCell:       # a piece of more than 15 bytes
    u64 hash                # 0: empty
    u32 at                  # of the piece's bytes in the arena; the ids follow them
    u16 size
    u16 count               # and IDLE_LONG

cdef struct Known:
    Cell* cells
    u64 cell_mask
    int cell_shift          # of a hash that gives the number of a cell
    size_t cells_used
    size_t cells_limit
    u64 unasked             # flag of the count of a new cell: before the first sweep it is not worth
                            # the mispredicted branch of the first question
    Cell nothing            # an empty cell
    LongCell* long_cells
    u64 long_mask
    size_t long_used
    size_t long_limit
    u32* arena              # ids of pieces with more than four, and what belongs to long cells
    size_t arena_used
    size_t arena_size


cdef inline Cell* home_of(Known* known, u64 low, u64 high) noexcept nogil:
    return &known.cells[st_cell_hash(low, high) >> known.cell_shift]


cdef inline Cell* find_cell(Known* known, Cell* cell, u64 low, u64 high) noexcept nogil:
    """From its home on, the cell of a piece, or the empty one where it belongs."""
    while not (cell.low == low and (cell.high & ST_KEY_MASK) == high) and cell.high != 0:
        cell += 1
        if cell > known.cells + known.cell_mask:
            cell = known.cells
    return cell


cdef inline u64 ask(Cell* cell) noexcept nogil:
    """The count of a cell that has been found, which is not idle then."""
    cell.high &= ~(<u64>IDLE << 60)
    return cell.high >> 60


cdef inline u32* ids_of_long(const Known* known, const LongCell* cell) noexcept nogil:
    return known.arena + cell.at + (cell.size + 3) // 4


cdef inline size_t ask_long(LongCell* cell) noexcept nogil:
    """`ask` of a long cell."""
    cell.count &= <u16>~<u16>IDLE_LONG
    return cell.count


cdef inline u64 hash_long(const u8* p, size_t n) noexcept nogil:
    """Hash of more than 15 bytes; never 0."""
    cdef u64 h = st_mix(st_load64(p) ^ n, st_load64(p + n - 8) ^ <u64>0xD6E8FEB86659FD93)
    cdef size_t i = 8
    while i + 8 < n:
        h = st_mix(h ^ st_load64(p + i), <u64>0x9E3779B97F4A7C15)
        i += 8
    return h | 1


cdef int known_open(Known* known, const Tokens* t) except -1
cdef void known_close(Known* known) noexcept
cdef size_t cached_bytes(const Known* known) noexcept nogil
cdef void make_room(const Tokens* t, Known* known, size_t pieces, size_t words) noexcept nogil
cdef void learn_short(Known* known, Cell* home, const u8* key, const u32* ids,
                      u64 count) noexcept nogil
cdef LongCell* find_long(Known* known, u64 hash, const u8* p, size_t n) noexcept nogil
cdef void fill_long(Known* known, LongCell* cell, u64 hash, const u8* p, size_t n, const u32* ids,
                    size_t count, bint is_idle) noexcept nogil
