"""A stream in the middle of untouched text: see `text/untouched.pxi` and `engines/rewriting_chain.py`.

Where no normalizer changes anything and no special token has begun, a chunk goes to the core as it
is, but for its last characters: what follows may change them. These wait in the note, and go
before the next chunk. All other chunks are left to the caller, with nothing done.
"""

cdef enum:
    WAITS_KEPT = 4096           # ends of chunks
    LONGEST_KEPT = 8            # characters


@cython.final
@cython.freelist(8)
cdef class UntouchedNote:
    """Where a stream stands in untouched text. Immutable.

    place: the caller's, of the last chunk that did not come this way; has_moved: more has come
    since. held: what waits before the core, of `held_size` bytes; waiting: bytes that the core
    holds; partial: bytes of a character that is not complete. grown: bytes that repair added.
    """

    cdef readonly object place
    cdef readonly bint has_moved
    cdef readonly str held
    cdef size_t held_size
    cdef bint is_safe               # no special token begins in what is held
    cdef readonly bytes partial
    cdef readonly u64 bytes_in
    cdef readonly u64 grown
    cdef readonly size_t waiting

    def __init__(self, place, str held not None, bint is_safe, bytes partial not None,
                 u64 bytes_in, u64 grown, size_t waiting):
        """is_safe: no special token begins in `held`, which is UTF-8."""
        self.place = place
        self.held = held
        self.held_size = len(held.encode())
        self.is_safe = is_safe
        self.partial = partial
        self.bytes_in, self.grown, self.waiting = bytes_in, grown, waiting

    @property
    def pending(self):
        """Bytes of the text that wait."""
        return self.waiting + self.held_size + <size_t>len(self.partial)


