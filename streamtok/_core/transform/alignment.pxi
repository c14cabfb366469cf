"""From places in a changed text back to places in its source: see `engines/alignment.py`.

Both are bytes of UTF-8. A row is (characters, bytes of each now, bytes of each before, whether it was
left out as part of a token).
"""

cdef struct Cursor:
    const i64* row
    const i64* stop
    i64 now                 # where the row's text begins,
    i64 source              # its source,
    i64 last                # and where the source of the text before it ends


cdef inline i64 text_end(const Cursor* c) noexcept nogil:
    return c.now + c.row[0] * c.row[1]


cdef inline bint is_exact(const i64* row) noexcept nogil:
    """Whether each byte stands for itself."""
    return row[1] == 1 and row[2] == 1


cdef inline void over_row(Cursor* c) noexcept nogil:
    c.now += c.row[0] * c.row[1]
    c.source += c.row[0] * c.row[2]
    if (c.row[1] and c.row[2]) or c.row[3]:
        c.last = c.source
    c.row += 4


cdef i64 begin_of(Cursor* c, i64 place) noexcept nogil:
    """Where the source of what begins at `place` begins."""
    cdef const i64* row
    while c.row < c.stop and text_end(c) <= place:
        over_row(c)
    if c.row == c.stop:
        return c.last
    row = c.row
    if is_exact(row):
        return c.source + place - c.now
    return c.source + (place - c.now) // row[1] * row[2] if row[2] else c.last


cdef i64 end_of(Cursor* c, i64 place, bint is_empty) noexcept nogil:
    """Where the source of what ends at `place` ends. An empty one is after what tokens took there."""
    cdef const i64* row
    cdef i64 nth = 0, behind
    cdef Cursor next
    while c.row < c.stop and text_end(c) < place:
        over_row(c)
    row = c.row
    if row < c.stop and c.now < place:
        if is_exact(row):
            if not is_empty or place < text_end(c):
                return c.source + place - c.now
        else:
            nth = (place - c.now - 1) // row[1] + 1
            behind = c.source + nth * row[2]
            if not is_empty:
                return behind
            if nth < row[0]:
                return behind if row[2] else c.last
    next = c[0]
    if row < c.stop and c.now < place:
        over_row(&next)
    while next.row < next.stop and next.row[1] == 0:
        over_row(&next)
    return next.last


def places_before(rows, i64 now, i64 source, i64 last, places):
    """int64 [n, 2]: where the source of each stretch of the text is.

    rows: int64 [m, 4], of text from byte `now` on, whose source begins at `source`; last: where the
    source of the text before it ends. places: int64 [n, 2], bytes of the text, in order.
    """
    cdef ArrayView known = read_array(rows, INT64, "rows", 2)
    cdef ArrayView wanted = read_array(places, INT64, "places", 2)
    cdef object result = np.empty(wanted.size, np.int64)
    cdef i64* found = <i64*>array_memory(result, INT64)
    cdef const i64* place = <const i64*>wanted.data
    cdef Cursor begins
    cdef Cursor ends
    cdef size_t i
    cdef bint is_empty
    begins.row = <const i64*>known.data
    begins.stop = begins.row + known.size
    begins.now, begins.source, begins.last = now, source, last
    ends = begins
    with nogil:
        for i in range(wanted.size // 2):
            is_empty = place[2 * i] == place[2 * i + 1]
            found[2 * i + 1] = end_of(&ends, place[2 * i + 1], is_empty)
            found[2 * i] = found[2 * i + 1] if is_empty else begin_of(&begins, place[2 * i])
    return result.reshape(-1, 2)


def rows_from(rows, i64 now, i64 source, i64 last, i64 before):
    """(rows, now, source, last) without the characters whose text ends before byte `before`, or there."""
    cdef ArrayView known = read_array(rows, INT64, "rows", 2)
    cdef Cursor c
    cdef i64 gone
    c.row = <const i64*>known.data
    c.stop = c.row + known.size
    c.now, c.source, c.last = now, source, last
    while c.row < c.stop and text_end(&c) <= before:
        over_row(&c)
    kept = rows[(c.row - <const i64*>known.data) // 4:].copy()
    if c.row < c.stop and before > c.now:
        gone = (before - c.now) // c.row[1]
        kept[0, 0] -= gone
        c.now += gone * c.row[1]
        c.source += gone * c.row[2]
        if gone and c.row[2]:
            c.last = c.source
    return kept, c.now, c.source, c.last
