"""Which pair is next: the hash table of pairs, buckets by count, and a heap of the current bucket.

Records are in buckets, linked through the table. If the count of a record has fallen since it was queued,
this is noticed when its turn comes, and it is queued again. Counts never rise, so no record is found too
late. The heap orders the current bucket by count and tie. A heap entry holds both as they were when it was
pushed, which serves as its version: the record of an outdated entry is queued again.
"""

cdef int new_table(Merging* m, u64 slots) except -1 nogil:
    """Make an empty table. The caller frees the old one."""
    cdef Pair* table = NULL
    cdef u64 i
    if slots <= MOST_SLOTS:
        table = <Pair*>st_new_table(slots * sizeof(Pair))
    if table == NULL:
        raise MemoryError(f"no memory for {slots} pairs")
    for i in range(slots):
        table[i].key = NO_PAIR
    m.table = table
    m.mask = slots - 1
    m.shift = st_hash_shift(slots)
    m.used = 0
    return 0


cdef int reserve_pairs(Merging* m, u64 more) except -1 nogil:
    """Make room for `more` new pairs. Drops finished pairs when the table is moved."""
    cdef Pair* old = m.table
    cdef u64 old_mask = m.mask, i, live = 0, slots = m.mask + 1
    cdef Pair* record
    if (m.used + more) * 8 <= slots * 5:
        return 0
    for i in range(old_mask + 1):
        live += old[i].key != NO_PAIR and old[i].count != 0
    while (live + more) * 8 > slots * 3:
        slots *= 2
    new_table(m, slots)
    for i in range(old_mask + 1):
        if old[i].key != NO_PAIR and old[i].count:
            record = find_record(m, old[i].key)
            record[0] = old[i]
            m.used += 1
    st_free_table(old)
    sort_into_buckets(m)
    return 0


# Buckets and heap


cdef void sort_into_buckets(Merging* m) noexcept nogil:
    """Queue all records anew."""
    cdef u64 i
    for i in range(LEVELS):
        m.buckets[i] = NONE
    m.level = LEVELS - 1
    m.heap_size = 0
    for i in range(m.mask + 1):
        if m.table[i].key != NO_PAIR and m.table[i].count >= m.lowest:
            put_into_bucket(m, m.table + i)


cdef inline bint goes_before(const Entry* a, const Entry* b) noexcept nogil:
    return a.count > b.count or (a.count == b.count and a.tie < b.tie)


cdef int push_record(Merging* m, Pair* record) except -1 nogil:
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


cdef void pop(Merging* m) noexcept nogil:
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


cdef u64 tie_of(Merging* m, Pair* record) noexcept nogil:
    """The number that decides between pairs with the same count: the smaller one wins. It never decreases."""
    cdef u32 left, right, position
    if not m.by_position:
        return record.key
    left = <u32>(record.key >> 32)
    right = <u32>record.key
    while record.size:          # the positions are in order
        position = m.positions[record.start]
        if m.rows[position].token == left and m.rows[position + m.lengths[left]].token == right:
            return position
        record.start += 1
        record.size -= 1
    return NO_PAIR                # its count is 0


cdef Pair* next_pair(Merging* m) except? NULL nogil:
    """The next pair to merge, or NULL if all remaining pairs are too rare."""
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
            queue_pair(m, record)
        while m.level and m.buckets[m.level] == NONE:
            m.level -= 1
        if m.level == 0:
            return NULL
        at = m.buckets[m.level]
        m.buckets[m.level] = NONE
        while at != NONE:
            record = m.table + at
            at = record.next
            queue_pair(m, record)


cdef int queue_pair(Merging* m, Pair* record) except -1 nogil:
    """Put the record where it belongs now: into the heap or a bucket, or nowhere."""
    if record.count < m.lowest:
        return 0
    if level_of(record.count) >= m.level:
        push_record(m, record)
    else:
        put_into_bucket(m, record)
    return 0
