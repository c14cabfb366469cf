"""The merge loop of training: merge the most frequent pair of neighbours, again and again.

**Rows.** All pre-tokens are in one array, one after the other, with a slot for each symbol (such as a byte)
and one between two pre-tokens. A token occupies the slots of its parts. Its id is in the first and the last
of them, so that both neighbours of a token are found from its ends without a linked list. A slot also holds
the count of its pre-token.

**Pairs.** A hash table has a record of 32 bytes for each pair: how often it occurs, and where, as a range
of an array of positions that is only appended to. Positions are never removed: the slots tell whether the
pair is still there. A new pair always contains the new token, so all its positions are found during one
merge, and its count never grows afterwards. Hence:

- the changes that a merge makes to other pairs are summed for each neighbour in two arrays, and the hash
  table is read once for each *different* neighbour;
- the greatest count never rises. Records are in buckets by count (exact for small counts), linked through
  the table; only the current bucket is made a heap, ordered by count and tie (`training/pair_queue.pxi`);
- a pair that is too rare to be merged is not even recorded.

For comparison: rustbpe and Hugging Face keep a lazily refreshed heap of all pairs, with a set of pre-tokens
for each.

Other files hold the pre-tokens and their counts (`training/pretoken_counts.pxi`) and the text of the ids
(`trainer.py`).
"""

@cython.final
cdef class MergeLoop:
    """Merges pairs in the order of their counts. Each object serves one training run."""

    cdef Merging m

    def __cinit__(self, data, sizes, counts, symbol_ids, u32 most, u64 min_frequency,
                  bint by_position, u32 length_limit=NONE):
        """data: pre-tokens, concatenated, as bytes (uint8) or as symbols numbered from 0 (uint32). sizes,
        counts: uint32 [n] and uint64 [n], one for each pre-token. symbol_ids: uint32 [number of symbols],
        the id of each symbol; a permutation of the symbols' numbers. min_frequency: rarer pairs are not
        merged. by_position: a tie goes to the pair that occurs first, not to the smallest ids.
        length_limit: tokens of more than two symbols have fewer symbols than this.
        """
        cdef bint has_bytes = getattr(data, "dtype", None) != np.uint32
        cdef ArrayView data_view = read_array(data, UINT8 if has_bytes else UINT32, "data")
        cdef ArrayView size_view = read_array(sizes, UINT32, "sizes")
        cdef ArrayView count_view = read_array(counts, UINT64, "counts")
        cdef ArrayView id_view = read_array(symbol_ids, UINT32, "symbol_ids")
        cdef const u32* size = <const u32*>size_view.data
        cdef const u64* count = <const u64*>count_view.data
        cdef const u32* symbol_id = <const u32*>id_view.data
        cdef const u32* symbol = NULL if has_bytes else <const u32*>data_view.data
        cdef size_t n = size_view.size, i, total = 0, slots = 1, many = 0
        if count_view.size != n or (has_bytes and id_view.size != 256):
            raise ValueError("expected as many counts as sizes, and 256 ids")
        if <u64>most + id_view.size > 0x7FFFFFFF:
            raise ValueError(f"{most} merges are too many")
        for i in range(id_view.size):
            if symbol_id[i] >= id_view.size:
                raise ValueError(f"the ids of symbols must be 0 to {id_view.size - 1}")
        for i in range(n):
            total += size[i]
            if size[i] > 1:
                slots += size[i] + 1
                many += count[i] >= MANY
        if total != data_view.size:
            raise ValueError(f"the sizes sum to {total}, but there are {data_view.size} symbols")
        for i in range(0 if has_bytes else total):
            if symbol[i] >= id_view.size:
                raise ValueError(f"there are {id_view.size} symbols, but one is {symbol[i]}")
        if slots > LONGEST:
            raise MemoryError(
                f"{slots} symbols of different pre-tokens are more than can be trained on "
                f"({<size_t>LONGEST}): train on a sample of the text"
            )
        self.m.most = most
        self.m.by_position = by_position
        self.m.length_limit = length_limit
        self.m.lowest = min_frequency if min_frequency else 1
        self.m.rows = <Slot*>st_new_table(slots * sizeof(Slot))
        self.m.weights = <u64*>malloc((many + 1) * sizeof(u64))
        self.m.n_symbols = <u32>id_view.size
        if has_bytes:
            self.m.of_bytes = <Side*>calloc(1 << 16, sizeof(Side))
        reserve_merges(&self.m, 4096 if most > 4096 else most + 1)
        if self.m.rows == NULL or self.m.weights == NULL or has_bytes and self.m.of_bytes == NULL:
            raise MemoryError(f"no memory for {slots} symbols of pre-tokens")
        with nogil:
            if has_bytes:
                fill_rows(&self.m, <const u8*>data_view.data, size, count, n, symbol_id)
            else:
                fill_rows(&self.m, symbol, size, count, n, symbol_id)
            for i in range(self.m.n_symbols):
                self.m.lengths[i] = 1

    def __dealloc__(self):
        st_free_table(self.m.rows)
        st_free_table(self.m.table)
        free(self.m.weights)
        free(self.m.lengths)
        free(self.m.left)
        free(self.m.right)
        free(self.m.left_seen)
        free(self.m.right_seen)
        free(self.m.lefts)
        free(self.m.rights)
        free(self.m.positions)
        free(self.m.of_bytes)
        free(self.m.events)
        free(self.m.heap)

    @property
    def n_merges(self):
        """The number of merges so far."""
        return self.m.n_merges

    @property
    def most(self):
        """The maximum number of merges."""
        return self.m.most

    def run(self, size_t effort):
        """bool: merge until about `effort` positions have been visited. Returns whether there is more to
        do.
        """
        cdef bint more
        with nogil:
            more = merge_on(&self.m, effort)
        return more

    def merges(self):
        """(uint32 [n], uint32 [n]): the left and right ids of the merges so far."""
        cdef u32 n = self.m.n_merges
        lefts = np.empty(n, np.uint32)
        rights = np.empty(n, np.uint32)
        memcpy(array_memory(lefts, UINT32), self.m.lefts, n * sizeof(u32))
        memcpy(array_memory(rights, UINT32), self.m.rights, n * sizeof(u32))
        return lefts, rights


