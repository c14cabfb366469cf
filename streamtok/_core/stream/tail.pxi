"""The open end of a stream: the bytes that wait, and where the walk over them stands.

A `Tail` takes chunks of any size and gives the ids that no later chunk can change. What it keeps is
the *tail*: an unfinished UTF-8 sequence, what may begin a special token, and the open pre-token as
far as its tokens are not certain yet.

A pattern may look arbitrarily far ahead: after a newline, cl100k's `\\s*[\\r\\n]` takes a run of
blanks into the same pre-token if another newline follows, and leaves it to the next pre-token if
not. Then there are two hypotheses: the pre-token goes on (`scan`), or it ended where the pattern
accepted last, and another one began there (`other`). If the encoding under the first has a token
boundary at that place, both agree on the tokens before it. From there on both merge the same bytes
from the same boundary inside one pre-token, so what `merge/stable_prefix.pxi` finds final is final under
both, and memory stays bounded. Where there is no such boundary the answer really depends on what
follows, and the bytes wait, up to the caller's limit.

A failed call cannot matter, by construction. `Tail.mark` and the first `mark.size` bytes of the
buffer are what has been committed, and no call writes to them: it works on a copy of the mark, and
on the bytes behind those. When the ids are there and nothing can fail any more, `commit` puts the
copy in the place of the mark.
"""

# All of a tail but its bytes; positions are relative to `bytes`. A saved state is this and the bytes
# held. The fields leave no gaps, and have the same sizes on all 64-bit machines.
cdef struct Mark:
    size_t size             # bytes held, well-formed unless they are kept as they are
    size_t searched         # of these, known to begin no special token
    u8[3] partial           # the bytes behind them: those of a character that is not complete
    u8 partial_size
    bint has_other
    Scan scan
    Scan other              # the second hypothesis, see stream/tail.pxi
    size_t retry_at         # see encoder.commit_open
    size_t fork_at          # bytes beyond the last acceptance from which a fork is worth trying
    u64 offset              # place of bytes[0] in the stream
    u64 bytes_in            # bytes that came in
    u64 tokens_out          # ids that went out


cdef enum Policy:           # what to do with bytes that are no UTF-8
    REFUSE
    REPAIR
    KEEP


cdef enum:
    SLICE = 1 << 16         # bytes of a chunk that are taken in at a time
    SLACK = 64              # bytes beyond the tail that may be read
    SHRINK_FROM = 1 << 18   # a buffer beyond this is given back when it is no longer needed


