"""Change a segment, element by element.

Unchanged text is copied in long runs, and nothing is written before the first change: unchanged text costs
one look at every 64 bytes.

An `OpenElement` is kept as an entry while a later element may join it. Merging it with the next element
changes only its results after the step that joined the two. So the merged element can join the one before
it only at a later step, and a chain of merges has at most as many links as there are context-sensitive
steps (`n_caring`). No more entries than that are kept. A chain ends at an entry that holds nothing, unless
an element joins anything before it.
"""

cdef void element_walk_begin(ElementTable t, ElementWalk* w, const u8* p, size_t n, u8 begins, bint ends,
                             Alignment* rows) noexcept nogil:
    memset(w, 0, sizeof(ElementWalk))
    w.p, w.n, w.ends, w.rows = p, n, ends, rows
    w.begins = begins if t.asks_for_begin and n else 0
    w.mask_at = <size_t>0 - 2 * ST_TOGETHER         # before the text
    w.pause = PAUSE_EVERY
    w.most_entries = t.n_caring if t.n_caring else 1


cdef void element_walk_free(ElementWalk* w) noexcept nogil:
    drop_entries(w)
    free(w.out)
    w.out = NULL
    w.size = w.capacity = 0


cdef void drop_entries(ElementWalk* w) noexcept nogil:
    while w.n_entries:
        w.n_entries -= 1
        free_entry(&w.entries[w.n_entries])


cdef inline void free_entry(OpenElement* e) noexcept nogil:
    if e.is_owned:
        free(e.element)
    e.element, e.is_owned = NULL, False


cdef int reserve_out(ElementWalk* w, size_t more) except -1 nogil:
    """Make room in `out` for `more` bytes and for the rest of the text."""
    cdef size_t wanted = w.size + more + w.n - w.written + ST_TOGETHER
    w.out = <u8*>grown(w.out, &w.capacity, wanted, 1, b"bytes of the changed text")
    return 0


cdef inline int copy_same(ElementWalk* w, size_t stop, size_t more) except -1 nogil:
    """Copy unchanged text before `stop`. Makes room for it and for `more` bytes."""
    cdef size_t size = stop - w.written
    if w.size + size + more + ST_TOGETHER > w.capacity:
        reserve_out(w, size + more)
    if size:
        if size <= 16 and w.n - w.written >= 16:
            memcpy(w.out + w.size, w.p + w.written, 16)
        else:
            memcpy(w.out + w.size, w.p + w.written, size)
        if w.rows != NULL:
            alignment_add_same(w.rows, w.p + w.written, size)
        w.size += size
        w.written = stop
    return 0


cdef inline int emit_element(ElementWalk* w, Element* e, size_t start, size_t stop) except -1 nogil:
    """Make everything before `stop` final. The bytes start:stop become `e`, or stay as they are if `e` is
    NULL.
    """
    cdef size_t i, size
    cdef Row* row
    w.final = stop
    if e == NULL:
        return 0
    if e.kind.flags & KIND_LATER or (e.size == 0 and w.size == 0 and start == w.written):
        w.is_later = True
    if e.is_same:
        return 0
    size = e.size
    w.is_changed = True
    copy_same(w, start, size)
    if size <= SHORT_TEXT:
        memcpy(w.out + w.size, element_text(e), SHORT_TEXT)     # cheaper than testing the size
    else:
        memcpy(w.out + w.size, element_text(e), size)
    if w.rows != NULL:
        for i in range(e.n_rows):
            row = element_rows(e) + i
            if row.before == SAME:
                alignment_add_same(w.rows, w.out + w.size, row.now)
            else:
                alignment_add(w.rows, row.now, row.before)
            w.size += row.now
    else:
        w.size += size
    w.written = stop
    return 0


cdef int emit_entries(ElementWalk* w, size_t count) except -1 nogil:
    """Emit the first `count` entries, which are final."""
    cdef size_t i
    if count == 0:
        return 0
    for i in range(count):
        emit_element(w, w.entries[i].element, w.entries[i].start, w.entries[i].stop)
        free_entry(&w.entries[i])
    w.n_entries -= count
    memmove(w.entries, w.entries + count, w.n_entries * sizeof(OpenElement))
    return 0


