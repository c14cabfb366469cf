"""From places in a changed text back to places in its source: see `engines/alignment.py`.

Both are bytes of UTF-8. A row is (characters, bytes of each now, bytes of each before, kind).
"""

cdef enum RowKind:
    OF_STRETCH          # text between two tokens
    OF_TOKEN
    TAKEN               # white space, by the token before it


cdef struct Cursor:
    const i64* row
    const i64* stop
    i64 now                 # where the row's text begins,
    i64 source              # its source,
    i64 last                # and where the source of the text before it ends, with what was left out there
    bint is_begun           # there is text of this stretch before it


cdef inline i64 text_end(const Cursor* c) noexcept nogil:
    return c.now + c.row[0] * c.row[1]


cdef inline void over_row(Cursor* c) noexcept nogil:
    """What is left out goes with the text before it, and at the beginning of a stretch with the first one
    that is not put in.
    """
    c.now += c.row[0] * c.row[1]
    c.source += c.row[0] * c.row[2]
    if c.row[3] != OF_STRETCH:
        c.is_begun, c.last = False, c.source
    else:
        c.is_begun |= c.row[1] != 0
        if c.is_begun and c.row[2]:
            c.last = c.source
    c.row += 4


cdef inline i64 source_at(const Cursor* c, i64 nth) noexcept nogil:
    """Where the source of the row's character `nth` begins, which is not the first one."""
    return c.source + nth * c.row[2] if c.row[2] else c.last


cdef i64 begin_of(Cursor* c, i64 place) noexcept nogil:
    """Where the source of what begins at `place` begins."""
    cdef i64 nth
    while c.row < c.stop and text_end(c) <= place:
        over_row(c)
    if c.row == c.stop:
        return c.last
    nth = (place - c.now) // c.row[1]
    if nth:
        return source_at(c, nth)
    return c.source if c.row[3] == OF_TOKEN else c.last


cdef i64 end_of(Cursor* c, i64 place) noexcept nogil:
    """Where the source of what ends at `place` ends, and is not empty."""
    cdef i64 nth
    cdef Cursor next
    while c.row < c.stop and text_end(c) < place:
        over_row(c)
    if c.row == c.stop or c.now >= place:
        return c.last
    nth = (place - c.now - 1) // c.row[1] + 1
    if nth < c.row[0] and c.row[2]:
        return source_at(c, nth)
    next = c[0]
    while next.row[2] == 0 and next.row + 4 < next.stop and next.row[4 + 3] == OF_STRETCH:
        over_row(&next)                 # put in: it goes with the text after it
        nth = 1
    if next.row[1] and nth < next.row[0] and next.row[2]:
        return source_at(&next, nth)
    over_row(&next)
    while next.row < next.stop and next.row[1] == 0:
        over_row(&next)
    return next.last


def places_before(rows, i64 now, i64 source, i64 last, bint is_begun, places):
    """int64 [n, 2]: where the source of each stretch of the text is.

    rows: int64 [m, 4], of text from byte `now` on, whose source begins at `source`; last: where the
    source of the text before it ends; is_begun: that is of the same stretch. places: int64 [n, 2],
    bytes of the text, in order.
    """
    cdef ArrayView known = read_array(rows, INT64, "rows", 2)
    cdef ArrayView wanted = read_array(places, INT64, "places", 2)
    cdef object result = np.empty(wanted.size, np.int64)
    cdef i64* found = <i64*>array_memory(result, INT64)
    cdef const i64* place = <const i64*>wanted.data
    cdef Cursor begins
    cdef Cursor ends
    cdef size_t i
    begins.row = <const i64*>known.data
    begins.stop = begins.row + known.size
    begins.now, begins.source, begins.last, begins.is_begun = now, source, last, is_begun
    ends = begins
    with nogil:
        for i in range(wanted.size // 2):
            found[2 * i] = found[2 * i + 1] = begin_of(&begins, place[2 * i])
            if place[2 * i] < place[2 * i + 1]:
                found[2 * i + 1] = end_of(&ends, place[2 * i + 1])
    return result.reshape(-1, 2)


def rows_from(rows, i64 now, i64 source, i64 last, bint is_begun, i64 before):
    """(rows, now, source, last, is_begun) without the characters whose text ends before byte `before`, or
    there.
    """
    cdef ArrayView known = read_array(rows, INT64, "rows", 2)
    cdef Cursor c
    cdef i64 gone
    c.row = <const i64*>known.data
    c.stop = c.row + known.size
    c.now, c.source, c.last, c.is_begun = now, source, last, is_begun
    while c.row < c.stop and text_end(&c) <= before:
        over_row(&c)
    kept = rows[(c.row - <const i64*>known.data) // 4:].copy()
    if c.row < c.stop and before > c.now:
        gone = (before - c.now) // c.row[1]
        kept[0, 0] -= gone
        c.now += gone * c.row[1]
        c.source += gone * c.row[2]
        if gone:
            c.is_begun = True
            c.last = c.source if c.row[2] else c.last
    return kept, c.now, c.source, c.last, bool(c.is_begun)
