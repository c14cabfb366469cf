"""From one floor to the next: which pairs are frequent enough to be recorded, and where they are.

The first floor is chosen from the counts of pairs of bytes, which `training/merge_loop.pxi` takes while it
lays out the rows; other symbols are too many for that, and all pairs of them are recorded at once. For a lower one the rows are written anew, with a slot for each token and without
those that became a single one; a sketch of upper bounds sorts out most of the rare pairs; the
others are counted exactly.
"""

cdef int lower_floor(Merging* m) except -1 nogil:
    """Choose the next floor, and record all pairs that are not rarer."""
    if m.of_bytes != NULL:
        return begin_with_bytes(m)
    st_free_table(m.table)
    m.table = NULL
    close_row_gaps(m)
    m.floor //= m.fall
    if m.floor < m.lowest or m.floor < m.fall * m.lowest // 8:
        m.floor = m.lowest
    sketch_counts(m)
    count_pairs(m)
    sort_into_buckets(m)
    return 0


cdef int begin_with_bytes(Merging* m) except -1 nogil:
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
        record = find_record(m, (i >> 8) << 32 | (i & 0xFF))
        record.key = (i >> 8) << 32 | (i & 0xFF)
        record.count = m.of_bytes[i].weight
        record.size = m.of_bytes[i].size
        record.start = m.of_bytes[i].start = <u32>total
        total += record.size
        m.used += 1
    reserve_pair_places(m, total)
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


cdef void close_row_gaps(Merging* m) noexcept nogil:
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
    for at in range(m.n_symbols + m.n_merges):
        m.lengths[at] = 1


cdef int sketch_counts(Merging* m) except -1 nogil:
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


cdef int count_pairs(Merging* m) except -1 nogil:
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
        record = find_record(m, key)
        if record.key == NO_PAIR:
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
        if record.key != NO_PAIR and record.count >= m.floor:
            record.start = <u32>total
            total += record.size
            record.size = 0
    m.places_size = 0
    reserve_pair_places(m, total)
    m.places_size = total
    for i in range(n):
        record = m.table + m.events[i].token
        if record.count >= m.floor:
            m.places[record.start + record.size] = m.events[i].place
            record.size += 1
    return 0


cdef inline u64 key_at(Merging* m, size_t at) noexcept nogil:
    return <u64>m.rows[at].token << 32 | m.rows[at + 1].token


cdef inline u64 in_sketch(u64 key) noexcept nogil:
    return st_hash_word(key) >> (64 - SKETCH_BITS)