cdef inline int get_kind(ElementTable t, u32 code, CharKind* kind) except -1 nogil:
    """The kind of a character. Asks the steps if it is not in the table."""
    kind[0] = kind_at(t, code)
    if kind.flags & KIND_UNKNOWN:
        t.learn(code)
        kind[0] = kind_at(t, code)
    return 0


cdef inline bint may_join(ElementTable t, CharKind kind) noexcept nogil:
    """Whether an element of this kind may be changed by one after it."""
    return kind.holds != 0 or t.joins_any or kind.flags & (KIND_HOLDS_ANY | KIND_EMPTY)


cdef int resolve_entry(ElementTable t, ElementWalk* w, OpenElement* e) except -1 nogil:
    """Get the result for an entry, which must be the last of `entries` or not be one of them."""
    cdef bint is_kept = True
    free_entry(e)
    e.element = find_kept(t, w.p + e.start, e.stop - e.start, e.where)
    if e.element == NULL:
        e.element = t.ask(w.p + e.start, e.stop - e.start, e.where, w.n_entries == 0, &is_kept)
    e.is_owned = not is_kept
    e.kind = e.element.kind
    e.is_resolved = True
    return 0


cdef int settle_open(ElementTable t, ElementWalk* w) except -1 nogil:
    """Get the result for the last entry, merged with all entries that it is joined to."""
    cdef OpenElement* last
    while w.n_entries:
        last = &w.entries[w.n_entries - 1]
        if not last.is_resolved:
            resolve_entry(t, w, last)
        if w.n_entries < 2 or not is_joined((last - 1).kind, last.kind):
            break
        merge_last(w)
    return 0


cdef void merge_last(ElementWalk* w) noexcept nogil:
    """Merge the last two entries into one, whose result is not known yet."""
    cdef OpenElement* last = &w.entries[w.n_entries - 1]
    cdef OpenElement* other = last - 1
    other.where |= last.where
    other.stop = last.stop
    other.kind = kind_of_both(other.kind, last.kind)
    other.is_resolved = False
    free_entry(last)
    free_entry(other)
    w.n_entries -= 1


cdef int put_entry(ElementTable t, ElementWalk* w, OpenElement e) except -1 nogil:
    """Append an element, whose result is known, to the entries.

    If it is joined to the last entry, both become one entry, whose result is not asked for yet, since more
    may join it. An unnecessary merge does no harm. Until the result is known, the kind of the merged entry
    is a guess.
    """
    cdef OpenElement* last
    if w.n_entries:
        last = &w.entries[w.n_entries - 1]
        if not last.is_resolved and not is_joined(last.kind, e.kind):
            settle_open(t, w)
            last = &w.entries[w.n_entries - 1]
        if not is_joined(last.kind, e.kind):
            if not may_join(t, last.kind):
                emit_entries(w, w.n_entries)
            elif w.n_entries == w.most_entries:
                emit_entries(w, 1)
    # `entries` has room for one more than `most_entries`.
    w.entries[w.n_entries] = e
    w.n_entries += 1
    if w.n_entries > 1:
        last = &w.entries[w.n_entries - 1]
        if is_joined((last - 1).kind, last.kind):
            merge_last(w)
    return 0


cdef int put_gap(ElementTable t, ElementWalk* w, size_t at) except -1 nogil:
    """Append the inert characters before `at` to the entries, beginning as far back as they can be joined."""
    cdef size_t[MOST_CARING + 1] starts
    cdef size_t low = w.entries[w.n_entries - 1].stop if w.n_entries else w.final
    cdef size_t i = at, count = 0, start
    cdef int size = 0
    cdef CharKind kind
    cdef OpenElement e
    if at == low:
        return 0
    while i > low and count < w.most_entries:
        start = utf8_before(w.p, low, i, w.n)
        kind = kind_at(t, utf8_at(w.p, start, w.n, &size))
        if not may_join(t, kind) or t.n_caring == 0:
            break
        starts[count] = i = start
        count += 1
    if i > low:
        emit_entries(w, w.n_entries)
        w.final = i
    while count:
        count -= 1
        memset(&e, 0, sizeof(OpenElement))
        e.start = starts[count]
        e.kind = kind_at(t, utf8_at(w.p, e.start, w.n, &size))
        e.stop = e.start + size
        e.is_resolved = True
        put_entry(t, w, e)
    return 0


