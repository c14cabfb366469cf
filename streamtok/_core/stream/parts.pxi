"""A stream whose text someone else has changed, and cut into stretches with special tokens between.

Nothing crosses the end of a stretch: its last pre-token ends there. All parts of a call are taken
in as one draft, so the call is done as a whole or not at all, as `stream/tail.pxi` has it.
"""

cdef object feed_parts(Tail tail, list parts, bint final, Form form, object out, object settle,
                       object expected):
    """The ids of `parts`, behind what the tail holds.

    parts: str is text; None ends a stretch; (id, size) ends one: the id of a special token comes next,
    whose text has so many bytes. Text may be bytes-like, too, if it is as the policy wants it, in whole
    characters.

    settle: called with the bytes held back, before anything is committed; what it returns is the note,
    and what it raises leaves the tail as it was.

    A special token that is refused is placed from the beginning of the parts: what the tail had is
    before that. The rest is as for `Tail.encode`.
    """
    cdef Mark draft
    cdef Workspace workspace
    cdef Found refused
    cdef object result, note
    enter(&tail.busy)
    try:
        if tail._note is not expected:
            refuse_use()
        draft = tail.mark
        workspace = tail.encoder.take()
        try:
            refused.kind = PARTIAL
            workspace.c.follows = form == AS_PLACES
            if form == AS_ARRAY:
                foresee(tail.encoder._spares, &workspace.c, size_of_parts(parts) // 3)
            put_before(tail, &draft, &workspace.c)
            take_stretches(tail, &draft, &workspace.c, parts, final, &refused)
            if refused.kind == DISALLOWED:
                refuse(&refused, tail.bytes, <i64>(draft.offset - tail.mark.bytes_in))
            if final:
                put_ids(&workspace.c, tail.after)
            note = settle(pending(&draft))
            draft.tokens_out += workspace.c.count
            result = ids_as(form, tail.encoder.table, tail.encoder._spares, &workspace.c, out)
        finally:
            tail.encoder.give(workspace)
        with cython.critical_section(tail):         # nothing from here on can fail
            commit(tail, &draft, final)
            tail._note = None if final else note
        return result
    finally:
        st_leave(&tail.busy)


cdef size_t size_of_parts(list parts) except? 0:
    """About how much text it is."""
    cdef size_t total = 0
    for part in parts:
        if part is not None and not isinstance(part, tuple):
            total += <size_t>len(part)
    return total


cdef int take_stretches(Tail tail, Mark* m, Work* w, list parts, bint final, Found* refused) except -1:
    cdef Py_ssize_t i, count = len(parts)
    cdef bint is_open = True, ends
    for i in range(count):
        part = parts[i]
        if part is not None and not isinstance(part, tuple):
            ends = i + 1 == count and final
            if i + 1 < count:
                ends = parts[i + 1] is None or isinstance(parts[i + 1], tuple)
            take_stretch_text(tail, m, w, part, ends, refused)
            if refused.kind == DISALLOWED:
                return 0
            is_open = not ends
            continue
        if is_open:
            take_stretch_text(tail, m, w, "", True, refused)
            is_open = False
        if part is not None:
            put_token(w, m, part[0], part[1])
    if final and is_open:
        take_stretch_text(tail, m, w, "", True, refused)
    return 0


cdef int put_token(Work* w, Mark* m, u32 id, size_t size) except -1:
    """Give out the id of a special token that ends a stretch: its text has a place in the stream."""
    put_id(w, id, m.offset + m.size, m.offset + m.size + size)
    m.offset += size
    m.bytes_in += size
    return 0


cdef int take_stretch_text(Tail tail, Mark* m, Work* w, object part, bint ends,
                           Found* refused) except -1:
    """Take text in. ends: the stretch does."""
    cdef Text text
    text_open(&text, &w.room, part, tail.errors)
    try:
        take_stretch_bytes(tail, m, w, text.data, text.size, ends, refused)
    finally:
        text_close(&text)
    return 0


cdef int take_stretch_bytes(Tail tail, Mark* m, Work* w, const u8* p, size_t n, bint ends,
                            Found* refused) except -1:
    """As `take_stretch_text`, of p[:n]."""
    if n >= RELEASE_FROM:
        with nogil:
            take_in(tail, m, w, p, n, True, ends, tail.inner, refused)
    else:
        take_in(tail, m, w, p, n, True, ends, tail.inner, refused)
    m.bytes_in += n
    if refused.kind == DISALLOWED:
        return 0
    if ends:
        scan_begin(&m.scan, m.size)
        m.has_other = False
        m.searched = m.size
        m.retry_at = SECTION
        m.fork_at = 2 * SECTION
        if m.size - tail.mark.size > SLICE:
            drop(tail, m, tail.mark.size)
        look(&w.watch)
    return 0
