"""Along a text, changing it: what is left is copied in long runs, and rows say where all comes from.

Nothing is written before something changes, so a text that is left costs a look at 64 bytes at a time.
"""

cdef enum WalkEnd:
    WALKED
    PAUSED                  # only to look at signals
    ASKS_FOR_CHARACTER      # it must be learned about: `asked`
    ASKS_FOR_ELEMENT        # start:stop
    NO_MEMORY_LEFT


cdef enum:
    PAUSE_EVERY = 1 << 18   # bytes


cdef struct Walk:
    const u8* p
    size_t n
    size_t at               # up to which all is looked at
    size_t pause            # from where on to pause
    size_t left             # up to which all is in `out`; what follows is left as it is up to here
    size_t taken            # in the end: the bytes that were taken in
    u8 begins               # AT_BEGIN and AT_FIRST, of the next element
    bint ends               # the stretch ends with this text
    bint end_is_done
    bint wants_rows
    bint is_changed         # something was
    size_t mask_at          # where the last look at 64 bytes was,
    u64 mask                # and what it found
    u8* out
    size_t size, room
    i64* rows
    size_t n_rows, rows_room
    u32 asked               # see WalkEnd
    size_t start, stop
    u8 where
    Change* given           # what the element that was asked for becomes


cdef void walk_begin(Walk* w, const u8* p, size_t n, u8 begins, bint ends, bint wants_rows) noexcept nogil:
    memset(w, 0, sizeof(Walk))
    w.p, w.n, w.begins, w.ends, w.wants_rows = p, n, begins, ends, wants_rows
    w.mask_at = <size_t>0 - 2 * ST_TOGETHER         # nowhere
    w.pause = PAUSE_EVERY


cdef void walk_free(Walk* w) noexcept nogil:
    free(w.out)
    free(w.rows)
    w.out = NULL
    w.rows = NULL
    w.size = w.room = w.n_rows = w.rows_room = 0


cdef bint add_row(Walk* w, i64 count, i64 now, i64 before) noexcept nogil:
    """False: there is no memory."""
    cdef i64* last
    cdef i64* larger
    cdef size_t room
    if w.n_rows:
        last = w.rows + 3 * w.n_rows - 3
        if last[1] == now and last[2] == before:
            last[0] += count
            return True
    if w.n_rows == w.rows_room:
        room = 2 * w.rows_room + 64
        larger = <i64*>realloc(w.rows, 3 * room * sizeof(i64))
        if larger == NULL:
            return False
        w.rows, w.rows_room = larger, room
    last = w.rows + 3 * w.n_rows
    last[0], last[1], last[2] = count, now, before
    w.n_rows += 1
    return True


cdef bint text_room(Walk* w, size_t more) noexcept nogil:
    cdef u8* larger
    cdef size_t room = 2 * w.room
    if room < w.size + more + ST_TOGETHER:
        room = w.size + more + w.n - w.left + (w.n >> 3) + ST_TOGETHER
    larger = <u8*>realloc(w.out, room)
    if larger == NULL:
        return False
    w.out, w.room = larger, room
    return True


cdef inline bint copy_left(Walk* w, size_t stop, size_t more) noexcept nogil:
    """Copy what is left before `stop`; room for as many bytes, and `more`. False: no memory."""
    cdef size_t size = stop - w.left
    if w.size + size + more + ST_TOGETHER > w.room and not text_room(w, size + more):
        return False
    if size:
        if size <= 16 and w.n - w.left >= 16:
            memcpy(w.out + w.size, w.p + w.left, 16)
        else:
            memcpy(w.out + w.size, w.p + w.left, size)
        w.size += size
        w.left = stop
        if w.wants_rows and not add_row(w, size, 1, 1):
            return False
    return True


cdef inline bint put_change(Walk* w, Change* change, size_t start, size_t stop) noexcept nogil:
    """Put what the element start:stop becomes. False: there is no memory."""
    cdef size_t i, size = change.size
    cdef i64* rows
    w.is_changed = True
    if not copy_left(w, start, size):
        return False
    memcpy(w.out + w.size, text_of(change), size)
    w.size += size
    w.left = stop
    if w.wants_rows:
        rows = rows_of(change)
        for i in range(change.n_rows):
            if not add_row(w, rows[3 * i], rows[3 * i + 1], rows[3 * i + 2]):
                return False
    return True


cdef inline size_t seek(CharacterTable t, Walk* w, size_t i) noexcept nogil:
    """The first byte from i on that may begin a character that has to do with anything."""
    cdef u64 mask
    cdef size_t behind
    while True:
        behind = i - w.mask_at
        if behind < ST_TOGETHER:
            mask = w.mask >> behind
            if mask:
                return i + <size_t>st_lowest(mask)
            i = w.mask_at + ST_TOGETHER
        if i >= w.n or w.n - i < ST_TOGETHER:
            break
        w.mask_at = i
        w.mask = strategy.leads(&t.leads, w.p + i)
    while i < w.n and not t.leads.has[w.p[i]]:
        i += 1
    return i