@cython.final
cdef class Tail:
    """The state of one stream. One call at a time: a second one raises StreamInUseError.

    before, after: ids that go around those of the text, with the first call and with the final one.
    inner: special tokens that are found in text that others have changed; None: there are none.
    """

    cdef Encoder encoder
    cdef SpecialMatcher matcher
    cdef SpecialMatcher inner
    cdef readonly str errors
    cdef Policy policy
    cdef tuple before
    cdef tuple after
    cdef u8* bytes
    cdef size_t capacity
    cdef Mark mark
    cdef object _note           # what the caller remembers with the mark
    cdef char busy

    def __cinit__(self, Encoder encoder not None, SpecialMatcher matcher not None, str errors not None,
                  tuple before not None=(), tuple after not None=(), SpecialMatcher inner=None):
        need_scanner(encoder)
        self.encoder = encoder
        self.matcher = matcher
        self.inner = inner
        self.before, self.after = before, after
        self.errors = errors
        self.policy = REFUSE if errors == "strict" else REPAIR if errors == "replace" else KEEP
        self.capacity = 0
        begin(&self.mark, 0)
        self._note = None

    def __dealloc__(self):
        free(self.bytes)

    # One thread may look while another is in a call: what is committed is read and written as a
    # whole.

    @property
    def note(self):
        """What the caller remembers with the state; None: nothing."""
        with cython.critical_section(self):
            return self._note

    @property
    def pending(self):
        """Bytes of the text that wait: those held, or what they and others were before a change."""
        with cython.critical_section(self):
            if type(self._note) is ChangedNote:
                return (<ChangedNote>self._note).pending
            return pending(&self.mark)

    @property
    def bytes_in(self):
        """Bytes of the text taken in since the stream began, before any change."""
        with cython.critical_section(self):
            if type(self._note) is ChangedNote:
                return (<ChangedNote>self._note).bytes_in
            return self.mark.bytes_in

    @property
    def reached(self):
        """Bytes of the stream before those that wait, as the ids have them."""
        with cython.critical_section(self):
            return self.mark.offset + self.mark.scan.start

    @property
    def tokens_out(self):
        """Ids given out since the stream began."""
        with cython.critical_section(self):
            return self.mark.tokens_out

    def reset(self):
        """Forget everything but the settings."""
        self.begin_at(0)

    def begin_at(self, u64 offset):
        """Forget everything but the settings; what comes next is at byte `offset` of the stream."""
        enter(&self.busy)
        with cython.critical_section(self):
            begin(&self.mark, offset)
            self._note = None
        st_leave(&self.busy)

    def forget_partial(self):
        """Forget the bytes of a character that is not complete, as if they had not come in."""
        cdef object note = self._note
        if type(note) is ChangedNote:
            note = (<ChangedNote>note).without_partial()
        enter(&self.busy)
        with cython.critical_section(self):
            self._note = note
            self.mark.bytes_in -= self.mark.partial_size
            self.mark.partial_size = 0
        st_leave(&self.busy)

    def hurry(self):
        """Let the next call look for ids of the open pre-token that are final, however short it is.

        Until then, there is no state to be saved.
        """
        enter(&self.busy)
        with cython.critical_section(self):
            self.mark.retry_at = 0
        st_leave(&self.busy)

    def copy(self):
        """An independent Tail in the same state."""
        cdef Tail twin = Tail(
            self.encoder, self.matcher, self.errors, self.before, self.after, self.inner
        )
        enter(&self.busy)
        try:
            grow(twin, self.mark.size)
            if self.mark.size:
                memcpy(twin.bytes, self.bytes, self.mark.size)
            twin.mark = self.mark
            twin._note = self._note
        finally:
            st_leave(&self.busy)
        return twin

    def encode(self, chunk, bint final, Output output not None, size_t limit):
        """Take `chunk` in; the ids that became certain, as `output` gives them.

        PLACES are (index of the id, start, end of its text in the stream): for a model of pieces, of
        every id; otherwise, of special tokens only. limit: bytes that may be left waiting. Raises
        DisallowedSpecialError, PendingLimitExceeded; the stream is then as before.
        """
        return self.feed(chunk, final, output.form, output, limit)

    cdef object feed(self, object chunk, bint final, Form form, object out, size_t limit):
        cdef Mark draft
        cdef object result
        enter(&self.busy)
        try:
            draft = self.mark
            result = self.encode_draft(&draft, chunk, final, form, out, limit)
            with cython.critical_section(self):     # nothing from here on can fail
                commit(self, &draft, final)
            return result
        finally:
            st_leave(&self.busy)

    cdef object encode_draft(self, Mark* m, object chunk, bint final, Form form, object out,
                             size_t limit):
        """Move `m`, which is a copy of self.mark, on behind `chunk`; the ids. Commits nothing."""
        cdef Text text
        cdef Workspace workspace
        cdef Work* w
        cdef Found refused
        cdef object result
        cdef bint is_text = PyUnicode_Check(chunk), is_clean
        if is_text and m.partial_size and len(<str>chunk):
            raise UnicodeDecodeError(
                "utf-8", m.partial[:m.partial_size], m.bytes_in - m.partial_size, m.bytes_in,
                "a str chunk follows bytes that end inside a character",
            )
        workspace = self.encoder.take()
        w = &workspace.c
        w.follows = form == AS_PLACES
        try:
            # The policy is applied below, where sequences may go on from the chunk before.
            text_open(&text, &w.room, chunk, self.errors)
            try:
                is_clean = is_text and m.partial_size == 0
                if form == AS_ARRAY:
                    foresee(self.encoder._spares, w, text.size // 3)
                refused.kind = PARTIAL
                put_before(self, m, w)
                if text.size >= RELEASE_FROM:
                    with nogil:
                        take_in(self, m, w, text.data, text.size, is_clean, final, self.matcher,
                                &refused)
                else:
                    take_in(self, m, w, text.data, text.size, is_clean, final, self.matcher,
                            &refused)
                if final:
                    put_ids(w, self.after)
                m.bytes_in += text.size
            finally:
                text_close(&text)
            if refused.kind == DISALLOWED:
                refuse(&refused, self.bytes, m.offset)
            if pending(m) > limit:
                raise PendingLimitExceeded(
                    f"{pending(m)} bytes from offset {m.offset + m.scan.start} of the stream would "
                    f"have to wait, max_pending allows {limit}",
                    offset=m.offset + m.scan.start, pending=pending(m), limit=limit,
                )
            m.tokens_out += w.count
            return ids_as(form, self.encoder.table, self.encoder._spares, w, out)
        finally:
            self.encoder.give(workspace)

    def encode_parts(self, list parts not None, bint final, Output output not None, settle,
                     expected=None):
        """`encode` of a text that someone has cut into stretches: see `stream/parts.pxi`."""
        return feed_parts(self, parts, final, output.form, output, settle, expected)

    def getstate(self, expected=None):
        """bytes: everything that the next call depends on but the settings and the note.

        expected: the note that the caller knows of, as for `encode`.
        """
        cdef Mark m
        enter(&self.busy)
        try:
            if self._note is not expected:
                refuse_use()
            m = self.mark
            if not m.has_other:                 # nobody looks at it then
                m.other = m.scan
            memset(m.partial + m.partial_size, 0, sizeof(m.partial) - m.partial_size)
            check_mark(self, &m)
            return (<const char*>&m)[:sizeof(Mark)] + self.bytes[:m.size]
        finally:
            st_leave(&self.busy)

    def setstate(self, bytes state not None, note=None):
        """Continue where `getstate` was called. StateError if the bytes are damaged."""
        cdef Mark m
        cdef const u8* held = <const u8*><const char*>state + sizeof(Mark)
        cdef size_t size = len(state)
        if size < sizeof(Mark):
            raise StateError(f"a saved stream state has at least {sizeof(Mark)} bytes, not {size}")
        memcpy(&m, <const char*>state, sizeof(Mark))
        if m.size != size - sizeof(Mark) or m.partial_size > sizeof(m.partial):
            raise damaged("it does not hold the bytes that it speaks of")
        check_mark(self, &m)
        if not may_be_held(self, held, m.size, m.offset):
            raise damaged("the bytes that it holds are not UTF-8")
        if self.before and not m.tokens_out and (m.bytes_in or m.size or m.partial_size):
            raise damaged("it has text before its beginning")
        enter(&self.busy)
        try:
            grow(self, m.size)
            memcpy(self.bytes, held, m.size)
            with cython.critical_section(self):
                self.mark = m
                self._note = note
        finally:
            st_leave(&self.busy)


cdef object damaged(str why):
    return StateError(f"the saved stream state is damaged: {why}")


cdef int put_before(Tail tail, const Mark* m, Work* w) except -1:
    """Give out the ids before the text, which belong to the first call, whatever that takes in."""
    if m.tokens_out == 0:
        put_ids(w, tail.before)
    return 0


cdef int put_ids(Work* w, tuple ids) except -1:
    for one in ids:
        put_id(w, one, 0, 0)
    return 0


cdef int take_in(Tail tail, Mark* m, Work* w, const u8* p, size_t n, bint is_clean, bint final,
                 SpecialMatcher matcher, Found* refused) except -1 nogil:
    """Encode p[:n] behind the tail, slice by slice. `is_clean`: with the tail, it is UTF-8.
    matcher: finds special tokens; None: there are none.
    """
    cdef size_t step, floor = tail.mark.size
    while True:
        step = n if n < SLICE else SLICE
        append(tail, m, p, step, is_clean, final and step == n)
        p += step
        n -= step
        encode_tail(tail, m, w, final and n == 0, matcher, refused)
        if refused.kind == DISALLOWED or n == 0:
            return 0
        drop(tail, m, floor)
        look(&w.watch)


cdef int encode_tail(Tail tail, Mark* m, Work* w, bint final, SpecialMatcher matcher,
                     Found* refused) except -1 nogil:
    cdef Found found
    cdef size_t start
    found.kind = NOTHING
    found.start = m.size
    w.origin = m.offset
    while True:
        if matcher is not None:
            matcher.search(&w.watch, tail.bytes, m.searched, m.size, final, &found)
        if found.kind == DISALLOWED:
            refused[0] = found
            return 0
        start = m.scan.start
        advance(tail, m, w, found.start, final or found.kind == ALLOWED)
        if m.scan.start != start:       # another pre-token is open now
            m.retry_at = SECTION
            m.fork_at = 2 * SECTION
        m.searched = found.start
        if found.kind != ALLOWED:
            break
        put_id(w, matcher.ids[found.which], m.offset + found.start, m.offset + found.end)
        m.searched = found.end
        scan_begin(&m.scan, found.end)
    if not final:
        if not m.has_other:
            commit_open(tail.encoder, w, tail.bytes, &m.scan, &m.retry_at)
            fork(tail, m, w)
        if m.has_other:
            commit_both(tail, m, w)
    return 0
