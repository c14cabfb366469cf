"""New pre-tokens wait for others, so that many are merged side by side; what they become is put in place.

A pre-token that waits leaves a gap in the ids. Up to 64 bytes of it are one piece. Longer ones are
pieces that overlap, joined where neighbours agree, by the lemma of `merge/segments.pxi`. `settle` merges all
pieces at once, whatever their sizes, remembers what came of them, and closes the gaps.
"""

cdef enum:
    PENDING_ARENA = (PENDING * (MIDDLE_PRETOKEN + MIDDLE_PRETOKEN // 4)
                     + PENDING_WIDE * (WIDE_PRETOKEN + WIDE_PRETOKEN // 4))
    FILL_SLACK = 32             # ids between those that make way and what fills the gaps before them


cdef inline void wait_piece(Waiting* waiting, size_t unit, size_t n) noexcept nogil:
    """One more piece of n bytes, which begins at that unit."""
    cdef size_t i = waiting.count
    waiting.units[i] = <u16>unit
    waiting.places[i] = <u16>waiting.place
    waiting.sizes[i] = <u8>n
    waiting.place += (n + UNIT - 1) // UNIT
    waiting.count = i + 1


cdef inline bint wait_again(Work* w, u64 mixed, const u8* p, size_t n, u64 hash) noexcept nogil:
    """Leave a gap for a pre-token that waits already, as `wait`. False, and nothing is done, if it is
    not known to. mixed: a hash, of which the upper bits count.

    Text has its new pre-tokens several times in a row.
    """
    cdef u16* recent = &w.recent[mixed >> (64 - RECENT_BITS)]
    cdef size_t i = recent[0]
    cdef Gap* gap = &w.gaps[i]
    cdef Gap* again = &w.gaps[w.gap_count]
    cdef const u8* q
    recent[0] = <u16>w.gap_count
    if i >= w.gap_count or gap.hash != hash or gap.size != n:
        return False
    q = w.waiting.bytes + UNIT * w.waiting.units[gap.first]
    if hash == 0:               # a key
        if st_load64(p) != st_load64(q) or st_load64(p + 8) != st_load64(q + 8):
            return False
    elif memcmp(p, q, n) != 0:
        return False
    again.at = w.count
    again.hash = hash
    again.first = gap.first
    again.size = <u16>n
    again.original = gap.original
    w.gap_count += 1
    return True


cdef inline void wait(Work* w, const u8* p, size_t readable, size_t n, u64 hash) noexcept nogil:
    """Leave a gap in the ids for p[:n], of up to MIDDLE_PRETOKEN bytes, until `settle`.

    There must be room for it. p[:readable] is kept with it.
    """
    cdef Gap* gap = &w.gaps[w.gap_count]
    cdef Waiting* waiting = &w.waiting
    gap.at = w.count
    gap.hash = hash
    gap.first = <u32>waiting.count
    gap.size = <u16>n
    gap.original = <u16>w.gap_count
    memcpy(waiting.bytes + UNIT * waiting.unit, p, readable)
    wait_piece(waiting, waiting.unit, n)
    waiting.unit += (readable + UNIT - 1) // UNIT
    w.gap_count += 1


cdef bint wait_in_segments(TokenTable table, Work* w, const u8* p, size_t n, u64 hash) noexcept nogil:
    """As `wait`, for up to WIDE_PRETOKEN bytes. False, and nothing is done, if it had better not: rows of
    one character, or of a few, make many merges, and their segments seldom agree.
    """
    cdef Gap* gap = &w.gaps[w.gap_count]
    cdef Waiting* waiting = &w.waiting
    cdef size_t at = 0
    if (w.is_alone or strategy.merge_batch == NULL or table.tokens().ties != NULL
            or waiting.wide == PENDING_WIDE or st_load64(p + UNIT) == st_load64(p + UNIT + 4)):
        return False
    gap.at = w.count
    gap.hash = hash
    gap.first = <u32>waiting.count
    gap.size = <u16>n
    gap.original = <u16>w.gap_count
    memcpy(waiting.bytes + UNIT * waiting.unit, p, n)
    while at + ST_SEGMENT < n:
        wait_piece(waiting, waiting.unit + at // UNIT, ST_SEGMENT)
        at += ST_STRIDE
    wait_piece(waiting, waiting.unit + at // UNIT, n - at)
    waiting.unit += (n + UNIT - 1) // UNIT
    waiting.wide += 1
    w.gap_count += 1
    return True


cdef void forget_gaps(Work* w) noexcept nogil:
    w.gap_count = w.waiting.count = w.waiting.wide = w.waiting.unit = w.waiting.place = 0


cdef inline u64 begins_of(const Tokens* t, const u32* tokens, size_t count) noexcept nogil:
    """A bit for each byte, of up to 64, at which one of the tokens begins."""
    cdef u64 begins = 0
    cdef size_t i, at = 0
    for i in range(count):
        begins |= <u64>1 << at
        at += token_size(t, tokens[i])
    return begins


cdef size_t join_pieces(const Tokens* t, Waiting* waiting, size_t first, size_t n) noexcept nogil:
    """Put the tokens of a pre-token of n bytes behind each other, from the place of its first piece on.

    Returns how many there are; 0: two of its pieces do not agree.
    """
    cdef u32* out = waiting.tokens + UNIT * waiting.places[first]
    cdef const u32* tokens = out
    cdef size_t count = waiting.counts[first], at = ST_STRIDE, piece = first, skip, added
    cdef u64 here, begins = begins_of(t, out, count), after
    cdef unsigned place
    while at + ST_SEGMENT - ST_STRIDE < n:
        piece += 1
        # Of what there is so far, as this piece counts its bytes: where tokens begin, and the end.
        here = begins >> ST_STRIDE | <u64>1 << OVERLAP
        tokens = waiting.tokens + UNIT * waiting.places[piece]
        begins = begins_of(t, tokens, waiting.counts[piece])
        place = st_agree(here, begins)
        if place == 0:
            return 0
        after = <u64>-1 << place
        skip = st_ones(begins & ~after)
        added = waiting.counts[piece] - skip
        count -= st_ones(here & after) - 1
        memmove(out + count, tokens + skip, added * sizeof(u32))
        count += added
        at += ST_STRIDE
    return count


cdef size_t to_ids(TokenTable table, u32* tokens, size_t count) noexcept nogil:
    """Put ids in the place of the tokens; the number of ids, no more than the tokens have bytes.

    These are at most WIDE_PRETOKEN.
    """
    cdef const Tokens* t = table.tokens()
    cdef u32[WIDE_PRETOKEN] copy
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


cdef int finish_gap(TokenTable table, Work* w, Gap* gap) except -1 nogil:
    """Put the ids of a pre-token that waited in the place of its first piece, and their number into
    `gap`.
    """
    cdef const Tokens* t = table.tokens()
    cdef Waiting* waiting = &w.waiting
    cdef const u8* p = waiting.bytes + UNIT * waiting.units[gap.first]
    cdef u32* ids = waiting.tokens + UNIT * waiting.places[gap.first]
    cdef u32 token = find_unreachable(t, p, gap.size)
    cdef size_t count = waiting.counts[gap.first]
    if token != NONE:
        ids[0] = token
        count = 1
    elif gap.size > MIDDLE_PRETOKEN:
        count = join_pieces(t, waiting, gap.first, gap.size)
        if count == 0:
            count = <size_t>merge(t, &w.merger, p, gap.size)
            memcpy(ids, w.merger.result, count * sizeof(u32))
    gap.count = <u16>to_ids(table, ids, count)
    return 0


cdef inline void copy_ids(u32* to, const u32* ids, size_t count) noexcept nogil:
    """Copy sixteen at a time: up to fifteen more are read and written."""
    cdef size_t i = 0
    while i < count:
        memcpy(to + i, ids + i, 16 * sizeof(u32))
        i += 16


cdef int settle(TokenTable table, Work* w) except -1 nogil:
    """Merge the pre-tokens that wait, remember them and put their ids into the gaps."""
    cdef const Tokens* t = table.tokens()
    cdef Waiting* waiting = &w.waiting
    cdef Gap* gap
    cdef LongCell* cell
    cdef Cell* homes[PENDING]
    cdef size_t i, total = 0, at, size
    cdef const u8* p
    cdef const u32* rest
    cdef const u32* ids
    cdef u32* to
    if w.gap_count == 0:
        return 0
    make_room(t, &w.cache, PENDING, PENDING_ARENA)
    for i in range(w.gap_count):            # so that the cells are there when they are filled
        gap = &w.gaps[i]
        if gap.original != i:
            continue
        if gap.hash == 0:
            p = waiting.bytes + UNIT * waiting.units[gap.first]
            homes[i] = home_of(&w.cache, st_load64(p), st_load64(p + 8))
            ST_PREFETCH(homes[i])
        else:
            ST_PREFETCH(&w.cache.long_cells[(gap.hash >> 32) & w.cache.long_mask])
    merge_many(t, &w.merger, waiting.bytes, waiting.units, waiting.sizes, waiting.count, waiting.tokens,
               waiting.places, waiting.counts)
    for i in range(w.gap_count):
        gap = &w.gaps[i]
        if gap.original != i:
            gap.count = w.gaps[gap.original].count
            total += gap.count
            continue
        finish_gap(table, w, gap)
        total += gap.count
        p = waiting.bytes + UNIT * waiting.units[gap.first]
        ids = waiting.tokens + UNIT * waiting.places[gap.first]
        if gap.hash == 0:
            learn_short(&w.cache, homes[i], p, ids, gap.count)
            continue
        cell = find_long(&w.cache, gap.hash, p, gap.size)
        if cell.hash == 0:                  # else it was twice among those that waited
            fill_long(&w.cache, cell, gap.hash, p, gap.size, ids, gap.count, True)
    # What is behind the first gap makes way at once; then all goes to its place from the front,
    # sixteen ids at a time: what is written beyond is written again, what is unread is farther on.
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
        copy_ids(to, waiting.tokens + UNIT * waiting.places[gap.first], gap.count)
        to += gap.count
    copy_ids(to, rest, w.count - at)
    w.count += total
    forget_gaps(w)
    return 0
