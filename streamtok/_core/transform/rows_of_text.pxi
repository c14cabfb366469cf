"""Which bytes of a changed text stand for which bytes of the text before.

No row of a stretch that is left with text has an empty side: what was removed belongs to the character
before it (at the beginning of the stretch, to the one after it), and what was put in, to the one after it.
"""

cdef enum StretchRows:      # what the rows have of the stretch that is open
    NO_ROW
    ROW_WITHOUT_TEXT        # one, of what was removed at its beginning
    ROWS_WITH_TEXT


cdef void alignment_free(Alignment* a) noexcept nogil:
    free(a.rows)
    a.rows = NULL
    a.n = a.room = 0


cdef bint alignment_push(Alignment* a, u64 now, u64 before) noexcept nogil:
    """False: there is no memory."""
    cdef Row* larger
    cdef size_t room
    if a.n == a.room:
        room = 2 * a.room + 32
        larger = <Row*>realloc(a.rows, room * sizeof(Row))
        if larger == NULL:
            return False
        a.rows, a.room = larger, room
    a.rows[a.n].now, a.rows[a.n].before = now, before
    a.n += 1
    return True


cdef bint alignment_add_same(Alignment* a, const u8* p, size_t size) noexcept nogil:
    """Add text that stays as it is: p[:size]. False: there is no memory."""
    cdef Row* last
    cdef int first = 0
    cdef u8 last_size
    if size == 0:
        return True
    last_size = <u8>(size - utf8_before(p, 0, size, size))
    if a.stretch == ROW_WITHOUT_TEXT:       # what was removed goes with the first character
        utf8_at(p, 0, size, &first)
        last = &a.rows[a.n - 1]
        last.now = first
        last.before += first
        size -= first
    elif a.stretch == ROWS_WITH_TEXT and a.rows[a.n - 1].before == SAME:
        a.rows[a.n - 1].now += size
        size = 0
    a.stretch, a.last_size = ROWS_WITH_TEXT, last_size
    return size == 0 or alignment_push(a, size, SAME)


cdef bint alignment_add(Alignment* a, u64 now, u64 before) noexcept nogil:
    """Add a piece that changed. False: there is no memory."""
    cdef Row* last = &a.rows[a.n - 1] if a.stretch != NO_ROW else NULL
    if now != 0:
        if a.stretch != ROW_WITHOUT_TEXT:
            a.stretch = ROWS_WITH_TEXT
            return alignment_push(a, now, before)
        a.stretch = ROWS_WITH_TEXT
        last.now = now
        last.before += before
        return True
    if a.stretch == NO_ROW:
        a.stretch = ROW_WITHOUT_TEXT
        return alignment_push(a, 0, before)
    if last.before != SAME:
        last.before += before
        return True
    now = a.last_size
    last.now -= now
    if last.now == 0:
        a.n -= 1
    return alignment_push(a, now, now + before)


cdef bint alignment_add_token(Alignment* a, u64 size) noexcept nogil:
    """Add a token, which ends a stretch. False: there is no memory."""
    a.stretch = NO_ROW
    return alignment_push(a, size, size)
