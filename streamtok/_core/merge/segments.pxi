"""Merge long pre-tokens in short overlapping segments, joined where two segments agree.

Let E be the byte pair encoding of p[:b] and S the encoding of p[a:c], a < b < c. If both have the same
token p[i:j], then the encoding of p[:c] is E up to j, followed by S from j on. Proof: by the lemma of
`merge/stable_prefix.pxi`, E up to j is the encoding of p[:j], and S from j on is the encoding of p[j:c].
The token is compatible with the next one, since they are neighbours in S. So joining at j is exact for
every rank table, and no pair has to be looked up.

Two encodings usually agree within a few tokens. Then many segments are merged together, independently
of each other (`merge/turns.h`, `merge/columns.h`), and a byte costs a fifth of its cost in the heap of
one long merge. Otherwise, each segment begins with a token of E, so that it usually agrees with E right
away, even in a run of one letter, where tokens that begin elsewhere would be out of step. A segment that
does not agree is encoded again from an earlier position. In the worst case, it repeats all of E, but E
then grows fourfold. So the total work remains proportional to the bytes done, times log n for the heap.
"""

cdef struct Join:
    Growing* out
    size_t first        # index in `out` of E's first token
    size_t done         # bytes of E
    size_t misses       # number of segments so far that did not agree
    size_t last         # start of the segment whose tokens are still in the merger
    size_t last_size    # bytes of that segment; 0: there is none
    size_t last_count   # number of its tokens


cdef inline int reserve_tokens(Growing* out, size_t more) except -1 nogil:
    cdef size_t wanted = out.count + more
    if wanted > out.capacity:
        out.items = <u32*>grown(out.items, &out.capacity, wanted, sizeof(u32), b"ids")
    return 0


cdef size_t period_of(const u8* p) noexcept nogil:
    """The least distance, at most LONGEST_PERIOD, at which p[:SEGMENT] occurs again; 0 if none."""
    cdef const u8* at = p
    cdef const u8* end = p + LONGEST_PERIOD + 1
    while True:
        at = <const u8*>memchr(at + 1, p[0], end - at - 1)
        if at == NULL:
            return 0
        if memcmp(at, p, SEGMENT) == 0:
            return at - p


cdef int extend(const Tokens* t, Merger* m, Join* j, const u8* p, size_t n, size_t size,
                size_t overlap, size_t period=0) except -1 nogil:
    """Append one segment of about `size` bytes, which begins with a token of E.

    period: that of the text, or 0. If possible, the distance from the last segment is a multiple of
    it, so that both segments have the same bytes.
    """
    cdef Growing* out = j.out
    cdef size_t start = j.done, i = out.count, k, end, at, other, wide, count
    cdef u32* items
    cdef u32* found
    while True:
        while i > j.first and start + overlap > j.done:
            i -= 1
            start -= token_size(t, out.items[i])
        if period and j.last_size:
            k = i
            at = start
            while k > j.first and at > j.last and (at - j.last) % period:
                k -= 1
                at -= token_size(t, out.items[k])
            if at > j.last and (at - j.last) % period == 0:
                i = k
                start = at
        period = 0
        end = 4 * (j.done - start)
        end = start + (end if end > size else size)
        end = end if end < n else n
        if (end - start == j.last_size
                and memcmp(p + start, p + j.last, j.last_size) == 0):
            count = j.last_count
        else:
            count = <size_t>merge(t, m, p + start, end - start)
            j.last_size = end - start
            j.last_count = count
        j.last = start
        reserve_tokens(out, count)
        items = out.items
        found = m.result
        # Find the first token that E and the segment have at the same position.
        at = other = start
        wide = i
        k = 0
        if i > j.first:
            while wide < out.count and k < count and (at != other or items[wide] != found[k]):
                if at <= other:
                    at += token_size(t, items[wide])
                    wide += 1
                else:
                    other += token_size(t, found[k])
                    k += 1
        if i == j.first or (wide < out.count and k < count):
            memcpy(items + wide, found + k, (count - k) * sizeof(u32))
            out.count = wide + count - k
            j.done = end
            return 0
        j.misses += 1
        overlap = 2 * (j.done - start)


cdef inline u64 begins_of(const Tokens* t, const u32* tokens, size_t count) noexcept nogil:
    """Bit set of the offsets, below 64, at which the tokens begin."""
    cdef u64 begins = 0
    cdef size_t i, at = 0
    for i in range(count):
        begins |= <u64>1 << at
        at += token_size(t, tokens[i])
    return begins


