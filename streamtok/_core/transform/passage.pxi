"""A text through some tables, one after the other.

Only one step of a table may look at neighbours, so its borders are certain as soon as the characters on
both sides are. If the text may go on, what no table is certain about yet is not taken in, so that nothing
but text of the source waits: the text is cut at the last place that is a border of each table, and
what comes next begins there.
"""

cdef enum:
    MOST_TABLES = 64


@cython.final
cdef class Transform:
    """What normalizers do, as tables. Immutable; shared by threads."""

    cdef readonly tuple tables
    cdef size_t n_tables
    cdef bint asks_for_begin    # of any table

    def __cinit__(self, tables):
        self.tables = tuple(tables)
        self.n_tables = len(self.tables)
        if not 0 < self.n_tables <= MOST_TABLES:
            raise ValueError(f"expected 1 to {MOST_TABLES} tables, not {self.n_tables}")
        for table in self.tables:
            self.asks_for_begin |= (<CharacterTable?>table).asks_for_begin

    cdef CharacterTable at(self, size_t k):
        return <CharacterTable>self.tables[k]


cdef struct Spot:           # a place in the rows of a walk, between two characters of both texts
    size_t row              # rows[:row] are before it,
    i64 used                # and so many characters of the next one
    size_t source           # bytes before it
    size_t now


cdef struct Passage:
    size_t n
    Walk* walks             # one for each table,
    Walk* made              # and two, if there are several, for the rows of these together
    size_t n_walks          # of both
    Spot[MOST_TABLES] ends  # up to which they count
    const u8* out           # what has become of the text,
    size_t size
    size_t taken            # or of so many bytes of it
    bint is_changed


cdef int passage_begin(Transform t, Passage* x, Walk* alone) except -1:
    """alone: room for the walk of one table, as most have, so that small chunks need no memory."""
    x.n = t.n_tables
    if x.n == 1:
        x.n_walks, x.walks = 1, alone
        memset(alone, 0, sizeof(Walk))
        return 0
    x.n_walks = x.n + 2
    x.walks = <Walk*>calloc(x.n_walks, sizeof(Walk))
    if x.walks == NULL:
        raise MemoryError("no memory for a text that is changed")
    x.made = x.walks + x.n
    return 0


cdef void passage_free(Passage* x) noexcept:
    if x.walks != NULL:
        passage_clear(x)
        if x.n > 1:
            free(x.walks)


cdef void passage_clear(Passage* x) noexcept:
    cdef size_t k
    for k in range(x.n_walks):
        walk_free(&x.walks[k])


cdef int pass_through(Transform t, Passage* x, const u8* p, size_t n, u8 begins, bint ends,
                      bint wants_rows) except -1:
    """Change p[:n]. begins: AT_BEGIN and AT_FIRST. wants_rows: they are made if the text ends, too."""
    cdef size_t k
    cdef Walk* w
    cdef CharacterTable table
    passage_clear(x)
    x.out, x.size, x.is_changed = p, n, False
    for k in range(x.n):
        w = &x.walks[k]
        table = t.at(k)
        walk_begin(w, x.out, x.size, begins if table.asks_for_begin else 0, ends,
                   wants_rows or not ends)
        if x.size:
            walk_through(table, w)
        if w.is_changed:
            x.out, x.size, x.is_changed = w.out, w.size, True
        else:
            x.size = w.taken
        x.ends[k].row, x.ends[k].used = w.n_rows, 0
        x.ends[k].source, x.ends[k].now = w.taken, x.size
    x.taken = x.walks[0].taken
    if not ends and x.n > 1:
        cut_passage(t, x, begins)
    return 0


cdef int cut_passage(Transform t, Passage* x, u8 begins) except -1:
    """Take in only what is certain for all tables."""
    cdef size_t[MOST_TABLES + 1] places
    cdef size_t k
    for k in range(x.n):
        places[k] = x.ends[k].source
    places[x.n] = x.size
    go_back(t, x, x.ends, places, True)
    for k in range(x.n):
        if places[k] == 0 and (k == 0 or (begins and t.at(k).asks_for_begin)):
            places[0] = places[x.n] = 0         # or else some have begun, and others have not
            memset(x.ends, 0, x.n * sizeof(Spot))
    x.taken, x.size = places[0], places[x.n]
    return 0


