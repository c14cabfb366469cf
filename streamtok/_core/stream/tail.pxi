"""The open end of a stream: its pending bytes, and the state of the walk over them.

A `Tail` takes chunks of any size and returns the ids that no later chunk can change. It keeps the *tail*:
an unfinished UTF-8 sequence, a possible prefix of a special token, and the part of the open pre-token whose
tokens are not final yet.

A pattern may look arbitrarily far ahead: after a newline, cl100k's `\\s*[\\r\\n]` takes a run of spaces
into the same pre-token if another newline follows, and leaves it to the next pre-token if not. While this
is undecided, there are two hypotheses: either the pre-token continues (`scan`), or it ended where the
pattern last accepted, and another one began there (`other`). If the encoding under the first has a token
boundary at that position, both agree on the tokens before it. From that boundary on, both merge the same
bytes as part of a single pre-token. So what `merge/stable_prefix.pxi` finds final is final under both, and
memory stays bounded. Without such a boundary, the ids do depend on what follows, and the bytes stay
pending, up to the caller's limit.

A failed call has no effect, by construction. `Tail.mark` and the first `mark.size` bytes of the buffer are
the committed state, and no call writes to them: a call works on a copy of the mark, and on the bytes after
the first `mark.size`. Once the ids are ready and nothing can fail any more, `commit` replaces the mark with
the copy.
"""

# The state of a tail except its bytes; positions are relative to `bytes`. A saved state consists of this
# struct and the bytes held. The fields leave no gaps, and have the same sizes on all 64-bit machines.
cdef struct Mark:
    size_t size             # bytes held; well-formed unless the policy is KEEP
    size_t searched         # no special token begins in the open bytes before it
    u8[3] partial           # the bytes of an incomplete character after the bytes held
    u8 partial_size
    bint has_other
    Scan scan
    Scan other              # the second hypothesis
    size_t retry_at         # see `commit_open`
    size_t fork_at          # bytes past the last acceptance from which a fork is worth trying
    u64 offset              # position of bytes[0] in the stream
    u64 bytes_in            # bytes fed
    u64 tokens_out          # ids emitted


cdef enum Policy:           # what to do with bytes that are not UTF-8
    REFUSE
    REPAIR
    KEEP


cdef enum:
    SLICE = 1 << 16         # bytes of a chunk that are encoded at a time
    SLACK = 64              # readable bytes after the tail
    SHRINK_FROM = 1 << 18   # bytes; a larger buffer shrinks when it is no longer needed