cdef size_t agree(u64 one, u64 other) noexcept nogil:
    """The end of the first token that two encodings of the same bytes have in common, or 0.

    one, other: bit sets of the offsets at which tokens begin; one set includes the end of its encoding.
    """
    cdef u64 either = one | other, left = one & other, later, next
    while left:
        later = either & ~(left ^ (left - 1))
        next = later & (~later + 1)
        if next & one & other:
            return st_lowest(next)
        left &= left - 1
    return 0


cdef u64 begins_from(const Tokens* t, const Join* j, size_t start) noexcept nogil:
    """Bit set, relative to `start`, of where E's tokens begin and where E ends, at most 63 bytes after it."""
    cdef u64 begins = <u64>1 << (j.done - start)
    cdef size_t at = j.done, i = j.out.count
    while i > j.first:
        i -= 1
        if at < start + token_size(t, j.out.items[i]):
            break
        at -= token_size(t, j.out.items[i])
        begins |= <u64>1 << (at - start)
    return begins


cdef int join_many(const Tokens* t, Merger* m, Join* j, const u8* p, size_t n) except -1 nogil:
    """Append up to SEGMENTS segments that are merged together; fewer if too many disagree with E."""
    cdef u32[SEGMENTS * SEGMENT] tokens
    cdef u16[SEGMENTS] units
    cdef u16[SEGMENTS] slots
    cdef u8[SEGMENTS] sizes
    cdef u8[SEGMENTS] counts
    cdef Growing* out = j.out
    cdef size_t start = j.done - OVERLAP if j.done else 0, count, k, skip, misses = j.misses, first_common
    cdef u64 begins, here, after
    count = min((n - start - SEGMENT) // STRIDE + 1, <size_t>SEGMENTS)
    for k in range(count):
        units[k] = <u16>(k * (STRIDE // ST_UNIT))
        slots[k] = <u16>(k * (SEGMENT // ST_UNIT))
        sizes[k] = SEGMENT
    merge_many(t, m, p + start, units, sizes, count, tokens, slots, counts)
    k = 0
    while k < count:
        if j.done - start >= SEGMENT:           # `extend` has gone beyond this segment
            start += STRIDE
            k += 1
            continue
        here = begins_from(t, j, start)
        begins = begins_of(t, tokens + SEGMENT * k, counts[k])
        first_common = agree(here, begins) if j.done else 0
        if first_common == 0 and j.done:
            if j.misses - misses >= MISSES:
                return 0
            j.misses += 1
            extend(t, m, j, p, n, SEGMENT, OVERLAP)
            continue
        after = <u64>-1 << first_common
        skip = st_ones(begins & ~after)
        if j.done:              # the last bit of `here` is the end of E
            out.count -= st_ones(here & after) - 1
        reserve_tokens(out, counts[k] - skip)
        memcpy(out.items + out.count, tokens + SEGMENT * k + skip, (counts[k] - skip) * sizeof(u32))
        out.count += counts[k] - skip
        j.done = start + SEGMENT
        start += STRIDE
        k += 1
    return 0


cdef int merge_segments(const Tokens* t, Merger* m, const u8* p, size_t n,
                         Growing* out, Watch* watch) except -1 nogil:
    """Append the encoding of p[:n], by the merge loop alone, to `out`; m.result is overwritten.

    With a `watch`, raises whatever a signal handler raises; out.count is then meaningless.
    """
    cdef Join j
    cdef size_t looked = 0
    cdef size_t misses, shun = FIRST_SHUN, until = 0, period
    j.out = out
    j.first = out.count
    j.done = j.misses = j.last = j.last_size = j.last_count = 0
    while j.done < n:
        if watch != NULL and j.done - looked >= LOOK_EVERY:
            looked = j.done
            look(watch)
        misses = j.misses
        if t.ties != NULL or j.done < until:
            extend(t, m, &j, p, n, LONG_SEGMENT, LONG_OVERLAP)
        elif n - j.done <= SEGMENT + LONGEST_PERIOD:
            extend(t, m, &j, p, n, SEGMENT, OVERLAP)
        else:
            period = period_of(p + j.done)
            if period:
                extend(t, m, &j, p, n, LONG_SEGMENT, LONG_OVERLAP, period)
            else:
                join_many(t, m, &j, p, n)
        if j.misses - misses >= MISSES:
            until = j.done + shun
            shun *= 2
    return 0


cdef size_t merge_into(const Tokens* t, Merger* m, Merger* into, const u8* p, size_t n,
                       Watch* watch) except? 0 nogil:
    """Encode p[:n] with `m` into the result of another merger, `into`; return the number of tokens."""
    cdef Growing out
    out.items, out.capacity, out.count = into.result, into.result_capacity, 0
    try:
        merge_segments(t, m, p, n, &out, watch)
    finally:
        into.result, into.result_capacity = out.items, out.capacity
    return out.count
