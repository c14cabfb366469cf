"""The state of a merge loop, and what is small and asked often of it; see `training/merge_loop.pxi`."""

cdef extern from *:
    """
    #define ST_NO_PAIR UINT64_MAX
    """
    const u64 NO_PAIR "ST_NO_PAIR"


cdef enum:
    EDGE = 0xFFFFFFFE           # between two pre-tokens
    INNER = 0xFFFFFFFD          # the first byte of a token that has become the right part of another
    MANY = 0x80000000           # flag of a weight that is a position in `weights`
    EXACT = 1024                # counts below have a bucket of their own
    LEVELS = EXACT + 64 * 16
    AHEAD = 12                  # positions between a prefetch and its use
    LONGEST = 0x50000000        # slots of rows; there are fewer than three times as many positions
    MOST_SLOTS = 0x80000000     # of the table of pairs


cdef struct Slot:
    u32 token
    u32 weight              # how often the pre-token was seen, or MANY with a position in `weights`


cdef struct Pair:           # a record
    u64 key                 # left id << 32 | right id; or NO_PAIR
    u64 count               # 0: done with
    u32 start               # its positions: positions[start:start + size]
    u32 size
    u32 next                # in the same bucket
    u32 _unused


cdef struct Entry:          # in the heap
    u64 count
    u64 tie                 # of those with the same count the smallest is chosen
    u64 at                  # which record


cdef struct Side:           # what one merge does to the pairs with one neighbour
    u64 weight
    u32 size                # positions
    u32 start               # where the next one of them goes


cdef struct Event:
    u32 token
    u32 position


cdef struct Merging:        # all that a MergeLoop has
    Slot* rows
    size_t rows_size
    u64* weights
    size_t n_weights
    u32* lengths            # [n_tokens + room] slots of a token
    Side* left              # [n_tokens + room] by the token on the left of a merge
    Side* right
    u32* left_seen
    u32* right_seen
    u32* lefts              # the merges
    u32* rights
    size_t tokens_capacity
    Pair* table
    u64 mask
    int shift               # of a hash that gives the number of a record
    u64 used
    u32 n_symbols           # with ids from 0 on: bytes, or others
    Side* of_bytes          # [1 << 16] pairs of bytes, until they are recorded
    u32* positions
    size_t positions_size
    size_t positions_capacity
    Event* events
    size_t events_capacity
    u32[LEVELS] buckets     # the first record of each, or NONE
    u32 level               # of the bucket in turn; all above are empty
    Entry* heap
    size_t heap_size
    size_t heap_capacity
    u64 lowest              # rarer pairs are not merged
    u32 length_limit        # tokens of more than two symbols are shorter
    bint by_position
    bint finished
    u32 n_merges
    u32 most                # merges that will be made at most


cdef inline Pair* find_record(Merging* m, u64 key) noexcept nogil:
    """The record of a pair, or the empty one where it belongs."""
    cdef u64 at = st_hash_word(key) >> m.shift
    while m.table[at].key != key and m.table[at].key != NO_PAIR:
        at = (at + 1) & m.mask
    return m.table + at


cdef inline u32 level_of(u64 count) noexcept nogil:
    """The number of the bucket for a count: exact below EXACT, then 16 for each power of two."""
    cdef u32 power = 0
    cdef u64 rest
    if count < EXACT:
        return <u32>count
    rest = count >> 5
    while rest >> 32:
        rest >>= 8
        power += 8
    while rest >= 32:
        rest >>= 1
        power += 1
    return <u32>EXACT + power * 16 + <u32>(rest - 16)


cdef inline void put_into_bucket(Merging* m, Pair* record) noexcept nogil:
    cdef u32 level = level_of(record.count)
    record.next = m.buckets[level]
    m.buckets[level] = <u32>(record - m.table)


cdef inline u64 weight_of(Merging* m, u32 weight) noexcept nogil:
    return m.weights[weight & ~<u32>MANY] if weight & <u32>MANY else weight


cdef inline void* resized(void* memory, size_t size) except NULL nogil:
    cdef void* larger = realloc(memory, size)
    if larger == NULL:
        with gil:
            raise MemoryError(f"no memory for {size} bytes of the merge loop")
    return larger


cdef inline int reserve_positions(Merging* m, size_t more) except -1 nogil:
    if m.positions_size + more > m.positions_capacity:
        m.positions_capacity = m.positions_size + m.positions_size // 2 + more + 4096
        m.positions = <u32*>resized(m.positions, m.positions_capacity * sizeof(u32))
    return 0