@cython.final
cdef class Tail:
    """The state of one stream. Only one call may run at a time: a concurrent one raises StreamInUseError.

    before: ids that the first call emits before those of the text. after: ids that the final call emits
    after them. rules: how text is changed before it reaches the tail; they also find all special tokens.
    finder: finds the tokens in chunks that contain control. `finder.parts(chunk, run, final)` returns
    (parts, run, size). The parts are texts, `GivenToken`s, and None where a character must not continue;
    `run` is the state of the open run of control, for the next call; `size` is the number of bytes pending
    in that run.
    """

    cdef Encoder encoder
    cdef SpecialMatcher matcher
    cdef readonly str errors
    cdef Policy policy
    cdef tuple before
    cdef tuple after
    cdef u8* bytes
    cdef size_t capacity
    cdef Mark mark
    cdef readonly Changer changer   # changes the text before it reaches the tail, or None
    cdef readonly object finder     # finds the tokens of chunks with control; None: all chunks are text
    cdef object run                 # the finder's state of the open run of control, or None,
    cdef size_t run_size            # and the bytes pending in it
    cdef char busy

    def __cinit__(self, Encoder encoder not None, SpecialMatcher matcher not None, str errors not None,
                  tuple before not None=(), tuple after not None=(), ChangeRules rules=None, finder=None):
        need_scanner(encoder)
        self.finder = finder
        self.changer = None if rules is None else Changer(rules, errors)
        self.encoder = encoder
        self.matcher = matcher
        self.before, self.after = before, after
        self.errors = errors
        self.policy = REFUSE if errors == "strict" else REPAIR if errors == "replace" else KEEP
        self.capacity = 0
        begin(&self.mark, 0)

    def __dealloc__(self):
        free(self.bytes)

    # A thread may read these while another is in a call, so committed state is read and written as a whole.

    @property
    def pending(self):
        """The number of pending bytes of the text, counted before it is changed."""
        with cython.critical_section(self):
            if self.changer is not None:
                return self.changer.intake.pending + self.run_size
            return pending(&self.mark) + self.run_size

    @property
    def bytes_in(self):
        """The number of bytes of text fed since the stream began, counted before it is changed."""
        with cython.critical_section(self):
            if self.changer is not None:
                return self.changer.intake.bytes_in + self.run_size
            return self.mark.bytes_in + self.run_size

    @property
    def reached(self):
        """The number of bytes before the pending ones, counted after the text is changed."""
        with cython.critical_section(self):
            return self.mark.offset + self.mark.scan.start

    @property
    def tokens_out(self):
        """The number of ids emitted since the stream began."""
        with cython.critical_section(self):
            return self.mark.tokens_out

    def reset(self):
        """Forget everything except the settings."""
        self.begin_at(0)

    def begin_at(self, u64 offset):
        """Forget everything except the settings. The next chunk begins at byte `offset` of the stream."""
        enter(&self.busy)
        with cython.critical_section(self):
            begin(&self.mark, offset)
            self.run, self.run_size = None, 0
            if self.changer is not None:
                self.changer.reset()
        st_leave(&self.busy)

    def forget_partial(self):
        """Discard the bytes of an incomplete character, as if they had not been fed."""
        enter(&self.busy)
        with cython.critical_section(self):
            self.mark.bytes_in -= self.mark.partial_size
            self.mark.partial_size = 0
            if self.changer is not None:
                self.changer.intake.bytes_in -= self.changer.intake.n_partial
                self.changer.intake.pending -= self.changer.intake.n_partial
                self.changer.intake.n_partial = 0
        st_leave(&self.busy)

    def hurry(self):
        """Make the next call look for final ids in the open pre-token, however short it is.

        Until then, the state cannot be saved.
        """
        enter(&self.busy)
        with cython.critical_section(self):
            self.mark.retry_at = 0
        st_leave(&self.busy)

    def copy(self):
        """An independent Tail in the same state."""
        return self.with_finder(self.finder)

    def with_finder(self, finder):
        """An independent Tail in the same state, with this finder."""
        cdef Tail twin = Tail(self.encoder, self.matcher, self.errors, self.before, self.after,
                              finder=finder)
        enter(&self.busy)
        try:
            twin.run, twin.run_size = self.run, self.run_size
            if self.changer is not None:
                twin.changer = self.changer.copy()
            grow(twin, self.mark.size)
            if self.mark.size:
                memcpy(twin.bytes, self.bytes, self.mark.size)
            twin.mark = self.mark
        finally:
            st_leave(&self.busy)
        return twin

    def encode(self, chunk, bint final, Output output not None, size_t limit):
        """Feed `chunk`, and return the ids that became final, in the form of `output`.

        ID_SPANS gives (index of an id, start and end of its text in the stream), for a model of pieces for
        every id, otherwise only for the ids that `token_spans` cannot place without them. limit: how many
        bytes may stay pending. If it raises DisallowedSpecialError, PendingLimitExceeded or another error,
        the stream is as before the call.
        """
        return self.feed(chunk, final, output.form, output, limit)

    cdef object feed(self, object chunk, bint final, Form form, object out, size_t limit):
        cdef Mark draft
        cdef object result, run = None
        cdef list parts = None          # None: the chunk is a text
        cdef size_t run_size = 0
        enter(&self.busy)
        try:
            if self.finder is not None and (self.run is not None or not is_text_like(chunk)):
                parts, run, run_size = self.finder.parts(chunk, self.run, final)
            if self.changer is not None:
                result = feed_changing(self, chunk, parts, run_size, final, form, out, limit)
            else:
                draft = self.mark
                result = self.encode_draft(&draft, chunk, parts, run_size, final, form, out, limit)
                with cython.critical_section(self):     # nothing from here on can fail
                    commit(self, &draft, final)
            if parts is not None:
                with cython.critical_section(self):
                    self.run, self.run_size = run, run_size
            return result
        finally:
            st_leave(&self.busy)

    cdef object encode_draft(self, Mark* m, object chunk, list parts, size_t run_size, bint final, Form form,
                             object out, size_t limit):
        """Advance `m`, a copy of self.mark, past `chunk`, and return the ids. Commits nothing."""
        cdef Workspace workspace = self.encoder.take()
        cdef Work* w = &workspace.c
        cdef u64 start
        w.follows = form == AS_ID_SPANS
        try:
            put_before(self, m, w)
            if parts is None:
                feed_text(self, m, w, chunk, final, form == AS_ARRAY)
            else:
                feed_parts(self, m, w, parts, final)
            if final:
                put_ids(w, self.after)
            if pending(m) + run_size > limit:
                start = m.offset + m.scan.start
                raise PendingLimitExceeded(
                    f"{pending(m) + run_size} bytes from offset {start} of the stream would be pending, "
                    f"max_pending allows {limit}",
                    offset=start, pending=pending(m) + run_size, limit=limit,
                )
            m.tokens_out += w.count
            return ids_as(form, self.encoder.table, self.encoder._spares, w, out)
        finally:
            self.encoder.give(workspace)

    def getstate(self):
        """bytes: everything that the next call depends on, except the settings."""
        cdef Mark m
        cdef bytes before = b""
        enter(&self.busy)
        try:
            if self.changer is not None:
                before = self.changer.getstate()
                before = len(before).to_bytes(8, "little") + before
            if self.finder is not None:
                run = self.finder.packed(self.run)
                before = len(run).to_bytes(8, "little") + run + before
            m = self.mark
            if not m.has_other:                 # unused, so give it a definite value
                m.other = m.scan
            memset(m.partial + m.partial_size, 0, sizeof(m.partial) - m.partial_size)
            check_mark(self, &m)
            return before + (<const char*>&m)[:sizeof(Mark)] + self.bytes[:m.size]
        finally:
            st_leave(&self.busy)

    def setstate(self, bytes state not None):
        """Continue from a state that `getstate` returned. Raises StateError if the bytes are damaged."""
        cdef Mark m
        cdef Changer changer = None
        cdef bytes before = b""
        cdef const u8* held
        cdef size_t at = 0, size, run_size = 0
        cdef object run = None
        if self.finder is not None:
            run, run_size = self.finder.unpacked(cut(state, &at, int.from_bytes(cut(state, &at, 8), "little")))
            state = state[at:]
            at = 0
        if self.changer is not None:
            before = cut(state, &at, int.from_bytes(cut(state, &at, 8), "little"))
            state = state[at:]
        held = <const u8*><const char*>state + sizeof(Mark)
        size = len(state)
        if size < sizeof(Mark):
            raise StateError(f"a saved stream state has at least {sizeof(Mark)} bytes, not {size}")
        memcpy(&m, <const char*>state, sizeof(Mark))
        if m.size != size - sizeof(Mark) or m.partial_size > sizeof(m.partial):
            raise damaged("its size does not match the sizes in it")
        check_mark(self, &m)
        if not may_be_held(self, held, m.size, m.offset):
            raise damaged("the bytes that it holds are not UTF-8")
        if self.before and not m.tokens_out and (m.bytes_in or m.size or m.partial_size):
            raise damaged("it has text before its beginning")
        if self.changer is not None:
            changer = self.changer.from_state(before, m.offset + m.scan.start, m.offset + m.size)
        enter(&self.busy)
        try:
            grow(self, m.size)
            memcpy(self.bytes, held, m.size)
            with cython.critical_section(self):
                self.mark = m
                self.changer = changer
                self.run, self.run_size = run, run_size
        finally:
            st_leave(&self.busy)


