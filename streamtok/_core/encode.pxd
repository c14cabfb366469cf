"""What other units of the core use of `encode.pyx`, and what of it tests change."""

cimport cython

from streamtok._core.simd cimport (
    st_deposit_function,
    st_find_pair_function,
    st_keys_function,
    st_leads_function,
    st_mark_function,
    st_merge_batch_function,
    st_pairs,
    st_place_function,
    st_squeeze_function,
    st_transcode_function,
    st_windows,
)
from streamtok._core.types cimport i32, i64, u8, u16, u32, u64

# How this processor does what can be done in several ways (merge/strategy.pxi)

cdef struct Strategy:
    st_merge_batch_function* merge_batch
    st_keys_function* keys
    st_find_pair_function* find_pair
    st_transcode_function* transcode
    st_leads_function* leads
    u64 look_period                     # milliseconds between two looks at signals

cdef Strategy strategy

# Arrays (base/arrays.pxi)

cdef enum Kind:
    UINT8
    UINT16
    UINT32
    UINT64
    INT64
    FLOAT64

@cython.final
cdef class ArrayView:
    cdef Py_buffer buffer
    cdef void* data
    cdef size_t size            # numbers in all
    cdef size_t columns         # of the last dimension

cdef ArrayView read_array(object array, Kind kind, str name, int dimensions=*)
cdef void* array_memory(object array, Kind kind) except? NULL

# Text (text/text.pxi)

cdef struct Text:
    const u8* data
    size_t size
    Py_buffer view
    bint has_view
    void* owner         # a bytes object that holds the data, or NULL

cdef const void* hash_secret() noexcept     # of the tables of this unit

cdef struct Room:       # memory for the UTF-8 of one text after the other
    u8* bytes
    size_t size

cdef int text_open(Text* text, Room* room, object data, str errors) except -1
cdef void text_close(Text* text) noexcept
cdef str explain(u8 byte, i32 why)

# Models that are no merges (models/)

cdef struct Trie:
    u32* first              # [n + 1] the children of node i are first[i] .. first[i + 1] - 1
    u8* labels              # [n] the byte that leads to node i
    u32* values             # [n] id of the piece that ends at node i, or NONE
    u32[256] begins         # the children of the root by their bytes, or NONE
    u32 n

cdef enum ModelKind:
    WORD_PIECE
    WORD_LEVEL
    UNIGRAM

cdef struct Model:
    ModelKind kind
    Trie trie
    u32 inside              # the node where pieces begin that are not a word's first, or NONE
    u32 unknown             # the id of what has no pieces
    u64 most_characters     # of a word that is not unknown
    u32 longest             # bytes of the longest piece
    const double* scores    # [n_scores] by id
    u32 n_scores
    double unknown_score    # of a character that is no piece
    const u32* byte_ids     # [256] of the bytes of what has no pieces; NULL: it becomes `unknown`
    u8[4] mark              # what is put before a pre-token that does not begin with it
    u32 mark_size           # 0: nothing

@cython.final
cdef class PieceModel:
    cdef Model c
    cdef list _owners       # of the memory that `c` points to
    cdef readonly u32 max_id

# Tokens (tokens/table.pxi)

cdef struct Tokens:
    const u8* blob              # bytes of all tokens, end to end, in order of rank
    const u32* offsets          # [n + 1] token i is blob[offsets[i]:offsets[i + 1]]
    const u32* ids              # [n] public id of token i; NONE: it leaves as its bytes
    const u32* ties             # [n] order of the merges into a token, ties to the left; NULL: its number
    const u32* byte_ids         # [256] ids of the bytes of such tokens; NULL: there are none
    u32 n
    u32 longest                 # bytes of the longest token
    u32 longest_unreachable     # bytes of the longest token that its own merges do not build; 0: none
    u64* unreachable            # bit set of the hashes of such tokens: the bits that are left of them
    u32 unreachable_shift       # after shifting right by so many
    u32 byte_token[256]
    u32* byte_pairs             # [256 * 256] token made of two bytes, or NONE
    u64* slots                  # bytes -> token: fingerprint << 32 | token + 1, 0 = empty
    u64 slot_mask
    st_pairs pairs              # pair of tokens -> token
    u32* lefts                  # [n] bytes of the left part of a token's last merge; 0: bytes, unreachable
    u32* sorted                 # [n] tokens in order of their bytes, or NULL until it is asked for
    u64* openings               # bit set of hashed 4-byte openings of tokens, see has_opening
    const Model* model          # what gives the ids of pre-tokens; NULL: merges

@cython.final
cdef class TokenTable:
    cdef Tokens c
    cdef list _owners                          # of the memory that `c` points to
    cdef tuple _ints                           # int objects 0, 1, …; empty until needed
    cdef size_t _listed                        # ids that were put in lists before that
    cdef readonly u32 max_id
    cdef readonly bint is_dense                # the ids are 0 .. n - 1, in order
    cdef readonly bint is_increasing           # the ids are in order
    cdef const Tokens* tokens(self) noexcept nogil
    cdef tuple ints(self, size_t count)

# Scanner (scan/scanner.pxi)

cdef enum:
    MARKED_BLOCKS = 32      # blocks of 64 bytes that are marked at a time
    MARKED_FROM = 128       # bytes from which characters that are not ASCII are worth a second look

cdef struct Scan:           # where a walk stands; positions are relative to the caller's buffer
    size_t start            # of the open pre-token
    size_t accept           # end of the longest match so far; == start: none
    size_t position         # of the next byte to look at
    u32 state               # 1 at the start of a pre-token
    bint committed          # `start` is not where the pre-token began: its tokens up to there are out
    double score            # of these, by Unigram

cdef struct Marks:          # what the windows say about buffer[base : base + 64 * blocks]
    size_t first            # where the text begins that the windows may look at
    size_t base
    size_t blocks
    bint is_squeezed        # the last ones are from one byte for each character, so the next ones may be
    u64[MARKED_BLOCKS] begins
    u64[MARKED_BLOCKS] open

cdef struct ScanTables:
    const u32* steps        # [n_states << row_bits] by ASCII byte, then by class; states are offsets
    u32 row_bits
    u32 n_classes
    const u8* bmp           # [0x10000] class of the code point
    const u8* final         # [n_states] whether the pre-token may end at the end of input
    const u16* pages        # [0x110000 >> 7] block of the code points
    const u8* blocks        # [n_blocks * 128] class of the code point
    u32 surrogate           # class of a byte that is no UTF-8 (a lone surrogate to Python)
    const u8* settled       # [n_states] whether the pre-token surely goes up to here at least
    st_windows* windows     # NULL: there are none
    const u8* substitutes   # [ST_SUBSTITUTES_SIZE] ASCII or ST_NO_SUBSTITUTE; NULL: there are none
    st_mark_function* mark
    size_t marked_from      # bytes from which it is faster than a walk, at most MARKED_FROM,
    size_t extra_from       # and of a last block
    const u64* margins      # [128] by what a pre-token begins with: the bytes before its second; 0: none
    st_place_function* place
    st_squeeze_function* squeeze
    st_deposit_function* deposit

cdef inline void scan_begin(Scan* s, size_t start) noexcept nogil:
    s.start = s.accept = s.position = start
    s.state = 1
    s.committed = False
    s.score = 0

cdef inline void marks_begin(Marks* m, size_t first) noexcept nogil:
    m.first = m.base = first
    m.blocks = 0
    m.is_squeezed = False

cdef bint mark_squeezed(const ScanTables* t, const u8* p, size_t before, size_t readable,
                        size_t blocks, u64* begins, u64* open, size_t* wide) noexcept nogil
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
