"""The merge loop of training: which pair of neighbours is the most frequent, again and again.

**The rows.** All pieces stand one after the other in one array, a slot for each byte and one between
two pieces. A token occupies the slots of its parts; its id is written into the first and the last of
them, so that both neighbours of a token are found from its ends without a linked list. A slot
also has how often its piece was seen.

**Pairs.** A hash table of 32-byte records: how often the pair occurs, and where, as a run of
slots in an array that is only appended to. Places are never removed; a look at the slots tells
whether the pair still stands there. A new pair always has the new token in it, so all its places come
up during one merge; and no count ever grows afterwards. Hence:

- what a merge does to other pairs is summed up for each neighbour in two arrays, and the hash table is
  asked once for each *different* neighbour;
- the greatest count never rises. Records lie in buckets by count (exact for small ones), linked through
  the table; only the bucket in turn is made a heap, ordered by count and tie. A record whose count
  has fallen since it was put there is noticed when it comes up, and put where it belongs;
- a pair rarer than the `floor` cannot be chosen before the greatest count has sunk below that. Such pairs
  are not even recorded. When there is nothing left above, the floor is lowered, the rows are
  written anew with a slot for each token, without those that became a single one, and the pairs
  are counted anew. Most of all different pairs are rare, and most rare pairs vanish before their
  turn would come.

Related: rustbpe and Hugging Face keep a lazily refreshed heap of all pairs with a set of pieces each.

Not here: pieces and their counts (`pieces.pyx`), what the ids stand for (`trainer.py`).
"""

cimport cython

import numpy as np

from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from streamtok._core.types cimport (
    NONE,
    ST_PREFETCH,
    st_free_table,
    st_mix,
    st_new_table,
    u8,
    u32,
    u64,
)

cdef enum:
    EDGE = 0xFFFFFFFE       # between two pieces
    INNER = 0xFFFFFFFD      # the first byte of a token that has become the right part of another
    MANY = 0x80000000       # flag of a weight that is a place in `weights`
    EXACT = 1024            # counts below have a bucket of their own
    LEVELS = EXACT + 64 * 16
    AHEAD = 12              # places between a prefetch and its use
    SKETCH_BITS = 18
    LONGEST = 0x50000000    # slots; there are fewer than three times as many places

cdef struct Slot:
    u32 token
    u32 weight              # how often the piece was seen, or MANY with a place in `weights`

cdef struct Pair:           # a record
    u64 key                 # left id << 32 | right id; EMPTY
    u64 count               # 0: done with
    u32 start               # its places: places[start:start + size]
    u32 size
    u32 next                # in the same bucket
    u32 _unused

cdef struct Entry:          # in the heap
    u64 count
    u64 tie                 # of those with the same count the smallest is chosen
    u64 at                  # which record

cdef struct Side:           # what one merge does to the pairs with one neighbour
    u64 weight
    u32 size                # places
    u32 start               # where the next one of them goes

cdef struct Event:
    u32 token
    u32 place

cdef u64 EMPTY = 0xFFFFFFFFFFFFFFFF


