"""What other units of the core use of `encode.pyx`, what of it tests change, and what several of its
files use by size: constants and structs. So the files do not depend on the order of their includes.
"""

cimport cython

from cpython.ref cimport PyObject

from streamtok._core.simd cimport (
    ST_SHORT,
    ST_UNIT,
    st_deposit_function,
    st_find_pair_function,
    st_keys_function,
    st_leads_function,
    st_mark_function,
    st_merge_batch_function,
    st_pairs,
    st_positions_function,
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

cdef struct TextBuffer:     # memory for the UTF-8 of one text after the other
    u8* bytes
    size_t size

cdef int text_open(Text* text, TextBuffer* buffer, object data, str errors) except -1
cdef void text_close(Text* text) noexcept
cdef str explain(u8 byte, i32 why)

# What gives the ids of pre-tokens, if not merges of their bytes (models/)

cdef struct ScanTables      # below

cdef struct Trie:
    u32* first              # [n + 1] the children of node i are first[i] .. first[i + 1] - 1
    u8* labels              # [n] the byte that leads to node i
    u32* values             # [n] id of the piece that ends at node i, or NONE
    u32[256] begins         # the children of the root by their bytes, or NONE
    u32 n

cdef enum ModelKind:
    MERGES
    WORD_PIECE
    WORD_LEVEL
    UNIGRAM

cdef enum StageKind:        # see models/stages.pxi
    CUT
    LETTERS
    MARK
    SYMBOLS

cdef struct Symbols:        # what a model of words writes characters as
    Trie names              # their numbers
    u32 inside              # the node where those begin that are not a word's first, or NONE
    const u8* prefix        # that leads there
    size_t prefix_size
    const u8* suffix        # of a word's last
    size_t suffix_size
    u32 unknown             # stands for a character without a symbol; NONE: leave the character out
    bint fuses              # a run of these is one
    const u32* byte_symbols # [256] of what has none, or NONE; NULL: there are none

cdef struct Stage:
    StageKind kind
    const ScanTables* tables    # CUT: its pattern,
    u32 behavior                # and what is done with its matches: `CutBehavior`
    u8[4] mark                  # MARK: what becomes of a space,
    u32 mark_size
    bint puts_mark              # and is before all, too
    Symbols symbols

cdef struct Model:
    ModelKind kind
    Trie trie
    u32 inside              # the node where pieces begin that are not a word's first, or NONE
    u32 unknown             # the id of what has no pieces; NONE: that is an error
    u64 most_characters     # of a word that is not unknown
    u32 longest             # bytes of the longest piece
    const double* scores    # [n_scores] by id
    u32 n_scores
    double unknown_score    # of a character that is not a piece
    const u32* byte_ids     # [256] of the bytes of what has no pieces; NULL: it becomes `unknown`
    bint is_sentencepiece   # as SentencePiece does it: models/unigram.pxi
    const Stage* stages     # what is done to each pre-token before, one after the other
    size_t n_stages

@cython.final
cdef class PieceModel:
    cdef Model c
    cdef Stage* stages
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
    cdef readonly u32 max_id
    cdef readonly bint is_dense                # the ids are 0 .. n - 1, in order
    cdef const Tokens* tokens(self) noexcept nogil

# Lists of ids (base/shared_ints.pxi)

cdef list ids_to_list(TokenTable table, const u32* ids, size_t count)

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
    bint tells_gaps         # `scan` makes ends negative where no pre-token begins
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
    u32 surrogate           # class of a byte that is not UTF-8 (a lone surrogate to Python)
    const u8* settled       # [n_states] whether the pre-token surely goes up to here at least
    st_windows* windows     # NULL: there are none
    const u8* substitutes   # [ST_SUBSTITUTES_SIZE] ASCII or ST_NO_SUBSTITUTE; NULL: there are none
    st_mark_function* mark
    size_t marked_from      # bytes from which it is faster than a walk, at most MARKED_FROM,
    size_t extra_from       # and of a last block
    const u8* begins        # by ASCII byte, then by class: whether a pre-token can begin; NULL: all can
    const u64* margins      # [128] by what a pre-token begins with: the bytes before its second; 0: none
    st_positions_function* put_positions
    st_squeeze_function* squeeze
    st_deposit_function* deposit

cdef inline void scan_begin(Scan* s, size_t start) noexcept nogil:
    s.start = s.accept = s.position = start
    s.state = 1
    s.committed = False
    s.score = 0

cdef inline void marks_begin(Marks* m, size_t first) noexcept nogil:
    m.first = m.base = first
    m.tells_gaps = True
    m.blocks = 0
    m.is_squeezed = False

cdef bint mark_squeezed(const ScanTables* t, const u8* p, size_t before, size_t readable,
                        size_t blocks, u64* begins, u64* open, size_t* wide) noexcept nogil
cdef size_t scan(const ScanTables* t, Scan* s, Marks* marks, const u8* buffer, size_t end,
                 bint final, i64* ends, size_t capacity, Watch* watch) except? -1 nogil

@cython.final
cdef class Scanner:
    cdef ScanTables c
    cdef st_windows windows
    cdef list _owners           # of the arrays that `c` points to
    cdef readonly u32 n_states
    cdef const ScanTables* tables(self) noexcept nogil
    cdef const void* own(self, array, Kind kind, str name, int dimensions) except NULL

# Signals (base/signals.pxi)

cdef struct Watch:
    u64 looked              # when handlers ran last, in milliseconds

# Merging (merge/merge.pxi, merge/segments.pxi)

cdef struct Node:       # of the linked list, which begins with one for each byte
    u32 previous
    u32 next
    u32 token
    u32 version         # merges so far: a candidate that carries an older one is stale

cdef struct Candidate:  # of the heap: a pair that may merge, ordered by rank, then position
    u64 key             # rank << 32 | position of the left node
    u32 left_version    # the version stamps of its nodes when it was pushed
    u32 right_version

cdef struct Merger:     # scratch of one thread, grown as needed
    Node* nodes
    Candidate* heap
    size_t capacity     # nodes; the heap holds three times as many candidates
    u32* result         # tokens of the last call
    size_t result_capacity

cdef struct Growing:    # tokens; `items` is moved by realloc
    u32* items
    size_t count
    size_t capacity

cdef enum:
    SEGMENT = ST_SHORT          # bytes
    STRIDE = 48                 # from one segment to the next; the rest is where two of them may agree
    OVERLAP = SEGMENT - STRIDE
    SEGMENTS = 64               # the most that are merged together
    MISSES = 6                  # segments of a round that do not agree: longer ones pay then
    LONG_SEGMENT = 1024         # bytes where short segments do not pay: these go to the heap
    LONG_OVERLAP = 48
    LONGEST_PERIOD = 64         # bytes
    FIRST_SHUN = 1 << 14        # bytes that are merged in these after MISSES; twice as many each time
    LOOK_EVERY = 1 << 16        # bytes between two looks at the clock

# The table of pre-tokens (cache/table.pxi)

cdef enum:
    BATCH = 256             # pre-tokens found, then looked up, at a time
    BIT_WORDS = BATCH // 64
    CELL_NUMBERS = 4        # that a cell holds
    IN_ARENA = 7                # count of a cell whose numbers are in the arena
    LONG_PRETOKEN = 256     # longest pre-token whose ids are remembered

cdef struct Cell:           # a pre-token and its numbers, half a cache line
    u64 low                 # bytes 0 .. 7, or the hash of more than 15
    u64 high                # bytes 8 .. 14, or the size; above them 4 bits of length, of up to 15 bytes,
                            # and 4 of count and IDLE (cache/growth.pxi)
    u32[CELL_NUMBERS] numbers   # IN_ARENA: in 64 bits where its ids are in the arena, and the count

cdef struct PretokenCells:
    Cell* cells
    u64 cell_mask
    int cell_shift          # of a hash that gives the number of a cell
    size_t cells_used
    size_t cells_limit
    u64 probes              # cells after which a look-up ends; 0: it goes on
    u64 unasked             # flag of the count of a new cell
    Cell nothing            # an empty cell, in place of one that is not found
    u32* arena              # the numbers of IN_ARENA, after the bytes of long pre-tokens
    size_t arena_used
    size_t arena_size

# Unigram's best paths (models/unigram.pxi), and spans of ids (models/model.pxi)

cdef struct BestPath:           # the best path to a position of the pre-token
    double score
    u32 start               # where its last piece begins; NONE: no path comes here
    u32 id

cdef struct Lattice:
    BestPath* nodes             # [capacity]
    size_t capacity

cdef struct IdSpan:          # of an id's text
    u64 at                  # the id's number
    u64 start
    u64 end

cdef struct Origin:         # bytes of a pre-token
    u32 start
    u32 end

cdef struct Staged:         # texts that stages have made, one after the other
    u8* bytes               # [capacity]
    Origin* origins         # [capacity] what each byte comes from
    size_t size
    size_t capacity
    u32 left_from           # of what it was made of, where that begins which depends on what follows

# What one thread needs (cache/workspace.pxi)

cdef enum:
    COUNT_STEP = 1 << 16    # bytes of which the ids are counted at a time
    MIDDLE_PRETOKEN = ST_SHORT      # longest pre-token that waits for others
    PENDING = 512           # pre-tokens that wait to be merged, at most
    UNIT = ST_UNIT          # bytes: what waits begins at multiples of it
    RECENT_BITS = 10        # of a hash by which those that wait are found again
    MOST_UNITS = PENDING * (MIDDLE_PRETOKEN // UNIT)

cdef struct Gap:            # where the ids of a pre-token that waits belong
    size_t at               # in `out`
    u64 low                 # its key
    u64 high
    u16 piece               # its number among those that wait
    u16 size
    u16 count               # of ids, once it is merged
    u16 original            # the first gap of the same pre-token

cdef struct Waiting:        # different new pre-tokens that are merged together
    size_t count
    size_t unit             # of `bytes` and `tokens` that is free
    u16[PENDING] units      # pre-token i begins at bytes[UNIT * units[i]], its tokens at tokens[…]
    u8[PENDING] sizes
    u8[PENDING] counts      # of tokens
    u8* bytes
    u32* tokens

cdef struct Work:               # everything mutable that one encoding thread needs
    u32* out                    # ids
    size_t count
    size_t capacity
    bint counts_only            # ids of long pre-tokens need not be kept
    size_t forgotten            # of these ids, those that were not
    PretokenCells cache         # what is remembered
    Gap[PENDING] gaps           # in order
    size_t gap_count
    u16[1 << RECENT_BITS] recent    # by hash, the last gap that such a pre-token left, perhaps long ago
    Waiting waiting             # what these pre-tokens are
    Merger merger
    Merger scratch
    TextBuffer buffer                 # UTF-8 of a str, or a copy of bytes that others may write to
    Watch watch                 # when signals were looked at
    Lattice lattice             # of Unigram
    Staged staged               # what becomes of a pre-token
    bint follows                # spans of ids are wanted, too: by merges, only of special tokens
    IdSpan* id_spans
    size_t n_id_spans
    size_t id_spans_capacity
    u64 origin                  # where in the text the buffer begins that is encoded
    u8* section                 # the last full section of a long pre-token: endless runs repeat it
    u32* section_ids
    size_t section_count
    size_t section_stable       # bytes of it that are final; 0: nothing remembered

# Borrowed texts (text/source.pxi)

cdef struct Source:
    const u8* data          # UTF-8, or the code units of a str
    size_t size             # bytes, or code units
    int unit                # bytes of a code unit; 0: the data is UTF-8
    bint is_checked         # that the UTF-8 is well-formed, or it need not be
    bint may_change         # others can write to the bytes while they are read
    bint has_view
    Py_buffer view

cdef bint source_open(Source* s, object text, str errors)
cdef void source_close(Source* s) noexcept
cdef const u8* source_utf8(const Source* s, TextBuffer* buffer, size_t start, size_t stop, size_t* size) except? NULL nogil

# Ids from Python (decode/unpack_ids.pxi)

cdef extern from "base/read_ids.h" nogil:
    bint ST_LISTS_HOLD_STILL
    ctypedef int (*st_reader)(const char* p, size_t n, u32* ids) noexcept
    st_reader st_reader_for(const char* format, Py_ssize_t size) noexcept
    bint st_read_ints(PyObject** items, size_t n, size_t have, u32* ids, const void* table,
                      size_t width) noexcept

# Text that is changed (transform/)

cdef enum:
    MOST_CARING = 8     # steps of a table that look at neighbours

cdef struct CharKind:           # of a code point, or an element
    u8 joins                # bit i: at caring step i, by what it is by then
    u8 holds
    u8 flags

cdef struct Row:            # bytes; before: or SAME
    u64 now
    u64 before

cdef struct Element:        # after it: the rows, the key, the text
    u64 hash
    u32 key_size
    u32 size
    u32 n_rows
    u8 where
    bint is_same
    CharKind kind

cdef struct Alignment:
    Row* rows
    size_t n
    size_t capacity
    u8 segment              # SegmentRows
    u8 last_size            # bytes of the last character of the last row, if that is SAME

cdef struct OpenElement:          # an element that is not final
    size_t start
    size_t stop
    Element* element        # NULL: it stays as it is, or is not asked for
    CharKind kind               # if it is not asked for, what is likely: see `put_entry`
    u8 where
    bint is_asked
    bint is_owned           # the entry frees the element

cdef struct ElementWalk:
    const u8* p
    size_t n
    size_t at               # up to which all is in entries, or final
    size_t pause            # from where on to look at signals
    size_t left             # up to which all is in `out`; what follows is left as it is up to `final`
    size_t final
    size_t taken            # in the end: the bytes that were taken in
    u8 begins               # PLACE_BEGIN and PLACE_FIRST, of the next element
    bint ends               # the segment ends with this text
    bint is_changed
    bint is_later           # something was left out before the first text
    bint is_open            # nothing is taken in, for all is one element, more of which may come,
    CharKind open           # of this likely kind
    size_t mask_at          # where the last look at 64 bytes was,
    u64 mask                # and what it found
    u8* out
    size_t size, capacity
    Alignment* rows         # which gets those of what is taken in; NULL: they are not wanted
    size_t n_entries, most_entries
    OpenElement[MOST_CARING + 1] entries

cdef struct LevelMark:      # where a level stands
    size_t begin            # of its bytes: before that, all was passed on
    size_t size
    size_t searched         # up to which no token begins that is not certain
    size_t walked           # up to which the element at `begin` goes on; 0: not known
    CharKind open           # its likely kind up to there
    u8 where                # PLACE_BEGIN | PLACE_FIRST of what comes next; 0: inside a segment
    bint after_word         # the character before `begin` is in a word
    bint takes_blanks       # for a token that was passed on: the spaces that come next
    u8 segment, last_size   # of its rows, as in `Alignment`
    size_t n_rows
    Row last_row
    u64 begins_now          # where the text of the first row begins,
    u64 begins_before       # and what that was before

cdef struct Door:           # where the text comes in
    u8[3] partial           # bytes of a character that is not complete
    u8 n_partial
    u64 bytes_in            # all that came in
    u64 grown               # bytes that repair added
    size_t pending          # bytes of the text that no id stands for yet

cdef struct Level:
    u8* bytes
    size_t capacity
    Alignment rows          # of what was passed on and is not final
    LevelMark mark          # as committed
