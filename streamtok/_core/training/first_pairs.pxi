"""Find the pairs of symbols before the first merge: how often each occurs, and where."""

cdef int count_first_pairs(Merging* m) except -1 nogil:
    """Record all pairs of symbols that are frequent enough."""
    if m.of_bytes != NULL:
        count_pairs_of_bytes(m)
    else:
        count_pairs_of_symbols(m)
    sort_into_buckets(m)
    return 0


cdef int count_pairs_of_bytes(Merging* m) except -1 nogil:
    """Record pairs of bytes, which `fill_rows` has counted already."""
    cdef u64 i, common = 0, slots = 1024
    cdef u32 left, right
    cdef size_t total = 0
    cdef Pair* record
    for i in range(1 << 16):
        common += m.of_bytes[i].weight >= m.lowest
    while common * 2 > slots:
        slots *= 2
    new_table(m, slots)
    for i in range(1 << 16):
        if m.of_bytes[i].weight < m.lowest:
            m.of_bytes[i].start = NONE
            continue
        record = find_record(m, (i >> 8) << 32 | (i & 0xFF))
        record.key = (i >> 8) << 32 | (i & 0xFF)
        record.count = m.of_bytes[i].weight
        record.size = m.of_bytes[i].size
        record.start = m.of_bytes[i].start = <u32>total
        total += record.size
        m.used += 1
    reserve_positions(m, total)
    m.positions_size = total
    right = m.rows[0].token
    for i in range(1, m.rows_size):
        left = right
        right = m.rows[i].token
        if left < 256 and right < 256 and m.of_bytes[left << 8 | right].start != NONE:
            m.positions[m.of_bytes[left << 8 | right].start] = <u32>(i - 1)
            m.of_bytes[left << 8 | right].start += 1
    free(m.of_bytes)
    m.of_bytes = NULL
    return 0


cdef int count_pairs_of_symbols(Merging* m) except -1 nogil:
    """Count and record pairs of symbols that are not bytes. There may be too many symbols for an array of
    all pairs.
    """
    cdef u64 i
    cdef size_t total = 0
    cdef Pair* record
    new_table(m, 1 << 14)
    for i in range(1, m.rows_size):
        if m.rows[i - 1].token == EDGE or m.rows[i].token == EDGE:
            continue
        reserve_pairs(m, 1)
        record = find_record(m, key_at(m, i - 1))
        if record.key == NO_PAIR:
            record.key = key_at(m, i - 1)
            m.used += 1
        record.count += weight_of(m, m.rows[i - 1].weight)
        record.size += 1
    for i in range(m.mask + 1):
        record = m.table + i
        if record.key != NO_PAIR and record.count >= m.lowest:
            record.start = <u32>total
            total += record.size
            record.size = 0
    reserve_positions(m, total)
    m.positions_size = total
    for i in range(1, m.rows_size):
        if m.rows[i - 1].token == EDGE or m.rows[i].token == EDGE:
            continue
        record = find_record(m, key_at(m, i - 1))
        if record.count >= m.lowest:
            m.positions[record.start + record.size] = <u32>(i - 1)
            record.size += 1
    return 0


cdef inline u64 key_at(Merging* m, size_t at) noexcept nogil:
    return <u64>m.rows[at].token << 32 | m.rows[at + 1].token