@cython.final
cdef class MergeLoop:
    """Merges pairs in the order of their counts. Made once, used up by `run`."""

    cdef Slot* rows
    cdef size_t rows_size
    cdef size_t rows_capacity
    cdef u64* weights
    cdef size_t n_weights
    cdef u32* lengths           # [n_tokens + room] slots of a token
    cdef Side* left             # [n_tokens + room] by the token on the left of a merge
    cdef Side* right
    cdef u32* left_seen
    cdef u32* right_seen
    cdef u32* lefts             # the merges
    cdef u32* rights
    cdef size_t tokens_capacity
    cdef Pair* table
    cdef u64 mask
    cdef u64 used
    cdef Side* of_bytes         # [1 << 16] pairs of bytes, until the first floor is chosen
    cdef u32* sketch            # [1 << SKETCH_BITS] while a floor is chosen
    cdef u32* places
    cdef size_t places_size
    cdef size_t places_capacity
    cdef Event* events
    cdef size_t events_capacity
    cdef u32[LEVELS] buckets    # the first record of each, or NONE
    cdef u32 level              # of the bucket in turn; all above are empty
    cdef Entry* heap
    cdef size_t heap_size
    cdef size_t heap_capacity
    cdef u64 floor
    cdef u64 lowest
    cdef u64 fall
    cdef bint by_place
    cdef bint finished
    cdef readonly u32 n_merges
    cdef readonly u32 most      # merges that will be made at the most

    def __cinit__(self, const u8[::1] data, const u32[::1] sizes, const u64[::1] counts,
                  const u32[::1] byte_ids, u32 most, u64 min_frequency, bint by_place,
                  u64 fall=4096):
        """data: pieces in a row, of the sizes and counts given; byte_ids: uint32 [256], the ids
        0 … 255 of the bytes; min_frequency: rarer pairs are not merged; by_place: a tie goes to the
        pair that comes first, not to the smallest ids; fall: by what factor the floor falls, which
        changes nothing but speed and memory."""
        cdef size_t n = sizes.shape[0], i, total = 0, slots = 1, many = 0
        if <size_t>counts.shape[0] != n or byte_ids.shape[0] != 256:
            raise ValueError("as many counts as sizes and 256 ids are needed")
        if fall < 2:
            raise ValueError(f"the floor has to fall by a factor of 2 or more, not {fall}")
        if most > 0x7FFFFFFF:
            raise ValueError(f"{most} merges are too many")
        for i in range(256):
            if byte_ids[i] > 255:
                raise ValueError("the ids of the bytes are 0 … 255")
        for i in range(n):
            total += sizes[i]
            if sizes[i] > 1:
                slots += sizes[i] + 1
                many += counts[i] >= MANY
        if total != <size_t>data.shape[0]:
            raise ValueError(f"the sizes sum to {total}, but there are {data.shape[0]} bytes")
        if slots > LONGEST:
            raise MemoryError(
                f"{slots} bytes of different pieces are more than can be trained on "
                f"({<size_t>LONGEST}): leave out rare ones"
            )
        self.most = most
        self.fall = fall
        self.by_place = by_place
        self.lowest = min_frequency if min_frequency else 1
        self.rows_capacity = slots
        self.rows = <Slot*>st_new_table(slots * sizeof(Slot))
        self.weights = <u64*>malloc((many + 1) * sizeof(u64))
        self.of_bytes = <Side*>calloc(1 << 16, sizeof(Side))
        reserve_tokens(self, 4096 if most > 4096 else most + 1)
        if self.rows == NULL or self.weights == NULL or self.of_bytes == NULL:
            raise MemoryError(f"no memory for {slots} bytes of pieces")
        with nogil:
            fill_rows(self, &data[0] if total else NULL, &sizes[0] if n else NULL,
                      &counts[0] if n else NULL, n, &byte_ids[0])
            for i in range(256):
                self.lengths[i] = 1

    def __dealloc__(self):
        st_free_table(self.rows)
        st_free_table(self.table)
        free(self.weights)
        free(self.lengths)
        free(self.left)
        free(self.right)
        free(self.left_seen)
        free(self.right_seen)
        free(self.lefts)
        free(self.rights)
        free(self.places)
        free(self.sketch)
        free(self.of_bytes)
        free(self.events)
        free(self.heap)

    def run(self, size_t effort):
        """bool: merge until about `effort` places were looked at; whether there is more to do."""
        cdef bint more
        with nogil:
            more = merge_on(self, effort)
        return more

    def merges(self):
        """(uint32 [n], uint32 [n]): the left and right ids so far."""
        cdef u32 n = self.n_merges
        lefts = np.empty(n, np.uint32)
        rights = np.empty(n, np.uint32)
        if n:
            lefts[:] = <u32[:n]>self.lefts
            rights[:] = <u32[:n]>self.rights
        return lefts, rights


