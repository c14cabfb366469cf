"""The state of a merge loop, and its small, hot functions; see `training/merge_loop.pxi`."""

cdef extern from *:
    """
    #define ST_NO_PAIR UINT64_MAX
    """
    const u64 NO_PAIR "ST_NO_PAIR"


cdef enum:
    EDGE = 0xFFFFFFFE           # the slot between two pre-tokens
    INNER = 0xFFFFFFFD          # the first slot of a token that has become the right part of another
    MANY = 0x80000000           # flag of a weight that is an index into `weights`
    EXACT = 1024                # smaller counts have a bucket of their own
    LEVELS = EXACT + 64 * 16
    AHEAD = 12                  # positions between a prefetch and its use
    LONGEST = 0x50000000        # most slots of rows; there are fewer than three times as many positions
    MOST_SLOTS = 0x80000000     # most slots of the table of pairs


cdef struct Slot:
    u32 token
    u32 weight              # count of the pre-token, or MANY with an index into `weights`


cdef struct Pair:           # a record of the table
    u64 key                 # left id << 32 | right id; or NO_PAIR
    u64 count               # 0: finished
    u32 start               # its positions: positions[start:start + size]
    u32 size
    u32 next                # next record in the same bucket
    u32 _unused


cdef struct Entry:          # of the heap
    u64 count
    u64 tie                 # the smallest one wins among equal counts
    u64 at                  # index of the record


cdef struct Side:           # what one merge changes in the pairs with one neighbour
    u64 weight
    u32 size                # number of positions
    u32 start               # where the next position is stored


cdef struct Event:
    u32 token
    u32 position


cdef struct Merging:        # the state of a MergeLoop
    Slot* rows
    size_t rows_size
    u64* weights
    size_t n_weights
    u32* lengths            # [tokens_capacity] slots of a token
    Side* left              # [tokens_capacity] by token to the left of a merge
    Side* right
    u32* left_seen
    u32* right_seen
    u32* lefts              # [n_merges]
    u32* rights
    size_t tokens_capacity
    Pair* table
    u64 mask
    int shift               # shift from a hash to the index of a record
    u64 used
    u32 n_symbols           # bytes or others, with ids from 0 on
    Side* of_bytes          # [1 << 16] pairs of bytes, until they are recorded
    u32* positions
    size_t positions_size
    size_t positions_capacity
    Event* events
    size_t events_capacity
    u32[LEVELS] buckets     # first record of each, or NONE
    u32 level               # the current bucket; all above it are empty
    Entry* heap
    size_t heap_size
    size_t heap_capacity
    u64 lowest              # rarer pairs are not merged
    u32 length_limit        # tokens of more than two symbols must be shorter
    bint by_position
    bint finished
    u32 n_merges
    u32 most                # limit of n_merges


cdef inline Pair* find_record(Merging* m, u64 key) noexcept nogil:
    """The record of a pair, or the empty record where it belongs."""
    cdef u64 at = st_hash_word(key) >> m.shift
    while m.table[at].key != key and m.table[at].key != NO_PAIR:
        at = (at + 1) & m.mask
    return m.table + at


cdef inline u32 level_of(u64 count) noexcept nogil:
    """The bucket for a count: one for each count below EXACT, then 16 for each power of two."""
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