cdef size_t element_start(CharacterTable t, Walk* w, size_t at) noexcept nogil:
    """Where the element begins that the character at `at` belongs to, of what is not copied yet."""
    cdef int length = 0
    cdef u16 kind = kind_of(t, character_at(w.p, at, &length)), other
    cdef size_t i
    while at > w.left:
        i = before(w.p, at)
        other = kind_of(t, character_at(w.p, i, &length))
        if not are_joined(other, kind):
            break
        at, kind = i, other
    return at


cdef WalkEnd go_on(CharacterTable t, Walk* w) noexcept nogil:
    """Go on to the end, or to what must be asked for; then call again."""
    cdef size_t at, start, stop, n = w.n
    cdef int length = 0, size
    cdef u32 code, other
    cdef u16 kind, last
    cdef u8 where
    cdef Change* change
    while True:
        at = 0 if w.begins else seek(t, w, w.at)
        if at >= n:
            w.at = n
            break
        if at >= w.pause:
            w.at, w.pause = at, at + PAUSE_EVERY
            return PAUSED
        code = character_at(w.p, at, &size)
        kind = kind_of(t, code)
        w.at = at
        if kind & UNASKED:
            w.asked = code
            return ASKS_FOR_CHARACTER
        start, stop, last = at, at + size, kind
        if not w.begins:
            if not kind & HAS_TO_DO:
                w.at = stop
                continue
            if kind & (JOINS | JOINS_ANY):
                if t.is_form and not kind & CHANGED and not compose(t, w.p, w.left, at):
                    w.at = stop
                    continue
                start = element_start(t, w, at)
        if t.has_borders:
            while stop < n:
                other = character_at(w.p, stop, &length)
                where = 0
                if kind_of(t, other) & UNASKED:
                    w.asked = other
                    return ASKS_FOR_CHARACTER
                if not are_joined(last, kind_of(t, other)):
                    break
                last = kind_of(t, other)
                stop += length
            if stop == n and not w.ends and (last & (HOLDS | HOLDS_ANY) or t.joins_any):
                break
        where = w.begins
        if stop == n and w.ends and (t.asks_for_end or where or last & HOLDS_ANY):
            where |= AT_END
        if where == 0 and stop - at == <size_t>size and start == at:
            if not kind & CHANGED:
                w.at = stop
                continue
            change = <Change*>st_load_pointer(&t.changes[code])
            if change == NULL:
                w.asked = code
                return ASKS_FOR_CHARACTER
        else:
            change = w.given
            if change == NULL:
                change = find_element(t, w.p + start, stop - start, where)
            if change == NULL:
                w.start, w.stop, w.where = start, stop, where
                return ASKS_FOR_ELEMENT
        if not change.is_same and not put_change(w, change, start, stop):
            return NO_MEMORY_LEFT
        w.given = NULL
        w.begins = 0
        w.end_is_done = (where & AT_END) != 0
        w.at = stop
    return walk_end(t, w)


cdef WalkEnd walk_end(CharacterTable t, Walk* w) noexcept nogil:
    """Settle how far the walk came, and what stands at the end of a stretch."""
    cdef size_t n = w.n, start
    cdef int length = 0
    cdef Change* change
    w.taken = n
    if not w.ends:
        if w.begins:
            w.taken = 0
        elif n > w.left:
            start = before(w.p, n)
            if t.joins_any or kind_of(t, character_at(w.p, start, &length)) & (HOLDS | HOLDS_ANY):
                w.taken = element_start(t, w, start)
    elif t.asks_for_end and n > w.left and not w.end_is_done:
        start = element_start(t, w, before(w.p, n))
        change = w.given
        if change == NULL:
            change = find_element(t, w.p + start, n - start, AT_END)
        if change == NULL:
            w.start, w.stop, w.where = start, n, AT_END
            return ASKS_FOR_ELEMENT
        if not change.is_same and not put_change(w, change, start, n):
            return NO_MEMORY_LEFT
        w.given = NULL
        w.end_is_done = True
    if w.is_changed:
        if not copy_left(w, w.taken, 0):
            return NO_MEMORY_LEFT
    elif w.wants_rows and w.taken and not add_row(w, w.taken, 1, 1):
        return NO_MEMORY_LEFT
    return WALKED


cdef int walk_through(CharacterTable t, Walk* w) except -1:
    """Walk to the end, asking the steps where needed."""
    cdef WalkEnd end = WALKED
    cdef bint is_kept = True
    cdef Change* given = NULL
    with cython.critical_section(t):
        t.n_calls += 1
    try:
        while True:
            if w.n - w.at >= RELEASE_FROM:
                with nogil:
                    end = go_on(t, w)
            else:
                end = go_on(t, w)
            if not is_kept:
                free(given)
            is_kept, given = True, NULL
            w.given = NULL
            if end == PAUSED:
                PyErr_CheckSignals()
            elif end == ASKS_FOR_CHARACTER:
                t.learn_about(w.asked)
            elif end == ASKS_FOR_ELEMENT:
                given = w.given = t.ask_about(w.p + w.start, w.stop - w.start, w.where,
                                                 w.wants_rows, &is_kept)
            elif end == NO_MEMORY_LEFT:
                raise MemoryError("no memory for the changed text")
            else:
                return 0
    finally:
        if not is_kept:
            free(given)
        with cython.critical_section(t):
            t.n_calls -= 1