cdef void fill_rows(MergeLoop m, const u8* data, const u32* sizes, const u64* counts, size_t n,
                    const u32* byte_ids) noexcept nogil:
    cdef size_t i, j, at = 1
    cdef u32 weight, pair
    cdef Slot* rows = m.rows
    rows[0].token = EDGE
    for i in range(n):
        if sizes[i] > 1:
            weight = <u32>counts[i]
            if counts[i] >= MANY:
                weight = <u32>MANY | <u32>m.n_weights
                m.weights[m.n_weights] = counts[i]
                m.n_weights += 1
            pair = 0
            for j in range(sizes[i]):
                rows[at].token = byte_ids[data[j]]
                rows[at].weight = weight
                pair = (pair << 8 | rows[at].token) & 0xFFFF
                at += 1
                if j:
                    m.of_bytes[pair].weight += counts[i]
                    m.of_bytes[pair].size += 1
            rows[at].token = EDGE
            at += 1
        data += sizes[i]
    m.rows_size = at


cdef inline u64 weight_of(MergeLoop m, u32 weight) noexcept nogil:
    return m.weights[weight & ~<u32>MANY] if weight & <u32>MANY else weight


cdef int reserve_tokens(MergeLoop m, size_t merges) except -1 nogil:
    """Room for so many merges in all."""
    cdef size_t tokens = 256 + merges
    if tokens <= m.tokens_capacity:
        return 0
    if tokens < 2 * m.tokens_capacity:
        tokens = 2 * m.tokens_capacity
    m.lengths = <u32*>resized(m.lengths, tokens * sizeof(u32))
    m.left = <Side*>resized(m.left, tokens * sizeof(Side))
    m.right = <Side*>resized(m.right, tokens * sizeof(Side))
    m.left_seen = <u32*>resized(m.left_seen, tokens * sizeof(u32))
    m.right_seen = <u32*>resized(m.right_seen, tokens * sizeof(u32))
    m.lefts = <u32*>resized(m.lefts, tokens * sizeof(u32))
    m.rights = <u32*>resized(m.rights, tokens * sizeof(u32))
    memset(m.left + m.tokens_capacity, 0, (tokens - m.tokens_capacity) * sizeof(Side))
    memset(m.right + m.tokens_capacity, 0, (tokens - m.tokens_capacity) * sizeof(Side))
    m.tokens_capacity = tokens
    return 0


cdef void* resized(void* memory, size_t size) except NULL nogil:
    cdef void* larger = realloc(memory, size)
    if larger == NULL:
        with gil:
            raise MemoryError(f"no memory for {size} bytes of the merge loop")
    return larger


# The table of pairs


cdef inline u64 hash_pair(u64 key) noexcept nogil:
    return st_mix(key ^ <u64>0x9E3779B97F4A7C15, <u64>0xD6E8FEB86659FD93)


cdef inline Pair* find(MergeLoop m, u64 key) noexcept nogil:
    """The record of a pair, or the empty one where it belongs."""
    cdef u64 at = hash_pair(key) & m.mask
    while m.table[at].key != key and m.table[at].key != EMPTY:
        at = (at + 1) & m.mask
    return m.table + at


cdef int new_table(MergeLoop m, u64 slots) except -1 nogil:
    cdef Pair* table = <Pair*>st_new_table(slots * sizeof(Pair))
    cdef u64 i
    if table == NULL:
        raise MemoryError(f"no memory for {slots} pairs")
    for i in range(slots):
        table[i].key = EMPTY
    m.table = table
    m.mask = slots - 1
    m.used = 0
    return 0