cdef int go_back(Transform t, Passage* x, Spot* spots, size_t* places, bint to_border) except -1:
    """Go back to the last place that is between two characters of every text.

    spots: where to begin, and then the place found. places: the last ones allowed in each text, and then
    those found. to_border: the place must be a border of every table.
    """
    cdef size_t k
    cdef Spot* spot
    cdef bint is_done = False
    cdef CharacterTable table
    while not is_done:
        is_done = True
        k = x.n
        while k > 0:
            k -= 1
            spot = &spots[k]
            table = t.at(k)
            while (spot.source > places[k] or spot.now > places[k + 1]
                   or (to_border and not is_border(table, &x.walks[k], spot))):
                step_back(spot, x.walks[k].rows, places[k], places[k + 1])
            if spot.source < places[k] or spot.now < places[k + 1]:
                is_done = False
            places[k], places[k + 1] = spot.source, spot.now
    return 0


cdef void step_back(Spot* spot, const i64* rows, size_t source, size_t now) noexcept:
    """By a character, or as many as are surely too far."""
    cdef const i64* row
    cdef i64 count = 1, more
    if spot.used == 0:
        spot.row -= 1
        spot.used = rows[3 * spot.row]
    row = rows + 3 * spot.row
    if spot.now > now and row[1]:
        more = <i64>(spot.now - now + row[1] - 1) // row[1]
        count = more if more > count else count
    if spot.source > source and row[2]:
        more = <i64>(spot.source - source + row[2] - 1) // row[2]
        count = more if more > count else count
    count = spot.used if spot.used < count else count
    spot.used -= count
    spot.now -= count * row[1]
    spot.source -= count * row[2]


cdef bint is_border(CharacterTable t, Walk* w, Spot* spot) noexcept:
    """Whether the text can be cut there: neither side matters to the other, and all that became of the
    characters before the cut, and nothing else, is before it.
    """
    cdef int length = 0
    cdef u16 one, next
    cdef size_t at = spot.source, start
    cdef i64 less
    if at == 0:
        return put_in_before(w, spot) == 0
    if at == w.taken:
        return put_in_behind(w, spot) == 0
    if (w.p[at] & 0xC0) == 0x80:
        return False
    start = before(w.p, at)
    one = kind_of(t, character_at(w.p, start, &length))
    next = kind_of(t, character_at(w.p, at, &length))
    if (one | next) & UNASKED or are_joined(one, next):
        return False
    less = put_in_before(w, spot)
    return less + put_in_behind(w, spot) == 0 or less == put_in_last(t, w, start)


cdef i64 put_in_before(Walk* w, Spot* spot) noexcept:
    """How many characters right before it were put in: none of the source became them."""
    cdef size_t row = spot.row
    cdef i64 count = 0
    if spot.used:
        if w.rows[3 * row + 2]:
            return 0
        count = spot.used
    while row > 0 and w.rows[3 * row - 1] == 0:
        row -= 1
        count += w.rows[3 * row]
    return count


cdef i64 put_in_behind(Walk* w, Spot* spot) noexcept:
    """How many right after it."""
    cdef size_t row = spot.row
    cdef i64 count = 0
    while row < w.n_rows and w.rows[3 * row + 2] == 0:
        count += w.rows[3 * row]
        row += 1
    return count - spot.used if count else 0


cdef i64 put_in_last(CharacterTable t, Walk* w, size_t at) noexcept:
    """How many were put in at the end of what the character at `at` became; -1: unknown. It ends its
    element.
    """
    cdef int length = 0
    cdef i64 count = 0
    cdef u32 code = character_at(w.p, at, &length)
    cdef u16 kind = kind_of(t, code)
    cdef Change* change
    cdef size_t i
    if at == 0 or are_joined(kind_of(t, character_at(w.p, before(w.p, at), &length)), kind):
        return -1                   # its element has more characters, or is the first
    if not kind & CHANGED:
        return 0
    change = <Change*>st_load_pointer(&t.changes[code])
    if change == NULL:
        return -1
    i = 0 if change.is_same else change.n_rows
    while i > 0 and rows_of(change)[3 * i - 1] == 0:
        i -= 1
        count += rows_of(change)[3 * i]
    return count


cdef int passage_rows(Transform t, Passage* x, size_t wanted, const i64** rows, size_t* n) except -1:
    """The rows of all that was changed, or at least of its last `wanted` bytes."""
    cdef Spot[MOST_TABLES] begins
    cdef size_t[MOST_TABLES + 1] places
    cdef size_t k
    cdef Rows a, b
    cdef Walk* made = &x.walks[0]
    if x.n > 1:
        memset(begins, 0, sizeof(begins))
        if wanted < x.size:
            for k in range(x.n):
                begins[k], places[k] = x.ends[k], x.ends[k].source
            places[x.n] = x.size - wanted
            go_back(t, x, begins, places, False)
        rows_between(&a, x.walks[0].rows, &begins[0], &x.ends[0])
        for k in range(1, x.n):
            rows_between(&b, x.walks[k].rows, &begins[k], &x.ends[k])
            made = &x.made[k & 1]
            made.n_rows = 0
            if not compose_rows(&a, &b, made):
                raise MemoryError("no memory for where the changed text is from")
            a.row, a.used, a.last, a.last_used = made.rows, 0, made.rows + 3 * made.n_rows, 0
    rows[0], n[0] = made.rows, made.n_rows
    return 0


