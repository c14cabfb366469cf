"""Finds pieces: a walk of the split pattern's DFA that can stop and go on at any byte."""

cimport cython

from streamtok._core.arrays cimport Kind
from streamtok._core.types cimport i64, u8, u16, u32, u64

cdef struct Scan:           # where a walk stands; positions are relative to the caller's buffer
    size_t start            # of the open piece
    size_t accept           # end of the longest match so far; == start: none
    size_t position         # of the next byte to look at
    u32 state               # 1 at the start of a piece
    bint committed          # `start` is not where the piece began: its tokens up to there are out

cdef extern from "windows.h" nogil:
    enum:
        ST_MARGIN           # bytes before a marked stretch that must be true text
    ctypedef struct st_windows:
        u8 classes[128]
        u8 lefts[256]
        u8 rights[256]
        u8 decisions[256]
        u8 trigger
        u8 reach
        u8 counted
        u8 count
    ctypedef void st_mark_function(const st_windows* w, const u8* p, size_t blocks, u64* begins,
                                   u64* open)
    st_mark_function* st_mark_tier(int number, const char** name)
    ctypedef size_t st_place_function(u64 bits, size_t base, i64* ends) noexcept
    st_place_function* st_place_tier()
    size_t st_place_plain(u64 bits, size_t base, i64* ends) noexcept

cdef extern from "stand_ins.h" nogil:
    enum:
        ST_STAND_INS_SIZE
        ST_STAND_IN_MOST
    ctypedef size_t st_stand_in_function(const u8* stand_ins, const u8* p, size_t n, size_t readable,
                                         u8* to) noexcept
    st_stand_in_function* st_stand_in_tier(bint wanted)

cdef enum:
    MARKED_BLOCKS = 32      # blocks of 64 bytes that are marked at a time
    MARKED_FROM = 128       # bytes from which marking is worth its start

cdef struct Marks:          # what the windows say about buffer[base : base + 64 * blocks]
    size_t first            # where the text begins that the windows may look at
    size_t base
    size_t blocks
    bint has_stand_ins      # the last ones needed them, so the next ones may
    u64[MARKED_BLOCKS] begins
    u64[MARKED_BLOCKS] open

cdef enum:                  # one step: next state << STEP_BITS | flags
    ENDS = 1                # the piece ends before this character; `next` is already inside the next
    ACCEPTS = 2             # the piece may end before this character
    STUCK = 4               # no way on: go back to where the piece could end last
    STEP_BITS = 3
    ASCII_COLUMNS = 128

cdef struct ScanTables:
    const u32* steps        # [n_states << row_bits] by ASCII byte, then by class; states are offsets
    u32 row_bits
    u32 n_classes
    const u8* bmp           # [0x10000] class of the code point
    const u8* final         # [n_states] whether the piece may end at the end of input
    const u16* pages        # [0x110000 >> 7] block of the code points
    const u8* blocks        # [n_blocks * 128] class of the code point
    u32 surrogate           # class of a byte that is no UTF-8 (a lone surrogate to Python)
    const u8* settled       # [n_states] whether the piece surely goes up to here at least
    st_windows* windows     # NULL: there are none
    const u8* stand_ins     # [ST_STAND_INS_SIZE] ASCII or 0; NULL: there are none
    st_mark_function* mark
    st_place_function* place
    st_stand_in_function* stand_in

cdef inline void scan_begin(Scan* s, size_t start) noexcept nogil:
    s.start = s.accept = s.position = start
    s.state = 1
    s.committed = False

cdef inline void marks_begin(Marks* m, size_t first) noexcept nogil:
    m.first = m.base = first
    m.blocks = 0
    m.has_stand_ins = False

cdef size_t walk(const ScanTables* t, Scan* s, const u8* buffer, size_t end, bint final,
                 i64* ends, size_t room) noexcept nogil
cdef size_t scan(const ScanTables* t, Scan* s, Marks* marks, const u8* buffer, size_t end,
                 bint final, i64* ends, size_t room) noexcept nogil

@cython.final
cdef class Scanner:
    cdef ScanTables c
    cdef st_windows windows
    cdef list _owners           # of the arrays that `c` points to
    cdef readonly u32 n_states
    cdef const ScanTables* tables(self) noexcept nogil
    cdef const void* own(self, array, Kind kind, str name, int dimensions) except NULL