cdef inline int feed_text(Tail tail, Mark* m, Work* w, object chunk, bint final, bint foresees) except -1:
    """Feed a text. foresees: whether the ids will be returned as an array."""
    cdef Text text
    cdef Found refused
    cdef bint is_text = PyUnicode_Check(chunk), is_clean
    if is_text and m.partial_size and len(<str>chunk):
        raise UnicodeDecodeError(
            "utf-8", m.partial[:m.partial_size], m.bytes_in - m.partial_size, m.bytes_in,
            "a str chunk follows bytes that end inside a character",
        )
    # The policy is applied below, since a sequence may have begun in the last chunk.
    text_open(&text, &w.buffer, chunk, tail.errors)
    try:
        is_clean = is_text and m.partial_size == 0
        if foresees:
            foresee(tail.encoder._spares, w, text.size // 3)
        refused.kind = PARTIAL
        if text.size >= RELEASE_FROM:
            with nogil:
                feed_tail(tail, m, w, text.data, text.size, is_clean, final, tail.matcher, &refused)
        else:
            feed_tail(tail, m, w, text.data, text.size, is_clean, final, tail.matcher, &refused)
        m.bytes_in += text.size
    finally:
        text_close(&text)
    if refused.kind == DISALLOWED:
        refuse(tail.bytes, &refused, m.offset + refused.start)
    return 0


cdef int feed_parts(Tail tail, Mark* m, Work* w, list parts, bint final) except -1:
    """Feed the parts that a finder made of a chunk: texts, `GivenToken`s, and None where a character must
    not continue.
    """
    cdef GivenToken given
    cdef bint ends
    cdef size_t i, n = len(parts)
    for i in range(n):
        part = parts[i]
        ends = final if i + 1 == n else type(parts[i + 1]) is GivenToken
        if type(part) is GivenToken:
            given = <GivenToken>part
            if pending(m):
                feed_text(tail, m, w, b"", True, False)
            begin_segment(tail, m, w)
            put_token(w, m, given.id, given.size)
        elif part is None:
            append(tail, m, NULL, 0, False, True)
        else:
            feed_text(tail, m, w, part, ends, False)
    if final and pending(m):
        feed_text(tail, m, w, b"", True, False)
    return 0


cdef object damaged(str why):
    return StateError(f"the saved stream state is damaged: {why}")


cdef int put_before(Tail tail, const Mark* m, Work* w) except -1:
    """Emit the ids that precede the text. They belong to the first call, even if its chunk is empty."""
    if m.tokens_out == 0:
        put_ids(w, tail.before)
    return 0


cdef int put_ids(Work* w, tuple ids) except -1:
    for one in ids:
        put_id(w, one, 0, 0)
    return 0


cdef int feed_tail(Tail tail, Mark* m, Work* w, const u8* p, size_t n, bint is_clean, bint final,
                 SpecialMatcher matcher, Found* refused) except -1 nogil:
    """Append p[:n] to the tail and encode it, slice by slice. is_clean: the tail and p[:n] together are
    UTF-8. matcher: finds special tokens; None if there are none.
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