cdef struct Rows:           # from one spot to another one
    const i64* row
    i64 used
    const i64* last
    i64 last_used


cdef void rows_between(Rows* r, const i64* rows, Spot* begin, Spot* end) noexcept:
    r.row, r.used = rows + 3 * begin.row, begin.used
    r.last, r.last_used = rows + 3 * end.row, end.used


cdef inline i64 left_of_row(Rows* r) noexcept:
    """The characters of the next row; 0: there is none."""
    while r.row < r.last and r.used == r.row[0]:
        r.row += 3
        r.used = 0
    return (r.row[0] if r.row < r.last else r.last_used) - r.used


cdef inline bint is_exact(const i64* row) noexcept nogil:
    """Whether each byte stands for itself."""
    return row[1] == 1 and row[2] == 1


cdef bint compose_rows(Rows* a, Rows* b, Walk* made) noexcept:
    """The rows of what `a` says of a text, and then `b` of what became of it. False: no memory.

    Where characters do not begin together, those up to the next place where they do are one whole.
    """
    cdef i64 more_a, more_b, n, now, source, ahead
    while True:
        more_a = left_of_row(a)
        if more_a and a.row[1] == 0:            # left out
            if not add_row(made, more_a, 0, a.row[2]):
                return False
            a.used += more_a
            continue
        more_b = left_of_row(b)
        if more_b and b.row[2] == 0:            # put in
            if not add_row(made, more_b, b.row[1], 0):
                return False
            b.used += more_b
            continue
        if not more_a or not more_b:
            return True
        n = 0
        if a.row[1] == b.row[2]:
            n = more_a if more_a < more_b else more_b
            now, source = b.row[1], a.row[2]
            a.used += n
            b.used += n
        elif is_exact(a.row):
            n = more_a // b.row[2]
            n = n if n < more_b else more_b
            now, source = b.row[1], b.row[2]
            a.used += n * source
            b.used += n
        elif is_exact(b.row):
            n = more_b // a.row[1]
            n = n if n < more_a else more_a
            now, source = a.row[1], a.row[2]
            a.used += n
            b.used += n * now
        if n == 0:
            n, now, source, ahead = 1, 0, 0, 0
            while True:
                if ahead <= 0:
                    if not left_of_row(a):
                        break
                    ahead += a.row[1]
                    source += a.row[2]
                    a.used += 1
                else:
                    if not left_of_row(b):
                        break
                    ahead -= b.row[2]
                    now += b.row[1]
                    b.used += 1
                if ahead == 0:
                    break
        if (now or source) and not add_row(made, n, now, source):
            return False


def transform(Transform t not None, text not None, int begins, bint ends, bint wants_rows):
    """(what the text becomes, the characters that were not taken in, rows). What it becomes is bytes,
    or None: it is left as it is.

    text: str, or UTF-8 in bytes that is well-formed. None for a str with surrogates. begins: 0, or AT_BEGIN or AT_BEGIN | AT_FIRST.
    rows: as bytes of int64 (characters, bytes of each now, bytes of each before), or None.
    """
    cdef Text utf8
    cdef Room room
    cdef Passage x
    cdef Walk alone
    cdef const i64* found = NULL
    cdef size_t n_rows = 0
    room.bytes = NULL
    room.size = 0
    x.walks = NULL
    text_open(&utf8, &room, text, "strict")
    try:
        if utf8.owner != NULL:
            return None
        passage_begin(t, &x, &alone)
        pass_through(t, &x, utf8.data, utf8.size, begins, ends, wants_rows)
        changed = rows = None
        if x.is_changed or x.taken < utf8.size:
            changed = PyBytes_FromStringAndSize(<const char*>x.out, x.size)
        if wants_rows:
            passage_rows(t, &x, x.size, &found, &n_rows)
            rows = PyBytes_FromStringAndSize(<const char*>found, 3 * n_rows * sizeof(i64))
        return changed, utf8.data[x.taken:utf8.size].decode("utf-8"), rows
    finally:
        passage_free(&x)
        text_close(&utf8)
        st_free_block(room.bytes)