cdef inline bint stands_alone(ElementTable t, ElementWalk* w, size_t at, CharKind kind) noexcept nogil:
    """Whether there is certainly a border before the character at `at`."""
    cdef size_t low = w.entries[w.n_entries - 1].stop if w.n_entries else w.final
    cdef int size = 0
    if at == low:
        return w.n_entries == 0
    return not is_joined(kind_at(t, utf8_at(w.p, utf8_before(w.p, low, at, w.n), w.n, &size)), kind)


cdef bint element_continues(ElementTable t, ElementWalk* w, CharKind kind) except -1 nogil:
    """Whether the next character is joined to the last entry, of kind `kind`, or to the character that
    follows it.
    """
    cdef CharKind first, second
    cdef int size = 0, length = 0
    get_kind(t, utf8_at(w.p, w.at, w.n, &size), &first)
    if is_joined(kind, first):
        return True
    if w.at + <size_t>size == w.n:
        return False
    get_kind(t, utf8_at(w.p, w.at + size, w.n, &length), &second)
    return is_joined(first, second)


cdef inline size_t seek_element(ElementTable t, ElementWalk* w, size_t i) noexcept nogil:
    """The first byte from i on that may begin a character that is not inert."""
    cdef u64 mask
    cdef size_t past
    cdef i32 code
    cdef int size = 0
    cdef CharKind kind
    while True:
        past = i - w.mask_at
        if past < ST_TOGETHER:
            mask = w.mask >> past
            if mask:
                i += <size_t>st_lowest(mask)
                code = decode_common(w.p + i, w.n - i, &size)   # the first byte alone does not tell
                if code < 0:
                    return i
                kind = kind_at(t, <u32>code)
                if kind.joins or kind.flags:
                    return i
                i += size
                continue
            i = w.mask_at + ST_TOGETHER
        if i >= w.n or w.n - i < ST_TOGETHER:
            break
        w.mask_at = i
        w.mask = strategy.leads(&t.leads, w.p + i)
    while i < w.n and not t.leads.has[w.p[i]]:
        i += 1
    return i


cdef int walk_elements(ElementTable t, ElementWalk* w) except -1 nogil:
    """Walk to the end of the text. Consumes what is final."""
    cdef size_t at, stop, n = w.n
    cdef int size = 0, length = 0
    cdef u32 code
    cdef CharKind kind, next
    cdef OpenElement e
    cdef OpenElement* top
    cdef bint is_forced, is_open = False
    memset(&next, 0, sizeof(CharKind))
    while w.at < n:
        top = &w.entries[w.n_entries - 1] if w.n_entries else NULL
        if top != NULL and not top.is_resolved:
            if not element_continues(t, w, top.kind):
                settle_open(t, w)
                continue
            is_forced = True
        else:
            is_forced = w.begins != 0 or (
                top != NULL and top.kind.flags & (KIND_HOLDS_ANY | KIND_EMPTY) != 0 and top.stop == w.at
            )
        at = w.at if is_forced else seek_element(t, w, w.at)
        if at >= n:
            break
        if at >= w.pause:
            w.pause = at + PAUSE_EVERY
            with gil:
                PyErr_CheckSignals()
        code = utf8_at(w.p, at, n, &size)
        get_kind(t, code, &kind)
        if not is_forced:
            if not (kind.joins or kind.flags):
                w.at = at + size
                continue
            if kind.flags & ~KIND_GONE == KIND_CHANGED and not (kind.joins or kind.holds or t.joins_any):
                emit_entries(w, w.n_entries)
                emit_element(w, <Element*>st_load_pointer(&t.changes[code]), at, at + size)
                w.at = at + size
                continue
            if kind.flags == 0 and stands_alone(t, w, at, kind):
                # The character is unchanged, and `put_gap` handles it like an inert one.
                stop = at + size
                if stop < n:
                    get_kind(t, utf8_at(w.p, stop, n, &length), &next)
                    if not is_joined(kind, next):
                        w.at = stop
                        continue
        put_gap(t, w, at)
        memset(&e, 0, sizeof(OpenElement))
        e.start, e.where, e.kind = at, w.begins, kind
        if e.where and kind.flags & KIND_GONE:
            e.kind.flags |= KIND_EMPTY
        while w.n_entries and is_pulled(w.entries[w.n_entries - 1].kind, e.kind):
            w.n_entries -= 1
            top = &w.entries[w.n_entries]
            e.start, e.where, e.kind = top.start, top.where, kind_of_both(top.kind, e.kind)
            free_entry(top)
        stop = at + size
        if size == 1 and is_joined(kind, kind):     # runs of spaces are frequent in code
            while stop < n and w.p[stop] == w.p[at]:
                stop += 1
        while stop < n:
            get_kind(t, utf8_at(w.p, stop, n, &length), &next)
            if not is_joined(e.kind, next):
                break
            e.kind = kind_of_both(e.kind, next)
            stop += length
        e.stop = stop
        w.at = stop
        w.begins = 0
        if stop == n and not w.ends and may_join(t, e.kind):
            is_open = True
            break
        if at - e.start > SHORT_TEXT and stop < n and element_continues(t, w, e.kind):
            # Make it an entry without asking the steps; otherwise, they would be asked about the long
            # element again and again.
            w.entries[w.n_entries] = e
            w.n_entries += 1
            continue
        if e.start == at and stop == at + <size_t>size and e.where == 0:
            e.kind, e.is_resolved = kind, True
            if kind.flags & KIND_CHANGED:
                e.element = <Element*>st_load_pointer(&t.changes[code])
        else:
            resolve_entry(t, w, &e)
        if t.n_caring == 1 and w.n_entries == 0 and e.where == 0 and stop < n and not is_joined(e.kind, next):
            # There are borders on both sides, and no later step can remove them.
            emit_element(w, e.element, e.start, stop)
            free_entry(&e)
        else:
            put_entry(t, w, e)
    return walk_to_end(t, w, &e if is_open else NULL)


