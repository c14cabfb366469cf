"""What `encode.pyx` shares: declarations for other units of the core, variables that tests set, and the
constants and structs that several of its files need. So these files can be included in any order.
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

# Implementations chosen for this processor (merge/strategy.pxi)

cdef struct Strategy:
    st_merge_batch_function* merge_batch
    st_keys_function* keys
    st_find_pair_function* find_pair
    st_transcode_function* transcode
    st_leads_function* leads
    u64 look_period                     # milliseconds between two checks for signals

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
    cdef size_t size            # number of elements
    cdef size_t columns         # size of the last dimension

cdef ArrayView read_array(object array, Kind kind, str name, int dimensions=*)
cdef void* array_memory(object array, Kind kind) except? NULL

# Text (text/text.pxi)

cdef struct Text:
    const u8* data
    size_t size
    Py_buffer view
    bint has_view
    void* owner         # bytes object that holds the data, or NULL

cdef const void* hash_secret() noexcept     # for the hash tables of this unit

cdef struct TextBuffer:     # reusable memory for the UTF-8 of a text
    u8* bytes
    size_t size

cdef int text_open(Text* text, TextBuffer* buffer, object data, str errors) except -1
cdef void text_close(Text* text) noexcept
cdef str explain(u8 byte, i32 why)

# Models beyond merging bytes (models/)

cdef struct ScanTables      # see below

cdef struct Trie:
    u32* first              # [n + 1] children of node i: first[i] .. first[i + 1] - 1
    u8* labels              # [n] byte that leads to node i
    u32* values             # [n] id of the piece that ends at node i, or NONE
    u32[256] begins         # [256] child of the root for each byte, or NONE
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

cdef struct Symbols:        # how a model of words writes characters
    Trie names              # symbol numbers by name
    u32 inside              # the node that symbols inside a word begin at, or NONE
    const u8* prefix        # of symbols inside a word; leads to `inside`
    size_t prefix_size
    const u8* suffix        # of the last symbol of a word
    size_t suffix_size
    u32 unknown             # symbol for a character without one; NONE: drop the character
    bint fuses              # a run of unknown characters is one symbol
    const u32* byte_symbols # [256] symbols for the bytes of such characters, or NONE; NULL: none

cdef struct Stage:
    StageKind kind
    const ScanTables* tables    # CUT: the pattern,
    u32 behavior                # and what to do with its matches: `CutBehavior`
    u8[4] mark                  # MARK: the replacement for a space,
    u32 mark_size
    bint puts_mark              # and whether it is put before the text, too
    Symbols symbols

cdef struct Model:
    ModelKind kind
    Trie trie
    u32 inside              # the node that pieces inside a word begin at, or NONE
    u32 unknown             # id of text without pieces; NONE: that is an error
    u64 most_characters     # longest word, in characters, that is not unknown
    u32 longest             # longest piece, in bytes
    const double* scores    # [n_scores] by id
    u32 n_scores
    double unknown_score    # score of a character that is not a piece
    const u32* byte_ids     # [256] ids for the bytes of text without pieces; NULL: use `unknown`
    bint is_sentencepiece   # follow SentencePiece: models/unigram.pxi
    const Stage* stages     # [n_stages] applied to each pre-token first, in order
    size_t n_stages

@cython.final
cdef class PieceModel:
    cdef Model c
    cdef Stage* stages
    cdef list _owners       # keep alive the memory that `c` points to
    cdef readonly u32 max_id

# Tokens (tokens/table.pxi)

cdef struct Tokens:
    const u8* blob              # bytes of all tokens, concatenated in order of rank
    const u32* offsets          # [n + 1] token i is blob[offsets[i]:offsets[i + 1]]
    const u32* ids              # [n] public id of token i; NONE: emit its bytes instead
    const u32* ties             # [n] rank of the merges into token i, leftmost first if equal; NULL: i
    const u32* byte_ids         # [256] ids of single bytes, for tokens without an id; NULL: all tokens have ids
    u32 n
    u32 longest                 # longest token, in bytes
    u32 longest_unreachable     # longest token that its own merges do not build, in bytes; 0: none
    u64* unreachable            # bit set of the hashes of such tokens, each shifted right
    u32 unreachable_shift       # by this many bits
    u32 byte_token[256]
    u32* byte_pairs             # [256 * 256] token made of two bytes, or NONE
    u64* slots                  # bytes -> token: fingerprint << 32 | token + 1, 0 = empty
    u64 slot_mask
    st_pairs pairs              # from a pair of tokens to a token
    u32* lefts                  # [n] bytes in the left part of a token's last merge; 0: one byte, or unreachable
    u32* sorted                 # [n] tokens in order of their bytes; NULL until needed
    u64* openings               # bit set of hashed 4-byte prefixes of tokens, see has_opening
    const Model* model          # produces the ids of pre-tokens; NULL: merges do

@cython.final
cdef class TokenTable:
    cdef Tokens c
    cdef list _owners                          # keep alive the memory that `c` points to
    cdef readonly u32 max_id
    cdef readonly bint is_dense                # whether the ids are 0 .. n - 1, in order
    cdef const Tokens* tokens(self) noexcept nogil

# Lists of ids (base/shared_ints.pxi)

cdef list ids_to_list(TokenTable table, const u32* ids, size_t count)

# Scanner (scan/scanner.pxi)

cdef enum:
    MARKED_BLOCKS = 32      # most blocks of 64 bytes that are marked together
    MARKED_FROM = 128       # bytes from which marking text that is not ASCII pays off

cdef struct Scan:           # state of a walk; positions are relative to the caller's buffer
    size_t start            # start of the open pre-token
    size_t accept           # end of the longest match so far; == start: none
    size_t position         # next byte to look at
    u32 state               # 1 at the start of a pre-token
    bint committed          # the pre-token began before `start`: its tokens up to there are emitted
    double score            # Unigram's score of those tokens

cdef struct Marks:          # result of the windows for buffer[base : base + 64 * blocks]
    size_t first            # start of the text that the windows may read
    size_t base
    size_t blocks
    bint tells_gaps         # `scan` negates the ends of characters that no pre-token covers
    bint is_squeezed        # the last blocks were squeezed to one byte per character, so try the next ones
    u64[MARKED_BLOCKS] begins
    u64[MARKED_BLOCKS] open

cdef struct ScanTables:
    const u32* steps        # [n_states << row_bits] by ASCII byte, then by class; states are offsets
    u32 row_bits
    u32 n_classes
    const u8* bmp           # [0x10000] class of the code point
    const u8* final         # [n_states] whether a pre-token may end here if the input does
    const u16* pages        # [0x110000 >> 7] block of the code points
    const u8* blocks        # [n_blocks * 128] class of the code point
    u32 surrogate           # class of a byte that is not UTF-8 (in Python, a lone surrogate)
    const u8* settled       # [n_states] whether the pre-token is certain to extend at least this far
    st_windows* windows     # or NULL
    const u8* substitutes   # [ST_SUBSTITUTES_SIZE] ASCII or ST_NO_SUBSTITUTE, or NULL
    st_mark_function* mark
    size_t marked_from      # bytes from which marking is faster than a walk, at most MARKED_FROM,
    size_t extra_from       # and the same for the last block
    const u8* begins        # by ASCII byte, then by class: whether a pre-token can begin with it; NULL: always
    const u64* margins      # [128] by first character of a pre-token: 7 stand-ins before it, and itself; 0: none
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
    cdef list _owners           # keep alive the arrays that `c` points to
    cdef readonly u32 n_states
    cdef const ScanTables* tables(self) noexcept nogil
    cdef const void* own(self, array, Kind kind, str name, int dimensions) except NULL

# Signals (base/signals.pxi)

cdef struct Watch:
    u64 looked              # when signal handlers last ran, in milliseconds

# Merging (merge/merge.pxi, merge/segments.pxi)

cdef struct Node:       # of the linked list, which starts with one node for each byte
    u32 previous
    u32 next
    u32 token
    u32 version         # merges so far; a candidate with an older version is stale

cdef struct Candidate:  # a pair in the heap that may merge, ordered by rank, then position
    u64 key             # rank << 32 | position of the left node
    u32 left_version    # versions of its nodes when it was pushed
    u32 right_version

cdef struct Merger:     # scratch memory of one thread, grown as needed
    Node* nodes
    Candidate* heap
    size_t capacity     # nodes; the heap holds three times as many candidates
    u32* result         # tokens of the last call
    size_t result_capacity

cdef struct Growing:    # tokens; realloc moves `items`
    u32* items
    size_t count
    size_t capacity

cdef enum:
    SEGMENT = ST_SHORT          # bytes of a short segment
    STRIDE = 48                 # bytes from one segment to the next; in the overlap, two segments may agree
    OVERLAP = SEGMENT - STRIDE
    SEGMENTS = 64               # most segments that are merged together
    MISSES = 6                  # disagreeing segments in a round from which longer segments pay off
    LONG_SEGMENT = 1024         # bytes; merged by the heap where short segments do not pay off
    LONG_OVERLAP = 48
    LONGEST_PERIOD = 64         # bytes
    FIRST_SHUN = 1 << 14        # bytes merged in long segments after MISSES; doubles each time
    LOOK_EVERY = 1 << 16        # bytes between two checks of the clock

# The table of pre-tokens (cache/table.pxi)

cdef enum:
    BATCH = 256             # pre-tokens that are found, then looked up, together
    BIT_WORDS = BATCH // 64
    CELL_NUMBERS = 4        # capacity of a cell
    IN_ARENA = 7                # count of a cell whose numbers are in the arena
    LONG_PRETOKEN = 256     # longest pre-token whose ids are cached, in bytes

cdef struct Cell:           # a pre-token and its numbers, in half a cache line
    u64 low                 # bytes 0 .. 7; the hash, if there are more than 15
    u64 high                # bytes 8 .. 14, or the size. The top byte has 4 bits of length, up to 15, and 4
                            # for the count and IDLE (cache/growth.pxi)
    u32[CELL_NUMBERS] numbers   # if IN_ARENA: the offset of its data in the arena, in 64 bits, and the count

cdef struct PretokenCells:
    Cell* cells
    u64 cell_mask
    int cell_shift          # shift from a hash to a cell number
    size_t cells_used
    size_t cells_limit
    u64 probes              # cells after which a look-up stops; 0: no limit
    u64 new_flag            # flag in the count of a new cell
    Cell nothing            # an empty cell, returned if nothing is found
    u32* arena              # numbers of IN_ARENA cells, after the bytes of long pre-tokens
    size_t arena_used
    size_t arena_size

# Unigram's best paths (models/unigram.pxi), and spans of ids (models/model.pxi)

cdef struct BestPath:           # best path to a position of the pre-token
    double score
    u32 start               # where its last piece begins; NONE: no path reaches this position
    u32 id

cdef struct Lattice:
    BestPath* nodes             # [capacity]
    size_t capacity

cdef struct IdSpan:          # span of an id's text
    u64 at                  # index of the id
    u64 start
    u64 end

cdef struct Origin:         # range of bytes of a pre-token
    u32 start
    u32 end

cdef struct Staged:         # texts that stages produced, concatenated
    u8* bytes               # [capacity]
    Origin* origins         # [capacity] source of each byte
    size_t size
    size_t capacity
    u32 left_from           # in the input: start of the part that depends on what follows

# State of one thread (cache/workspace.pxi)

cdef enum:
    COUNT_STEP = 1 << 16    # bytes whose ids are counted at a time
    MIDDLE_PRETOKEN = ST_SHORT      # longest pre-token that can be pending, in bytes
    PENDING = 512           # most pending pre-tokens
    UNIT = ST_UNIT          # bytes; pending pre-tokens are stored at multiples of it
    RECENT_BITS = 10        # bits of a hash by which pending pre-tokens are looked up
    MOST_UNITS = PENDING * (MIDDLE_PRETOKEN // UNIT)

cdef struct Gap:            # where the ids of a pending pre-token belong
    size_t at               # position in `out`
    u64 low                 # the key of the pre-token
    u64 high
    u16 piece               # its index in `Waiting`
    u16 size
    u16 count               # ids, once it is merged
    u16 original            # index of the first gap of the same pre-token

cdef struct Waiting:        # distinct pending pre-tokens, to be merged together
    size_t count
    size_t unit             # next free unit of `bytes` and `tokens`
    u16[PENDING] units      # pre-token i begins at bytes[UNIT * units[i]], its tokens at tokens[…]
    u8[PENDING] sizes
    u8[PENDING] counts      # number of tokens
    u8* bytes
    u32* tokens

cdef struct Work:               # all mutable state that a thread needs to encode
    u32* out                    # ids
    size_t count
    size_t capacity
    bint counts_only            # the ids of long pre-tokens may be dropped
    size_t forgotten            # number of ids that were dropped
    PretokenCells cache         # cached pre-tokens
    Gap[PENDING] gaps           # in order of their positions
    size_t gap_count
    u16[1 << RECENT_BITS] recent    # by hash: the last gap of such a pre-token, which may be closed by now
    Waiting waiting             # the pre-tokens of the gaps
    Merger merger
    Merger scratch
    TextBuffer buffer                 # UTF-8 of a str, or a copy of bytes that may change
    Watch watch                 # when signals were last checked
    Lattice lattice             # for Unigram
    Staged staged               # output of the stages for a pre-token
    bint follows                # spans of ids are wanted, too; with merges, only those that `token_spans` needs
    IdSpan* id_spans
    size_t n_id_spans
    size_t id_spans_capacity
    u64 origin                  # offset in the text of the buffer that is encoded
    u8* section                 # the last full section of a long pre-token, which endless runs repeat
    u32* section_ids
    size_t section_count
    size_t section_stable       # bytes of it that are final; 0: no section is saved

# Borrowed texts (text/source.pxi)

cdef struct Source:
    const u8* data          # UTF-8, or the code units of a str
    size_t size             # in bytes or code units
    int unit                # bytes in a code unit; 0: the data is UTF-8
    bint is_ascii           # it is a str of ASCII characters
    bint is_checked         # the UTF-8 is known to be well-formed, or need not be
    bint may_change         # others may write to the bytes during the call
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

# Changed text (transform/)

cdef enum:
    MOST_CARING = 8     # most steps of a table that look at neighbours

cdef struct CharKind:           # of a code point or an element
    u8 joins                # bit i: at context-sensitive step i, it begins with a character that joins
    u8 holds                # bit i: and it ends with one that holds
    u8 flags

cdef struct Row:            # sizes in bytes; `before` may be SAME
    u64 now
    u64 before

cdef struct Element:        # followed in memory by its rows, key and text
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
    u8 last_size            # size of the last character of the last row, in bytes, if that row is SAME

cdef struct OpenElement:          # an element whose result is not final
    size_t start
    size_t stop
    Element* element        # NULL: it is unchanged, or not asked for yet
    CharKind kind               # a guess until it is asked for: see `put_entry`
    u8 where
    bint is_resolved
    bint is_owned           # free the element with the entry

cdef struct ElementWalk:
    const u8* p
    size_t n
    size_t at               # everything before it is final or in `entries`
    size_t pause            # position of the next check for signals
    size_t written          # everything before it is in `out`; from here to `final`, text is unchanged
    size_t final
    size_t taken            # bytes consumed, set at the end
    u8 begins               # PLACE_BEGIN and PLACE_FIRST for the next element
    bint ends               # the segment ends with this text
    bint is_changed
    bint is_later           # something before the first text was removed
    bint is_open            # nothing is consumed: all of the text is one element that may continue,
    CharKind open           # and its likely kind
    size_t mask_at          # position of the last look at 64 bytes,
    u64 mask                # and its result
    u8* out
    size_t size, capacity
    Alignment* rows         # receives the rows of the text consumed; NULL: not wanted
    size_t n_entries, most_entries
    OpenElement[MOST_CARING + 1] entries

cdef struct LevelMark:      # state of a level
    size_t begin            # start of the pending bytes
    size_t size
    size_t searched         # no token begins before it, unless one is final
    size_t walked           # up to where the element at `begin` extends; 0: unknown
    CharKind open           # likely kind of that element
    u8 where                # PLACE_BEGIN | PLACE_FIRST for the next text; 0: inside a segment
    bint after_word         # the character before `begin` is a word character
    bint takes_blanks       # the last token takes the whitespace that follows
    u8 segment, last_size   # state of the rows, as in `Alignment`
    size_t n_rows
    Row last_row
    u64 begins_now          # where the first row begins in the level's output,
    u64 begins_before       # and in its input

cdef struct Intake:         # input of a stream whose text is changed
    u8[3] partial           # bytes of an incomplete character
    u8 n_partial
    u64 bytes_in            # bytes fed so far
    u64 grown               # bytes that repair added
    size_t pending          # bytes of input without ids yet

cdef struct Level:
    u8* bytes
    size_t capacity
    Alignment rows          # of emitted text that is not final
    LevelMark mark          # as committed