ctypedef fused Symbol:
    u8
    u32


cdef void fill_rows(Merging* m, const Symbol* data, const u32* sizes, const u64* counts, size_t n,
                    const u32* symbol_ids) noexcept nogil:
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
                rows[at].token = symbol_ids[data[j]]
                rows[at].weight = weight
                pair = (pair << 8 | rows[at].token) & 0xFFFF
                at += 1
                if j and m.of_bytes != NULL:
                    m.of_bytes[pair].weight += counts[i]
                    m.of_bytes[pair].size += 1
            rows[at].token = EDGE
            at += 1
        data += sizes[i]
    m.rows_size = at


cdef int reserve_merges(Merging* m, size_t merges) except -1 nogil:
    """Make room for `merges` merges in all."""
    cdef size_t tokens = m.n_symbols + merges
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


# Merging


cdef bint merge_on(Merging* m, size_t effort) except -1 nogil:
    cdef Pair* record
    cdef size_t spent = 0
    while m.n_merges < m.most and not m.finished:
        if m.table == NULL:
            count_first_pairs(m)
            spent += m.rows_size
        else:
            record = next_pair(m)
            if record == NULL:
                m.finished = True
                break
            spent += 16 + record.size
            merge_pair(m, record)
        if spent >= effort:
            break
    return m.n_merges < m.most and not m.finished


