"""A stream whose text a transform changes: see `transform/` and `engines/rewriting_chain.py`.

A chunk goes behind what waits of the last one: a character that is not complete, what may begin a
special token, and the last element, which may go on. Special tokens are found, what is between them
is changed, and the tail takes it in, which finds those tokens that are in changed text. Where anything is out of the ordinary, nothing is done, and the
chunk is left to the caller.
"""

cdef enum:
    LONGEST_HELD = 1024         # bytes that wait before the tail; above, the slow steps hold less


@cython.final
@cython.freelist(8)
cdef class ChangedNote:
    """Where such a stream stands. Immutable.

    partial: bytes of a character that is not complete. bytes_in: all that came in; grown: bytes that repair added. waiting: bytes of the text
    before those that wait.

    place: where the slow steps stand (`engines/stretches.py`), if only they can go on; else None, and:
    where: AT_BEGIN and AT_FIRST of what comes next; 0: it is inside a stretch. held: UTF-8 that waits
    before the tail, and is not in `waiting`. runs: what the bytes that the tail holds stand for
    (`engines/offsets.py`), `waiting` bytes in all.
    """

    cdef readonly bytes partial
    cdef readonly u64 bytes_in
    cdef readonly u64 grown
    cdef readonly size_t waiting
    cdef readonly object place
    cdef readonly u8 where
    cdef readonly bytes held
    cdef readonly tuple runs

    def __init__(self, bytes partial not None, u64 bytes_in, u64 grown,
                 size_t waiting, place=None, u8 where=0, bytes held not None=b"",
                 tuple runs not None=()):
        self.partial, self.bytes_in, self.grown = partial, bytes_in, grown
        self.waiting, self.place = waiting, place
        self.where, self.held, self.runs = where, held, runs

    @property
    def pending(self):
        """Bytes of the text that wait."""
        return self.waiting + <size_t>len(self.held) + <size_t>len(self.partial)

    cdef ChangedNote without_partial(self):
        return ChangedNote(b"", self.bytes_in - <u64>len(self.partial), self.grown,
                           self.waiting, self.place, self.where, self.held, self.runs)


cdef ChangedNote AT_THE_BEGINNING = ChangedNote(b"", 0, 0, 0, None, AT_BEGIN | AT_FIRST)


def feed_changed(Transform transform not None, Tail tail not None, chunk, bint final,
                 Output output not None, size_t limit):
    """As `Tail.encode`; None: the chunk is left to the caller. PLACES come with a list: of each stretch
    the rows, as bytes of int64 (characters, bytes of each now, bytes of each before), and of each token
    between them its size.
    """
    return feed_chunk(transform, tail, chunk, final, output.form, output, limit)


cdef object feed_chunk(Transform t, Tail tail, object chunk, bint final, Form form, object out,
                       size_t limit):
    cdef bint is_text = type(chunk) is str
    cdef ChangedNote note = AT_THE_BEGINNING
    cdef Text text
    cdef Room room, joined
    cdef size_t size, before
    cdef i32 why = 0
    cdef int length = 0
    cdef const u8* p
    if not is_text and type(chunk) is not bytes:
        return None
    enter(&tail.busy)
    room.bytes = joined.bytes = NULL
    room.size = joined.size = 0
    try:
        if tail._note is not None:
            note = <ChangedNote?>tail._note
        if note.place is not None or (is_text and len(note.partial)):
            return None
        text_open(&text, &room, chunk, tail.errors)
        try:
            p, size = text.data, text.size
            before = <size_t>len(note.held) + <size_t>len(note.partial)
            if before:
                if not room_ensure(&joined, before + size + SLACK):
                    raise MemoryError("no memory for the text that waits")
                memcpy(joined.bytes, <const u8*>note.held, len(note.held))
                memcpy(joined.bytes + len(note.held), <const u8*>note.partial, len(note.partial))
                if size:
                    memcpy(joined.bytes + before, p, size)
                p, size = joined.bytes, before + size
            length = 0
            before = size
            if not is_text or text.owner != NULL:
                before = valid_bytes(p, size, &why, &length)
                if why != 0 and (why != INCOMPLETE or final):
                    return None
            return feed_utf8(t, tail, note, p, before, size, final, form, out, limit)
        finally:
            text_close(&text)
    finally:
        st_free_block(room.bytes)
        st_free_block(joined.bytes)
        st_leave(&tail.busy)