cdef int reserve_pairs(MergeLoop m, u64 more) except -1 nogil:
    """Room for `more` new pairs. Those that are done with are left behind on a move."""
    cdef Pair* old = m.table
    cdef u64 old_mask = m.mask, i, live = 0, slots = m.mask + 1
    cdef Pair* record
    if (m.used + more) * 8 <= slots * 5:
        return 0
    for i in range(old_mask + 1):
        live += old[i].key != EMPTY and old[i].count >= m.floor
    while (live + more) * 8 > slots * 3:
        slots *= 2
    new_table(m, slots)
    for i in range(old_mask + 1):
        if old[i].key != EMPTY and old[i].count >= m.floor:
            record = find(m, old[i].key)
            record[0] = old[i]
            m.used += 1
    st_free_table(old)
    sort_into_buckets(m)
    return 0


# Buckets and heap


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


cdef inline void put_into_bucket(MergeLoop m, Pair* record) noexcept nogil:
    cdef u32 level = level_of(record.count)
    record.next = m.buckets[level]
    m.buckets[level] = <u32>(record - m.table)


cdef void sort_into_buckets(MergeLoop m) noexcept nogil:
    """All records, from nothing."""
    cdef u64 i
    for i in range(LEVELS):
        m.buckets[i] = NONE
    m.level = LEVELS - 1
    m.heap_size = 0
    for i in range(m.mask + 1):
        if m.table[i].key != EMPTY and m.table[i].count >= m.floor:
            put_into_bucket(m, m.table + i)


cdef inline bint goes_before(const Entry* a, const Entry* b) noexcept nogil:
    return a.count > b.count or (a.count == b.count and a.tie < b.tie)


cdef int push(MergeLoop m, Pair* record) except -1 nogil:
    cdef Entry entry
    cdef size_t at = m.heap_size, above
    if at == m.heap_capacity:
        m.heap_capacity = 2 * at + 1024
        m.heap = <Entry*>resized(m.heap, m.heap_capacity * sizeof(Entry))
    entry.count = record.count
    entry.tie = tie_of(m, record)
    entry.at = record - m.table
    m.heap_size += 1
    while at:
        above = (at - 1) >> 2
        if not goes_before(&entry, m.heap + above):
            break
        m.heap[at] = m.heap[above]
        at = above
    m.heap[at] = entry
    return 0


cdef void pop(MergeLoop m) noexcept nogil:
    cdef size_t at = 0, below, best, i, n = m.heap_size - 1
    cdef Entry last = m.heap[n]
    m.heap_size = n
    while True:
        below = 4 * at + 1
        if below >= n:
            break
        best = below
        for i in range(below + 1, below + 4 if below + 4 < n else n):
            if goes_before(m.heap + i, m.heap + best):
                best = i
        if not goes_before(m.heap + best, &last):
            break
        m.heap[at] = m.heap[best]
        at = best
    m.heap[at] = last


cdef u64 tie_of(MergeLoop m, Pair* record) noexcept nogil:
    """What decides between pairs of one count. It never gets smaller."""
    cdef u32 left, right, place
    if not m.by_place:
        return record.key
    left = <u32>(record.key >> 32)
    right = <u32>record.key
    while record.size:          # the places are in order
        place = m.places[record.start]
        if m.rows[place].token == left and m.rows[place + m.lengths[left]].token == right:
            return place
        record.start += 1
        record.size -= 1
    return EMPTY                # its count is 0


cdef Pair* choose(MergeLoop m) except? NULL nogil:
    """The next pair to merge; NULL: all that are left are rarer than the floor."""
    cdef Entry top
    cdef Pair* record
    cdef u32 at
    while True:
        while m.heap_size:
            top = m.heap[0]
            record = m.table + top.at
            if record.count == top.count and tie_of(m, record) == top.tie:
                pop(m)
                return record
            pop(m)
            place_record(m, record)
        while m.level and m.buckets[m.level] == NONE:
            m.level -= 1
        if m.level == 0:
            return NULL
        at = m.buckets[m.level]
        m.buckets[m.level] = NONE
        while at != NONE:
            record = m.table + at
            at = record.next
            place_record(m, record)


