"""Encode a pre-token that is too long for the cache: all of it, or the part whose ids are final."""

cdef size_t commit_section(TokenTable table, Work* w, const u8* p, size_t n) except? 0 nogil:
    """Emit the tokens of p[:n] that are final whatever follows; return the bytes that they cover."""
    cdef const Tokens* t = table.tokens()
    cdef size_t stable, before = w.count
    cdef Py_ssize_t count
    if n == SECTION and w.section_stable and memcmp(p, w.section, SECTION) == 0:
        reserve(w, w.section_count)
        memcpy(w.out + w.count, w.section_ids, w.section_count * sizeof(u32))
        w.count += w.section_count
        return w.section_stable
    if not is_sorted(t):
        with gil:
            table.prepare_prefixes()
    count = stable_tokens(t, &w.merger, &w.scratch, p, n, &stable)
    emit(t, w, w.merger.result, count)
    if n == SECTION and stable:
        memcpy(w.section, p, SECTION)
        w.section_count = w.count - before
        memcpy(w.section_ids, w.out + before, w.section_count * sizeof(u32))
        w.section_stable = stable
    return stable


cdef size_t commit_certain(TokenTable table, Work* w, const u8* p, size_t n) except? 0 nogil:
    """As `commit_section`, but for any n; calls `stable_tokens` at most twice, not once for each section."""
    cdef size_t done = 0, step
    # An endless run repeats its sections, whose ids need not be computed again.
    while n - done >= SECTION:
        step = commit_section(table, w, p + done, SECTION)
        if step == 0:
            break
        done += step
        if n - done < SECTION or memcmp(p + done, w.section, SECTION) != 0:
            break
    if n - done > SECTION or n < SECTION:
        done += commit_section(table, w, p + done, n - done)
    return done


cdef size_t count_certain(TokenTable table, Work* w, const u8* p, size_t n) except? 0 nogil:
    """Count the tokens of p[:n], except those at its end, in w.forgotten; return the bytes that they cover.

    Proceeds in pieces, as a stream does, so that counting needs no memory for the ids. At least half of
    each piece is new, so that the work remains proportional to n.
    """
    cdef size_t before = w.count, at = 0, done, size = COUNT_STEP
    while n - at > size:
        look(&w.watch)
        done = commit_certain(table, w, p + at, size)
        w.forgotten += w.count - before
        w.count = before
        at += done
        size = 2 * (size - done)
        size = size if size > COUNT_STEP else COUNT_STEP
    return at


cdef int encode_rest(TokenTable table, Work* w, const u8* p, size_t n) except -1 nogil:
    """Encode p[:n], all that remains of a pre-token, by the merge loop alone."""
    cdef const Tokens* t = table.tokens()
    cdef size_t before = w.count, i
    cdef Growing into
    if w.counts_only:
        i = count_certain(table, w, p, n)
        p += i
        n -= i
    if t.byte_ids != NULL:      # there may be more ids than tokens
        i = merge_into(t, &w.merger, &w.scratch, p, n, &w.watch)
        return emit_bytes(t, w, w.scratch.result, i)
    into.items = w.out
    into.capacity = w.capacity
    into.count = before
    try:
        merge_segments(t, &w.merger, p, n, &into, &w.watch)
    finally:
        w.out = into.items
        w.capacity = into.capacity
    w.count = into.count
    if not table.is_dense:
        for i in range(before, w.count):
            w.out[i] = t.ids[w.out[i]]
    return reserve(w, 0)