cdef object feed_utf8(Transform t, Tail tail, ChangedNote note, const u8* p, size_t n, size_t size,
                      bint final, Form form, object out, size_t limit):
    """As `feed_changed`, of what waits and the chunk: p[:n]; p[n:size] is no character yet."""
    cdef u64 base = note.bytes_in - <u64>len(note.held) - <u64>len(note.partial)
    cdef size_t begin = 0, stop, held
    cdef u8 where = note.where
    cdef tuple runs = note.runs
    cdef bint ends
    cdef Found found, refused
    cdef Passage x
    cdef Walk alone
    cdef const i64* known = NULL
    cdef size_t n_rows = 0
    cdef Mark draft = tail.mark
    cdef Workspace workspace = tail.encoder.take()
    cdef Work* w = &workspace.c
    cdef object result
    cdef ChangedNote after = None
    cdef bint follows = form == AS_PLACES
    cdef list rows = []
    passage_begin(t, &x, &alone)
    try:
        refused.kind = PARTIAL
        w.follows = follows
        if form == AS_ARRAY:
            foresee(tail.encoder._spares, w, n // 3)
        put_before(tail, &draft, w)
        while True:
            tail.matcher.search(&w.watch, p, begin, n, final, &found)
            if found.kind == DISALLOWED:
                refuse(&found, p, <i64>(base + note.grown))
            stop = found.start
            ends = final or found.kind == ALLOWED
            pass_through(t, &x, p + begin, stop - begin, where, ends, follows)
            if stop > begin or (ends and where == 0):
                take_stretch_bytes(tail, &draft, w, x.out, x.size, ends, &refused)
                if refused.kind == DISALLOWED:
                    return None             # the caller says where
            if follows:
                passage_rows(t, &x, x.size, &known, &n_rows)
                rows.append((<const char*>known)[:3 * n_rows * sizeof(i64)])
            begin += x.taken
            if x.taken:
                where = 0
            if ends:
                where, runs = AT_BEGIN, ()
            if found.kind != ALLOWED:
                break
            put_token(w, &draft, tail.matcher.ids[found.which], found.end - found.start)
            if follows:
                rows.append(found.end - found.start)
            begin = found.end
        held = n - begin
        if final:
            put_ids(w, tail.after)
        else:
            if held > LONGEST_HELD:
                return None
            after = ChangedNote.__new__(ChangedNote)
            after.partial = p[n:size]
            after.where, after.held = where, p[begin:n]
            after.bytes_in, after.grown = base + size, note.grown
            passage_rows(t, &x, pending(&draft), &known, &n_rows)
            after.runs = last_runs(runs, known, n_rows, pending(&draft), &after.waiting)
            if after.waiting + held + (size - n) > limit:
                return None             # the caller says how much that is
        draft.tokens_out += w.count
        result = ids_as(form, tail.encoder.table, tail.encoder._spares, w, out)
        if follows:
            result = *result, rows
    finally:
        passage_free(&x)
        tail.encoder.give(workspace)
    with cython.critical_section(tail):         # nothing from here on can fail
        commit(tail, &draft, final)
        tail._note = after
    return result


def runs_behind(tuple runs not None, rows, size_t waiting):
    """(the runs of the last `waiting` bytes, the bytes that these were before).

    runs: those that were known; rows: int64 [3 n] of what has come since, or of its end.
    """
    cdef ArrayView known = read_array(rows, INT64, "rows")
    cdef size_t source
    found = last_runs(runs, <const i64*>known.data, known.size // 3, waiting, &source)
    return found, source


cdef tuple last_runs(tuple runs, const i64* rows, size_t n_rows, size_t waiting, size_t* source):
    """As `runs_behind`, of rows[:3 * n_rows]."""
    cdef list kept = []
    cdef const i64* row
    source[0] = 0
    while n_rows > 0 and waiting > 0:
        n_rows -= 1
        row = rows + 3 * n_rows
        waiting = keep_run(kept, row[0], row[1], row[2], waiting, source)
    for count, now, before in reversed(runs):
        if waiting == 0:
            break
        waiting = keep_run(kept, count, now, before, waiting, source)
    kept.reverse()
    return tuple(kept)


cdef size_t keep_run(list kept, i64 count, i64 now, i64 before, size_t waiting,
                     size_t* source) except? 0:
    """Put a run, or its end that waits, before those that are kept; the bytes that still wait."""
    cdef i64 rest = 0
    if count * now > <i64>waiting:
        count, rest = <i64>waiting // now, <i64>waiting % now
    if now == 0:                # all that became nothing is one, however much it is
        add_run(kept, 1, 0, count * before)
    elif count:
        add_run(kept, count, now, before)
    if rest:                    # the end of a character, which still stands for all of it
        kept.append((1, rest, before))
        source[0] += before
    source[0] += count * before
    return waiting - count * now - rest


cdef int add_run(list kept, i64 count, i64 now, i64 before) except -1:
    """Put a run before those that are kept, as one with the first of these if it is alike."""
    cdef Py_ssize_t last = len(kept) - 1
    if last >= 0 and now == 0 and kept[last][1] == 0:
        kept[last] = 1, 0, kept[last][2] + before
    elif last >= 0 and kept[last][1:] == (now, before):
        kept[last] = kept[last][0] + count, now, before
    else:
        kept.append((count, now, before))
    return 0