cdef inline int place_record(MergeLoop m, Pair* record) except -1 nogil:
    """Where the record belongs by now: heap, bucket, or nowhere."""
    if record.count < m.floor:
        return 0
    if level_of(record.count) >= m.level:
        push(m, record)
    else:
        put_into_bucket(m, record)
    return 0


# Merging


cdef bint merge_on(MergeLoop m, size_t effort) except -1 nogil:
    cdef Pair* record
    cdef size_t spent = 0
    while m.n_merges < m.most and not m.finished:
        record = choose(m) if m.table != NULL else NULL
        if record == NULL:
            if m.floor == m.lowest:
                m.finished = True
                return False
            lower_floor(m)
            spent += m.rows_size
        else:
            spent += 16 + record.size
            merge(m, record)
        if spent >= effort:
            break
    return m.n_merges < m.most and not m.finished


cdef int merge(MergeLoop m, Pair* record) except -1 nogil:
    """Put a new token for the pair everywhere."""
    cdef u32 a = <u32>(record.key >> 32), b = <u32>record.key, x, y, place, second, end, i
    cdef u32 new = 256 + m.n_merges, size = record.size, n_left = 0, n_right = 0
    cdef u32 size_a, size_b, neighbour
    cdef u64 key, weight, both_weight = 0, n_both = 0
    cdef size_t n_events_left = 0, n_events_right = 0
    cdef Event* events_left
    cdef Event* events_right
    cdef const u32* places
    cdef Slot* rows = m.rows
    cdef Side* left
    cdef Side* right
    cdef Pair* other
    reserve_tokens(m, m.n_merges + 1)
    if m.events_capacity < 2 * <size_t>size:
        m.events_capacity = 3 * <size_t>size
        m.events = <Event*>resized(m.events, m.events_capacity * sizeof(Event))
    events_left = m.events
    events_right = m.events + size
    left = m.left
    right = m.right
    size_a = m.lengths[a]
    size_b = m.lengths[b]
    m.lengths[new] = size_a + size_b
    m.lefts[m.n_merges] = a
    m.rights[m.n_merges] = b
    m.n_merges += 1
    record.count = 0
    places = m.places + record.start
    for i in range(size):
        if i + AHEAD < size:
            ST_PREFETCH(rows + places[i + AHEAD])
        place = places[i]
        second = place + size_a
        if rows[place].token != a or rows[second].token != b:
            continue
        end = second + size_b
        x = rows[place - 1].token
        y = rows[end].token
        weight = weight_of(m, rows[place].weight)
        rows[second].token = INNER
        rows[place].token = new
        rows[end - 1].token = new
        if x == new:        # the pair twice in a row
            both_weight += weight
            events_left[n_events_left].token = new
            events_left[n_events_left].place = place - m.lengths[new]
            n_events_left += 1
            n_both += 1
        elif x != EDGE:
            if left[x].size == 0:
                m.left_seen[n_left] = x
                n_left += 1
            left[x].weight += weight
            left[x].size += 1
            events_left[n_events_left].token = x
            events_left[n_events_left].place = place - m.lengths[x]
            n_events_left += 1
        if y != EDGE:
            if right[y].size == 0:
                m.right_seen[n_right] = y
                n_right += 1
            right[y].weight += weight
            right[y].size += 1
            events_right[n_events_right].token = y
            events_right[n_events_right].place = place
            n_events_right += 1
    # Pairs with the parts get rarer, each neighbour at once.
    for i in range(n_left):
        lessen(m, <u64>m.left_seen[i] << 32 | a, left[m.left_seen[i]].weight)
    for i in range(n_right):
        y = m.right_seen[i]
        lessen(m, <u64>b << 32 | y, right[y].weight)
        if y == a:          # of these, some are followed by the new token, too
            right[y].weight -= both_weight
    # Pairs with the new token.
    if n_both:
        left[new].weight = both_weight
        left[new].size = <u32>n_both
        m.left_seen[n_left] = new
        n_left += 1
    reserve_pairs(m, n_left + n_right)
    for i in range(n_left):
        x = m.left_seen[i]
        begin_pair(m, <u64>x << 32 | new, left + x)
    for i in range(n_right):
        y = m.right_seen[i]
        begin_pair(m, <u64>new << 32 | y, right + y)
    for i in range(<u32>n_events_left):
        x = events_left[i].token
        if left[x].start != NONE:
            m.places[left[x].start] = events_left[i].place
            left[x].start += 1
    for i in range(<u32>n_events_right):
        y = events_right[i].token
        if right[y].start != NONE:
            m.places[right[y].start] = events_right[i].place
            right[y].start += 1
    for i in range(n_left):
        x = m.left_seen[i]
        if left[x].start != NONE:
            place_record(m, find(m, <u64>x << 32 | new))
        left[x].weight = 0
        left[x].size = 0
    for i in range(n_right):
        y = m.right_seen[i]
        if right[y].start != NONE:
            place_record(m, find(m, <u64>new << 32 | y))
        right[y].weight = 0
        right[y].size = 0
    return 0