cdef int walk_to_end(ElementTable t, ElementWalk* w, OpenElement* open) except -1 nogil:
    """Settle what is final. open: the element at the end if it may continue, otherwise NULL."""
    cdef OpenElement* last
    if open == NULL:
        put_gap(t, w, w.n)
        settle_open(t, w)
        if w.n_entries:
            last = &w.entries[w.n_entries - 1]
            if w.ends and t.asks_for_end and last.stop == w.n and may_join(t, last.kind):
                last.where |= PLACE_END
                last.is_resolved = False
                settle_open(t, w)
                last = &w.entries[w.n_entries - 1]
            if w.ends or not may_join(t, last.kind):
                emit_entries(w, w.n_entries)
        w.taken = w.entries[0].start if w.n_entries else w.n
    else:
        settle_open(t, w)
        w.taken = open.start
        w.is_open, w.open = open.start == 0, open.kind
        if w.n_entries:
            last = &w.entries[w.n_entries - 1]
            if not may_join(t, last.kind):
                emit_entries(w, w.n_entries)
            elif w.n_entries == w.most_entries and not is_joined(last.kind, open.kind):
                emit_entries(w, 1)
            if w.n_entries:
                w.taken = w.entries[0].start
    drop_entries(w)
    if w.is_changed:
        copy_same(w, w.taken, 0)
    elif w.rows != NULL:
        alignment_add_same(w.rows, w.p, w.taken)
    return 0


def change_elements(ElementTable t not None, bytes text not None, int begins, bint ends, bint wants_rows):
    """(changed text, bytes not consumed, whether something before the text was removed, rows).

    rows: [(bytes now, bytes before)], where -1 as the second number means that each byte is unchanged; None
    unless wants_rows.
    """
    cdef ElementWalk w
    cdef Alignment found
    cdef size_t i
    memset(&found, 0, sizeof(Alignment))
    element_walk_begin(t, &w, text, len(text), begins, ends, &found if wants_rows else NULL)
    enter_table(t)
    try:
        walk_elements(t, &w)
        made = w.out[:w.size] if w.is_changed else text[:w.taken]
        rows = None
        if wants_rows:
            rows = []
            for i in range(found.n):
                rows.append((found.rows[i].now,
                             -1 if found.rows[i].before == SAME else <i64>found.rows[i].before))
        return made, text[w.taken:], bool(w.is_later), rows
    finally:
        element_walk_free(&w)
        alignment_free(&found)
        leave_table(t)