@cython.final
cdef class UntouchedPath:
    """The way of such chunks, for streams with the same settings. Shared by threads.

    waits_behind: called with the last character of a chunk and the marks behind it; returns what
    waits of them and whether no special token begins there, or None where one may end.
    """

    cdef Untouched untouched
    cdef object waits_behind
    cdef dict known             # what that has returned

    def __cinit__(self, Untouched untouched not None, waits_behind):
        self.untouched = untouched
        self.waits_behind = waits_behind
        self.known = {}

    def feed(self, Tail tail not None, chunk, str into not None, out, size_t limit):
        """As `Tail.encode`, of a chunk that is not the last; None: it does not go this way."""
        return self.feed_untouched(tail, chunk, form_of(into), out, limit)

    cdef object feed_untouched(self, Tail tail, object chunk, Form form, object out, size_t limit):
        cdef bint is_text = type(chunk) is str
        cdef UntouchedNote note
        cdef Text text
        cdef Room room
        cdef object result = None
        cdef size_t joined = 0
        if not is_text and type(chunk) is not bytes:
            return None
        enter(&tail.busy)
        room.bytes = NULL
        room.size = 0
        try:
            if type(tail._note) is not UntouchedNote:
                return None
            note = <UntouchedNote>tail._note
            if not note.is_safe:
                return None
            if len(note.partial):
                if is_text:
                    return None
                chunk = note.partial + <bytes>chunk
            try:
                text_open(&text, &room, chunk, "strict")
            except UnicodeEncodeError:
                return None
            try:
                if note.held_size and begins_with_mark(self.untouched, &text):
                    # It is looked at together with what it stands on.
                    chunk = note.held + <str>chunk if is_text else note.held.encode() + <bytes>chunk
                    joined = note.held_size
                    text_close(&text)
                    text_open(&text, &room, chunk, "strict")
                result = self.feed_text(tail, note, joined, &text, is_text, form, out, limit)
            finally:
                text_close(&text)
        finally:
            st_free_block(room.bytes)
            st_leave(&tail.busy)
        return result

    cdef object feed_text(self, Tail tail, UntouchedNote note, size_t joined, Text* text,
                          bint is_text, Form form, object out, size_t limit):
        """As `feed`. text: what is incomplete, and the chunk; before it, what is held, of `joined`
        bytes, or 0: it goes for itself.
        """
        cdef size_t size, last, plain, left, held = note.held_size - joined
        cdef tuple waits
        cdef str kept
        cdef u64 before
        cdef Mark draft
        cdef Workspace workspace
        cdef Found refused
        cdef object result
        cdef UntouchedNote after
        size = untouched_size(self.untouched, text, is_text, note.held_size == 0)
        if size == 0:
            return None
        last = last_of(self.untouched, text.data, size)
        waits = self.waits(text.data + size - last, last)
        if waits is None:
            return None
        kept = <str>waits[0]
        plain = size - <size_t>waits[2]
        before = note.bytes_in - <size_t>len(note.partial) - joined
        draft = tail.mark
        workspace = tail.encoder.take()
        try:
            refused.kind = PARTIAL
            if form == AS_ARRAY:
                foresee(tail.encoder._spares, &workspace.c, size // 3)
            if held:
                take_stretch_text(tail, &draft, &workspace.c, note.held, "strict", False, False,
                                  &refused)
            take_stretch_bytes(tail, &draft, &workspace.c, text.data, plain, False, True, &refused)
            if refused.kind == DISALLOWED:
                return (before + note.grown + draft.offset + refused.start - tail.mark.bytes_in - held,
                        tail.bytes[refused.start:refused.end].decode("utf-8"))
            # What may begin a special token was not taken in.
            left = tail.mark.bytes_in + held + plain - draft.bytes_in
            after = UntouchedNote.__new__(UntouchedNote)
            after.place, after.has_moved = note.place, True
            after.held, after.held_size = kept, left + <size_t>waits[2]
            if left:
                after.held = text.data[plain - left:plain].decode("utf-8") + kept
            after.is_safe = left == 0 and <bint>waits[1]
            after.partial = b"" if is_text else text.data[size:text.size]
            after.bytes_in = before + text.size
            after.grown = note.grown
            after.waiting = pending(&draft)
            if after.waiting + after.held_size + (text.size - size) > limit:
                return None             # the caller says how much that is
            draft.tokens_out += workspace.c.count
            result = ids_as(form, tail.encoder.table, tail.encoder._spares, &workspace.c, out)
        finally:
            tail.encoder.give(workspace)
        with cython.critical_section(tail):         # nothing from here on can fail
            commit(tail, &draft, False)
            tail._note = after
        return result

    cdef tuple waits(self, const u8* end, size_t size):
        """(what waits of the end of a chunk, whether it is safe, its bytes), or None."""
        cdef str key = end[:size].decode("utf-8")
        cdef object found = self.known.get(key, self)
        if found is self:
            found = self.waits_behind(key)
            if found is not None:
                kept, is_safe = found
                found = (<str?>kept, bool(is_safe), len((<str>kept).encode()))
            if len(key) <= LONGEST_KEPT:
                if len(self.known) >= WAITS_KEPT:
                    self.known.clear()
                self.known[key] = found
        return found


cdef bint begins_with_mark(Untouched self, const Text* text) noexcept:
    cdef int length = 0
    # The bytes may be no UTF-8: nothing is read, or looked up, where there is nothing.
    if text.size < 3 or not 0xC0 <= text.data[0] < 0xF0:
        return False
    return kind_at(self, text.data, 0, &length) & MARK != 0


cdef size_t untouched_size(Untouched self, const Text* text, bint is_text,
                           bint begins_freely) except? 0:
    """The bytes of the characters of a text that is untouched; or else 0.

    begins_freely: nothing of what is before waits, so that a mark changes nothing there, and the text
    may begin with one.
    """
    cdef size_t size = text.size
    cdef i32 why = 0
    cdef int length = 0
    cdef bint is_left
    if not is_text:
        size = valid_bytes(text.data, size, &why, &length)
        if why != 0 and why != INCOMPLETE:
            return 0
    if size == 0 or (not begins_freely and kind_at(self, text.data, 0, &length) & MARK):
        return 0
    if size >= RELEASE_FROM:
        with nogil:
            is_left = leaves(self, text.data, 0, size)
    else:
        is_left = leaves(self, text.data, 0, size)
    return size if is_left else 0