cdef inline void lessen(MergeLoop m, u64 key, u64 weight) noexcept nogil:
    cdef Pair* record = find(m, key)
    if record.key == key and record.count:
        record.count -= weight


cdef inline int begin_pair(MergeLoop m, u64 key, Side* side) except -1 nogil:
    """A record for a new pair, and room for its places, unless it is too rare; there is room."""
    cdef Pair* record
    if side.weight < m.floor:
        side.start = NONE
        return 0
    reserve_places(m, side.size)
    record = find(m, key)
    record.key = key
    record.count = side.weight
    record.start = side.start = <u32>m.places_size
    record.size = side.size
    m.places_size += side.size
    m.used += 1
    return 0


cdef inline int reserve_places(MergeLoop m, size_t more) except -1 nogil:
    if m.places_size + more > m.places_capacity:
        m.places_capacity = m.places_size + m.places_size // 2 + more + 4096
        m.places = <u32*>resized(m.places, m.places_capacity * sizeof(u32))
    return 0


# From one floor to the next


cdef int lower_floor(MergeLoop m) except -1 nogil:
    """Choose the next floor, and record all pairs that are not rarer."""
    if m.floor == 0:
        return begin_with_bytes(m)
    st_free_table(m.table)
    m.table = NULL
    close_gaps(m)
    m.floor //= m.fall
    if m.floor < m.lowest or m.floor < m.fall * m.lowest // 8:
        m.floor = m.lowest
    sketch_counts(m)
    count_pairs(m)
    sort_into_buckets(m)
    return 0


cdef int begin_with_bytes(MergeLoop m) except -1 nogil:
    """The first floor, and all pairs of bytes that are not rarer."""
    cdef u64 i, top = 0, common = 0, slots = 1024
    cdef u32 left, right
    cdef size_t total = 0
    cdef Pair* record
    for i in range(1 << 16):
        top = m.of_bytes[i].weight if m.of_bytes[i].weight > top else top
    m.floor = top // m.fall
    if m.floor < m.lowest or m.floor < m.fall * m.lowest // 8:
        m.floor = m.lowest
    for i in range(1 << 16):
        common += m.of_bytes[i].weight >= m.floor
    while common * 2 > slots:
        slots *= 2
    new_table(m, slots)
    for i in range(1 << 16):
        if m.of_bytes[i].weight < m.floor:
            m.of_bytes[i].start = NONE
            continue
        record = find(m, (i >> 8) << 32 | (i & 0xFF))
        record.key = (i >> 8) << 32 | (i & 0xFF)
        record.count = m.of_bytes[i].weight
        record.size = m.of_bytes[i].size
        record.start = m.of_bytes[i].start = <u32>total
        total += record.size
        m.used += 1
    reserve_places(m, total)
    m.places_size = total
    right = m.rows[0].token
    for i in range(1, m.rows_size):
        left = right
        right = m.rows[i].token
        if left < 256 and right < 256 and m.of_bytes[left << 8 | right].start != NONE:
            m.places[m.of_bytes[left << 8 | right].start] = <u32>(i - 1)
            m.of_bytes[left << 8 | right].start += 1
    free(m.of_bytes)
    m.of_bytes = NULL
    sort_into_buckets(m)
    return 0


