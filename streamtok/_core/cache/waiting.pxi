"""Pending pre-tokens: new pre-tokens are collected and merged together; then their ids are put in place.

A pending pre-token has up to 64 bytes and leaves a gap in the ids. `settle` merges all pending pre-tokens
together, whatever their sizes, caches the results and fills the gaps.
"""

cdef enum:
    PENDING_ARENA = PENDING * (MIDDLE_PRETOKEN + MIDDLE_PRETOKEN // 4)
    FILL_SLACK = 32             # distance in ids from the filled ids to the unread ones, for copies of sixteen


cdef inline void wait(Work* w, const u8* p, size_t n, u64 low, u64 high) noexcept nogil:
    """Leave a gap in the ids until `settle`, for p[:n], which has this key and at most MIDDLE_PRETOKEN
    bytes.

    There must be a free gap. A new pre-token often recurs soon; it is still merged only once.
    """
    cdef u16* recent = &w.recent[st_hash_key(low, high) >> (64 - RECENT_BITS)]
    cdef Gap* before = &w.gaps[recent[0]]
    cdef Gap* gap = &w.gaps[w.gap_count]
    cdef Waiting* waiting = &w.waiting
    cdef u8* bytes = waiting.bytes + UNIT * waiting.unit
    cdef bint is_known = (recent[0] < w.gap_count and before.low == low and before.high == high and
                          (n <= SHORT_PRETOKEN
                           or memcmp(waiting.bytes + UNIT * waiting.units[before.piece], p, n) == 0))
    recent[0] = <u16>w.gap_count
    gap.at = w.count
    gap.low = low
    gap.high = high
    gap.size = <u16>n
    gap.piece = before.piece if is_known else <u16>waiting.count
    gap.original = before.original if is_known else <u16>w.gap_count
    w.gap_count += 1
    if is_known:
        return
    if n <= SHORT_PRETOKEN:
        memcpy(bytes, &low, sizeof(u64))
        memcpy(bytes + sizeof(u64), &high, sizeof(u64))
    else:
        memcpy(bytes, p, n)
    waiting.units[waiting.count] = <u16>waiting.unit
    waiting.sizes[waiting.count] = <u8>n
    waiting.count += 1
    waiting.unit += (n + UNIT - 1) // UNIT


cdef void forget_gaps(Work* w) noexcept nogil:
    w.gap_count = w.waiting.count = w.waiting.unit = 0


cdef size_t to_ids(TokenTable table, u32* tokens, size_t count) noexcept nogil:
    """Replace tokens with their ids. Returns the number of ids: at most one for each byte of the tokens, so
    at most MIDDLE_PRETOKEN.
    """
    cdef const Tokens* t = table.tokens()
    cdef u32[MIDDLE_PRETOKEN] copy
    cdef size_t i, j, size, made = 0
    if table.is_dense:
        return count
    if t.byte_ids == NULL:
        for i in range(count):
            tokens[i] = t.ids[tokens[i]]
        return count
    memcpy(copy, tokens, count * sizeof(u32))
    for i in range(count):
        if t.ids[copy[i]] != NONE:
            tokens[made] = t.ids[copy[i]]
            made += 1
            continue
        size = t.offsets[copy[i] + 1] - t.offsets[copy[i]]
        for j in range(size):
            tokens[made + j] = t.byte_ids[t.blob[t.offsets[copy[i]] + j]]
        made += size
    return made


cdef void finish_gap(TokenTable table, Waiting* waiting, Gap* gap) noexcept nogil:
    """Replace the tokens of a pending pre-token with its ids, and store their number in `gap`."""
    cdef u32* ids = waiting.tokens + UNIT * waiting.units[gap.piece]
    cdef u32 token = find_unreachable(table.tokens(), waiting.bytes + UNIT * waiting.units[gap.piece],
                                      gap.size)
    cdef size_t count = waiting.counts[gap.piece]
    if token != NONE:
        ids[0] = token
        count = 1
    gap.count = <u16>to_ids(table, ids, count)


cdef inline void copy_ids(u32* to, const u32* ids, size_t count) noexcept nogil:
    """Copy ids sixteen at a time, so that up to fifteen extra ids are read and written."""
    cdef size_t i = 0
    while i < count:
        memcpy(to + i, ids + i, 16 * sizeof(u32))
        i += 16


cdef int settle(TokenTable table, Work* w) except -1 nogil:
    """Merge the pending pre-tokens, cache them and put their ids into the gaps."""
    cdef const Tokens* t = table.tokens()
    cdef Waiting* waiting = &w.waiting
    cdef Gap* gap
    cdef Cell* homes[PENDING]
    cdef size_t i, total = 0, at, size
    cdef const u8* p
    cdef const u32* rest
    cdef const u32* ids
    cdef u32* to
    if w.gap_count == 0:
        return 0
    reserve_cells(t, &w.cache, PENDING, PENDING_ARENA)
    for i in range(w.gap_count):            # so that the cells are loaded when they are filled
        gap = &w.gaps[i]
        if gap.original != i:
            continue
        homes[i] = home_of(&w.cache, gap.low, gap.high)
        ST_PREFETCH(homes[i])
    merge_many(t, &w.merger, waiting.bytes, waiting.units, waiting.sizes, waiting.count, waiting.tokens,
               waiting.units, waiting.counts)
    for i in range(w.gap_count):
        gap = &w.gaps[i]
        if gap.original != i:
            gap.count = w.gaps[gap.original].count
            total += gap.count
            continue
        finish_gap(table, waiting, gap)
        total += gap.count
        p = waiting.bytes + UNIT * waiting.units[gap.piece]
        ids = waiting.tokens + UNIT * waiting.units[gap.piece]
        learn(&w.cache, homes[i], gap.low, gap.high, p, ids, gap.count)
    # First move all ids after the first gap out of the way. Then copy all ids to their positions from front
    # to back, sixteen at a time. Extra ids that a copy writes are overwritten by the next one, and do not
    # reach the ids still to be read.
    reserve(w, total + 2 * FILL_SLACK)
    at = w.gaps[0].at
    to = w.out + at
    rest = to + total + FILL_SLACK
    memmove(<u32*>rest, to, (w.count - at) * sizeof(u32))
    for i in range(w.gap_count):
        gap = &w.gaps[i]
        size = gap.at - at
        copy_ids(to, rest, size)
        to += size
        rest += size
        at = gap.at
        copy_ids(to, waiting.tokens + UNIT * waiting.units[gap.piece], gap.count)
        to += gap.count
    copy_ids(to, rest, w.count - at)
    w.count += total
    forget_gaps(w)
    return 0