cdef int merge_pair(Merging* m, Pair* record) except -1 nogil:
    """Replace the pair with a new token everywhere."""
    cdef u32 a = <u32>(record.key >> 32), b = <u32>record.key, x, y, position, second, end, i
    cdef u32 new = m.n_symbols + m.n_merges, size = record.size, n_left = 0, n_right = 0
    cdef u32 size_a, size_b, neighbour
    cdef u64 key, weight, both_weight = 0, n_both = 0
    cdef size_t n_events_left = 0, n_events_right = 0
    cdef Event* events_left
    cdef Event* events_right
    cdef const u32* positions
    cdef Slot* rows = m.rows
    cdef Side* left
    cdef Side* right
    cdef Pair* other
    reserve_merges(m, m.n_merges + 1)
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
    positions = m.positions + record.start
    for i in range(size):
        if i + AHEAD < size:
            ST_PREFETCH(rows + positions[i + AHEAD])
        position = positions[i]
        second = position + size_a
        if rows[position].token != a or rows[second].token != b:
            continue
        end = second + size_b
        x = rows[position - 1].token
        y = rows[end].token
        weight = weight_of(m, rows[position].weight)
        rows[second].token = INNER
        rows[position].token = new
        rows[end - 1].token = new
        if x == new:        # the pair occurs twice in a row
            both_weight += weight
            events_left[n_events_left].token = new
            events_left[n_events_left].position = position - m.lengths[new]
            n_events_left += 1
            n_both += 1
        elif x != EDGE:
            if left[x].size == 0:
                m.left_seen[n_left] = x
                n_left += 1
            left[x].weight += weight
            left[x].size += 1
            events_left[n_events_left].token = x
            events_left[n_events_left].position = position - m.lengths[x]
            n_events_left += 1
        if y != EDGE:
            if right[y].size == 0:
                m.right_seen[n_right] = y
                n_right += 1
            right[y].weight += weight
            right[y].size += 1
            events_right[n_events_right].token = y
            events_right[n_events_right].position = position
            n_events_right += 1
    # Pairs of a neighbour and a merged part become rarer: one update for each neighbour.
    for i in range(n_left):
        reduce_count(m, <u64>m.left_seen[i] << 32 | a, left[m.left_seen[i]].weight)
    for i in range(n_right):
        y = m.right_seen[i]
        reduce_count(m, <u64>b << 32 | y, right[y].weight)
        if y == a:          # some of these have become the new token
            right[y].weight -= both_weight
    # Pairs that contain the new token.
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
            m.positions[left[x].start] = events_left[i].position
            left[x].start += 1
    for i in range(<u32>n_events_right):
        y = events_right[i].token
        if right[y].start != NONE:
            m.positions[right[y].start] = events_right[i].position
            right[y].start += 1
    for i in range(n_left):
        x = m.left_seen[i]
        if left[x].start != NONE:
            queue_pair(m, find_record(m, <u64>x << 32 | new))
        left[x].weight = 0
        left[x].size = 0
    for i in range(n_right):
        y = m.right_seen[i]
        if right[y].start != NONE:
            queue_pair(m, find_record(m, <u64>new << 32 | y))
        right[y].weight = 0
        right[y].size = 0
    return 0


cdef inline void reduce_count(Merging* m, u64 key, u64 weight) noexcept nogil:
    cdef Pair* record = find_record(m, key)
    if record.key == key and record.count:
        record.count -= weight


cdef inline int begin_pair(Merging* m, u64 key, Side* side) except -1 nogil:
    """Record a new pair, and reserve its positions, unless it is too rare or too long. The table must have
    room.
    """
    cdef Pair* record
    if side.weight < m.lowest or (
            m.lengths[key >> 32] + m.lengths[<u32>key] >= m.length_limit):
        side.start = NONE
        return 0
    reserve_positions(m, side.size)
    record = find_record(m, key)
    record.key = key
    record.count = side.weight
    record.start = side.start = <u32>m.positions_size
    record.size = side.size
    m.positions_size += side.size
    m.used += 1
    return 0