cdef void close_gaps(MergeLoop m) noexcept nogil:
    """Leave out rows that are a single token; from now on a token of the others is one slot."""
    cdef size_t at = 1, to = 1, begin
    cdef Slot* rows = m.rows
    while at < m.rows_size:
        begin = to
        while rows[at].token != EDGE:
            rows[to] = rows[at]
            at += m.lengths[rows[to].token]
            to += 1
        if to - begin == 1:
            to = begin
        else:
            rows[to].token = EDGE
            to += 1
        at += 1
    m.rows_size = to
    for at in range(256 + m.n_merges):
        m.lengths[at] = 1


cdef int sketch_counts(MergeLoop m) except -1 nogil:
    """Upper bounds of the counts of all pairs: several share one. None where all are wanted."""
    cdef u64 i, count
    cdef u32* bound
    if m.floor <= 1:
        return 0
    m.sketch = <u32*>calloc(1 << SKETCH_BITS, sizeof(u32))
    if m.sketch == NULL:
        with gil:
            raise MemoryError
    for i in range(1, m.rows_size):
        if m.rows[i - 1].token != EDGE and m.rows[i].token != EDGE:
            bound = m.sketch + in_sketch(key_at(m, i - 1))
            count = bound[0] + weight_of(m, m.rows[i - 1].weight)
            bound[0] = <u32>count if count < NONE else <u32>NONE
    return 0


cdef int count_pairs(MergeLoop m) except -1 nogil:
    """Record the pairs that are not rarer than the floor, and their places."""
    cdef u64 i, key, slots = 1 << 14
    cdef u32 bound = <u32>m.floor if m.floor < NONE else <u32>NONE
    cdef size_t n = 0, total = 0
    cdef Pair* record
    new_table(m, slots)
    i = 1
    while i < m.rows_size:
        i += 1
        if m.rows[i - 2].token == EDGE or m.rows[i - 1].token == EDGE:
            continue
        key = key_at(m, i - 2)
        if m.sketch != NULL and m.sketch[in_sketch(key)] < bound:
            continue
        if n == m.events_capacity:
            m.events_capacity = n + n // 2 + 4096
            m.events = <Event*>resized(m.events, m.events_capacity * sizeof(Event))
        record = find(m, key)
        if record.key == EMPTY:
            if m.used * 2 > m.mask:         # begin anew: events tell records by their slots
                slots *= 4
                st_free_table(m.table)
                m.table = NULL
                new_table(m, slots)
                n = 0
                i = 1
                continue
            record.key = key
            m.used += 1
        record.count += weight_of(m, m.rows[i - 2].weight)
        record.size += 1
        m.events[n].token = <u32>(record - m.table)
        m.events[n].place = <u32>(i - 2)
        n += 1
    free(m.sketch)
    m.sketch = NULL
    for i in range(m.mask + 1):
        record = m.table + i
        if record.key != EMPTY and record.count >= m.floor:
            record.start = <u32>total
            total += record.size
            record.size = 0
    m.places_size = 0
    reserve_places(m, total)
    m.places_size = total
    for i in range(n):
        record = m.table + m.events[i].token
        if record.count >= m.floor:
            m.places[record.start + record.size] = m.events[i].place
            record.size += 1
    return 0


cdef inline u64 key_at(MergeLoop m, size_t at) noexcept nogil:
    return <u64>m.rows[at].token << 32 | m.rows[at + 1].token


cdef inline u64 in_sketch(u64 key) noexcept nogil:
    return hash_pair(key) >> (64 - SKETCH_BITS)
