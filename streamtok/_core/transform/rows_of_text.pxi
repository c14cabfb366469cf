"""Alignments: which bytes of a changed text come from which bytes of the text before the change.

If a segment has text left, neither side of any of its rows is empty. Removed text belongs to the character
before it (at the start of the segment, to the one after it), and inserted text to the character after it.
"""

cdef enum SegmentRows:      # rows that the open segment has so far
    NO_ROW
    ROW_WITHOUT_TEXT        # one row, for text that was removed at its start
    ROWS_WITH_TEXT


cdef void alignment_free(Alignment* a) noexcept nogil:
    free(a.rows)
    a.rows = NULL
    a.n = a.capacity = 0


cdef int alignment_push(Alignment* a, u64 now, u64 before) except -1 nogil:
    if a.n == a.capacity:
        a.rows = <Row*>grown(a.rows, &a.capacity, a.n + 1, sizeof(Row), b"rows of a changed text")
    a.rows[a.n].now, a.rows[a.n].before = now, before
    a.n += 1
    return 0


cdef int alignment_add_same(Alignment* a, const u8* p, size_t size) except -1 nogil:
    """Add unchanged text: p[:size]."""
    cdef Row* last
    cdef int first = 0
    cdef u8 last_size
    if size == 0:
        return 0
    last_size = <u8>(size - utf8_before(p, 0, size, size))
    if a.segment == ROW_WITHOUT_TEXT:       # text removed before it belongs to the first character
        utf8_at(p, 0, size, &first)
        last = &a.rows[a.n - 1]
        last.now = first
        last.before += first
        size -= first
    elif a.segment == ROWS_WITH_TEXT and a.rows[a.n - 1].before == SAME:
        a.rows[a.n - 1].now += size
        size = 0
    a.segment, a.last_size = ROWS_WITH_TEXT, last_size
    return alignment_push(a, size, SAME) if size else 0


cdef int alignment_add(Alignment* a, u64 now, u64 before) except -1 nogil:
    """Add a changed piece of text: `before` bytes that became `now` bytes."""
    cdef Row* last = &a.rows[a.n - 1] if a.segment != NO_ROW else NULL
    if now != 0:
        if a.segment != ROW_WITHOUT_TEXT:
            a.segment = ROWS_WITH_TEXT
            return alignment_push(a, now, before)
        a.segment = ROWS_WITH_TEXT
        last.now = now
        last.before += before
        return 0
    if a.segment == NO_ROW:
        a.segment = ROW_WITHOUT_TEXT
        return alignment_push(a, 0, before)
    if last.before != SAME:
        last.before += before
        return 0
    now = a.last_size
    last.now -= now
    if last.now == 0:
        a.n -= 1
    return alignment_push(a, now, now + before)


cdef int alignment_add_token(Alignment* a, u64 size) except -1 nogil:
    """Add a token, which ends the segment."""
    a.segment = NO_ROW
    return alignment_push(a, size, size)
