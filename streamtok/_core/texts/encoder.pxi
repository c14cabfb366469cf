"""Encodes texts into ids: scanner, special tokens and pre-token encoder together.

An `Encoder` is immutable but for its pool of workspaces: any number of threads may use one, each
call takes a workspace of its own.
"""

cdef enum:
    RELEASE_FROM = 4096     # bytes from which the GIL is released: below, handing it over costs more
    STEP = 1 << 20          # bytes between two looks at the clock
    MODEL_STEP = 1 << 14    # of a model of pieces


cdef int encode_span(Encoder encoder, Work* w, const u8* buffer, size_t readable, size_t end,
                     bint final, Scan* s) except -1 nogil:
    """Encode what can be decided of buffer[s.start:end]; `final`: nothing follows `end`.

    Afterwards s.start is where the open pre-token begins.
    """
    cdef i64[BATCH] ends
    cdef const ScanTables* tables = encoder.scanner.tables()
    cdef const ScanTables* gaps = NULL
    cdef size_t count = BATCH, start
    cdef bint committed
    cdef double score
    cdef Marks marks
    marks_begin(&marks, s.start)
    # The cache of a model knows what no pre-token covers as pre-tokens without ids. That of merges
    # has tokens for them.
    if encoder.table.tokens().model != NULL and not w.follows and tables.begins != NULL:
        gaps = tables
        marks.tells_gaps = False
    while count > BATCH - 64:           # fewer: all that can be decided was
        start = s.start
        committed = s.committed
        score = s.score
        count = scan(tables, s, &marks, buffer, end, final, ends, BATCH, &w.watch)
        if count == 0:
            break
        s.score = 0                     # of the next pre-token
        if committed:
            if encoder.table.tokens().model != NULL:
                end_pieces(encoder.table, w, buffer, start, <size_t>ends[0], score)
            else:
                encode_rest(encoder.table, w, buffer + start, <size_t>ends[0] - start)
            encode_pretokens(encoder.table, w, buffer, readable, <size_t>ends[0], ends + 1, count - 1,
                             gaps)
        else:
            encode_pretokens(encoder.table, w, buffer, readable, start, ends, count, gaps)
    return settle(encoder.table, w)


cdef int commit_open(Encoder encoder, Work* w, const u8* buffer, Scan* s,
                     size_t* retry_at) except -1 nogil:
    """Emit what is final of the open pre-token, of the bytes that surely belong to it.

    Nothing while the pre-token may still turn out to be a token that merges cannot build.
    `retry_at` is the size from which it is worth trying again: twice what is left, so that what an
    attempt costs is shared by as many new bytes.
    """
    cdef const Tokens* t = encoder.table.tokens()
    cdef size_t certain = s.position if encoder.scanner.tables().settled[s.state] else s.accept
    cdef size_t done
    if certain <= s.start or certain - s.start < retry_at[0]:
        return 0
    if t.model != NULL:
        return commit_pieces(encoder.table, w, buffer, s, certain, retry_at)
    if not s.committed and certain - s.start <= t.longest_unreachable:
        return 0
    done = commit_certain(encoder.table, w, buffer + s.start, certain - s.start)
    if done:
        s.start += done
        if s.accept < s.start:          # a later acceptance is certain, or it would not be sure
            s.accept = s.start
        s.committed = True
    retry_at[0] = 2 * (certain - s.start)
    if retry_at[0] < SECTION:
        retry_at[0] = SECTION
    return 0


cdef int encode_whole(Encoder encoder, Work* w, SpecialMatcher matcher, const u8* p, size_t n,
                      bint count_only, size_t* total, Found* refused) except -1 nogil:
    """Encode p[:n], all there is. Leaves the ids in w.out, or only their number in `total`.

    Nobody must write to p meanwhile. Raises MemoryError, and what a signal's handler raises.
    """
    total[0] = 0
    w.counts_only = count_only
    w.forgotten = 0
    encode_searched(encoder, w, matcher, p, n, 0, n, total, refused)
    total[0] += w.count + w.forgotten
    return 0


cdef int encode_searched(Encoder encoder, Work* w, SpecialMatcher matcher, const u8* p, size_t n,
                         size_t begin, size_t stop, size_t* total, Found* refused) except -1 nogil:
    """Encode p[begin:stop], special tokens and all that is between them; p[:n] may be read.

    matcher: None: there are none.
    """
    refused.kind = NOTHING
    refused.start = stop
    while True:
        if matcher is not None:
            matcher.search(&w.watch, p, begin, stop, True, refused)
        if refused.kind == DISALLOWED:
            return 0
        encode_stretch(encoder, w, p, n, begin, refused.start, total)
        if refused.kind != ALLOWED:
            return 0
        put_id(w, matcher.ids[refused.which], 0, 0)
        begin = refused.end


cdef int encode_changed(Encoder encoder, Work* w, SpecialMatcher matcher, Transform t,
                        SpecialMatcher inner, const u8* p, size_t n, bint count_only, size_t* total,
                        Found* refused) except -1:
    """As `encode_whole`, of what `t` makes of each stretch between special tokens, and of those that
    `inner` finds there; 1: the caller must say where one is that is refused.
    """
    cdef Found found
    cdef Passage x
    cdef Walk alone
    cdef size_t begin = 0
    cdef u8 where = AT_BEGIN | AT_FIRST
    total[0] = 0
    w.counts_only = count_only
    w.forgotten = 0
    passage_begin(t, &x, &alone)
    try:
        while True:
            if n - begin >= RELEASE_FROM:
                with nogil:
                    matcher.search(&w.watch, p, begin, n, True, &found)
            else:
                matcher.search(&w.watch, p, begin, n, True, &found)
            if found.kind == DISALLOWED:
                refused[0] = found
                return 0
            if found.start > begin:
                pass_through(t, &x, p + begin, found.start - begin, where, True, False)
                if not x.is_changed:
                    encode_part(encoder, w, inner, p, n, begin, found.start, total, refused)
                else:
                    encode_part(encoder, w, inner, x.out, x.size, 0, x.size, total, refused)
                if refused.kind == DISALLOWED:
                    return 1
            if found.kind != ALLOWED:
                break
            put_id(w, matcher.ids[found.which], 0, 0)
            where = AT_BEGIN
            begin = found.end
    finally:
        passage_free(&x)
    total[0] += w.count + w.forgotten
    refused[0].kind = found.kind
    return 0


cdef int encode_part(Encoder encoder, Work* w, SpecialMatcher matcher, const u8* p, size_t n,
                     size_t begin, size_t stop, size_t* total, Found* refused) except -1:
    """As `encode_searched`, with the GIL or without."""
    if stop - begin >= RELEASE_FROM:
        with nogil:
            encode_searched(encoder, w, matcher, p, n, begin, stop, total, refused)
    else:
        encode_searched(encoder, w, matcher, p, n, begin, stop, total, refused)
    return 0


cdef int encode_stretch(Encoder encoder, Work* w, const u8* p, size_t n, size_t begin, size_t stop,
                        size_t* total) except -1 nogil:
    """Encode p[begin:stop], which no pre-token leaves; p[:n] may be read.

    In steps, so that counting needs no memory for the ids, the paths of Unigram stay in the cache of the
    processor, and signals are not kept waiting.
    """
    cdef Scan s
    cdef bint has_model = encoder.table.tokens().model != NULL
    cdef size_t end = begin, step = COUNT_STEP if w.counts_only else STEP, retry_at = 0
    if has_model:
        step = MODEL_STEP
    scan_begin(&s, begin)
    while end < stop:
        if end > begin:
            look(&w.watch)
        end = stop
        if end - s.position > step:
            end = s.position + step
        encode_span(encoder, w, p, n, end, end == stop, &s)
        if has_model and end < stop:
            commit_open(encoder, w, p, &s, &retry_at)
        if w.counts_only:
            total[0] += w.count
            w.count = 0
    return 0


cdef int refuse(const Found* refused, const u8* p, i64 offset) except -1:
    """DisallowedSpecialError for a special token in p, which begins at byte `offset`."""
    raise DisallowedSpecialError(
        offset + <i64>refused.start, p[refused.start:refused.end].decode("utf-8")
    )


cdef int need_scanner(Encoder encoder) except -1:
    """ValueError for an encoder whose text must be cut by others: see `Encoder.encode_split`."""
    if encoder.scanner is None:
        raise ValueError("this encoder has no scanner: cut the text and use encode_split")
    return 0


@cython.final
cdef class Encoder:
    """Tokens and pre-tokens together: whole texts to ids. `scanner` may be None, see
    `encode_split`.
    """

    cdef readonly TokenTable table
    cdef readonly Scanner scanner
    cdef void* _ready           # a Workspace that is owned, or NULL
    cdef list _pool             # more of them
    cdef Spares _spares

    def __cinit__(self, TokenTable table not None, Scanner scanner):
        self.table = table
        self.scanner = scanner
        self._pool = []
        self._spares = Spares()

    def __dealloc__(self):
        Py_XDECREF(<PyObject*>self._ready)

    cdef Workspace take(self):
        # A list that grows from nothing to one and back costs more than to encode a word.
        cdef void* ready = st_swap(&self._ready, NULL)
        cdef Workspace workspace = None
        if ready != NULL:
            workspace = <Workspace>ready
            Py_DECREF(workspace)        # it has the reference now
            return workspace
        if self._pool:
            try:
                workspace = self._pool.pop()
            except IndexError:          # another thread was quicker
                pass
        return workspace if workspace is not None else Workspace(self.table)

    cdef void give(self, Workspace workspace):
        st_store_size(&workspace.cached, table_bytes(&workspace.c.cache))
        workspace.c.count = workspace.c.n_places = 0
        workspace.c.counts_only = workspace.c.follows = False
        forget_gaps(&workspace.c)       # if a call ended with an error
        room_trim(&workspace.c.room)
        if workspace.c.capacity > SPARE_LIMIT:      # do not sit on the memory of one huge text
            free(workspace.c.out)
            workspace.c.out = NULL
            workspace.c.capacity = 0
        Py_INCREF(workspace)
        cdef void* other = st_swap(&self._ready, <void*>workspace)
        if other != NULL:
            try:
                self._pool.append(<Workspace>other)
            finally:
                Py_XDECREF(<PyObject*>other)

    def release(self):
        """Free the memory between calls, caches and all; the next call makes it anew."""
        Py_XDECREF(<PyObject*>st_swap(&self._ready, NULL))
        self._pool.clear()
        self._spares.clear()

    def spare_bytes(self):
        """int: memory that arrays gave back, kept for those to come."""
        return self._spares.total()

    def cache_bytes(self):
        """int: what the workspaces that are not in use remember pre-tokens in."""
        cdef Workspace workspace = self.take()
        cdef size_t total = table_bytes(&workspace.c.cache)
        for other in list(self._pool):      # a copy: other threads take and give meanwhile
            total += st_load_size(&(<Workspace>other).cached)
        self.give(workspace)
        return total

    def encode(self, data, SpecialMatcher matcher not None, str errors not None,
               Output output not None, Transform transform=None, SpecialMatcher inner=None):
        """The ids of a whole text.

        data: str or bytes-like; output: LIST, ARRAY or COUNT. transform: changes the text, and
        `inner` finds more special tokens in what comes out. Raises UnicodeDecodeError,
        DisallowedSpecialError; None: the transform cannot do this text.
        """
        cdef Text text
        cdef Workspace workspace
        cdef Found refused
        cdef size_t total
        cdef Form form = output.form
        cdef bint count_only = form == AS_COUNT
        cdef i32 why
        cdef int length
        need_scanner(self)
        workspace = self.take()
        try:
            text_open_whole(&text, &workspace.c.room, data, errors)
            try:
                if not count_only:
                    foresee(self._spares, &workspace.c, text.size // 3)
                if transform is not None:
                    if errors == "surrogateescape":
                        valid_bytes(text.data, text.size, &why, &length)
                        if why != 0:
                            return None
                    if encode_changed(self, &workspace.c, matcher, transform, inner, text.data,
                                      text.size, count_only, &total, &refused):
                        return None
                elif text.size >= RELEASE_FROM:
                    with nogil:
                        encode_whole(self, &workspace.c, matcher, text.data, text.size, count_only,
                                     &total, &refused)
                else:
                    encode_whole(self, &workspace.c, matcher, text.data, text.size, count_only,
                                 &total, &refused)
                if refused.kind == DISALLOWED:
                    refuse(&refused, text.data, 0)
                if count_only:
                    return total
                return ids_as(form, self.table, self._spares, &workspace.c, None)
            finally:
                text_close(&text)
        finally:
            self.give(workspace)

    def encode_split(self, data, ends, Output output not None):
        """The ids of pre-tokens that the caller found: data[0:ends[0]], data[ends[0]:ends[1]], ….

        data: bytes-like; ends: int64 [n], not beyond the data and, but for their signs,
        non-decreasing. A negative end closes bytes that belong to no pre-token.
        """
        cdef ArrayView text = read_array(data, UINT8, "data")
        cdef ArrayView places = read_array(ends, INT64, "ends")
        cdef size_t done = 0, step, start = 0, count = places.size
        cdef const u8* p = <const u8*>text.data
        cdef const i64* closed = <const i64*>places.data
        cdef Workspace workspace = self.take()
        try:
            with nogil:
                while done < count:
                    step = count - done if count - done < BATCH else BATCH
                    encode_pretokens(self.table, &workspace.c, p, text.size, start, closed + done, step,
                                     NULL)
                    done += step
                    if done & ((1 << 16) - 1) == 0:
                        look(&workspace.c.watch)
                    start = <size_t>(closed[done - 1] if closed[done - 1] >= 0 else -closed[done - 1])
                settle(self.table, &workspace.c)
            return ids_as(output.form, self.table, self._spares, &workspace.c, None)
        finally:
            self.give(workspace)

    def encode_pretoken(self, pretoken):
        """list[int]: the ids of one pre-token, whole-pre-token look-up first."""
        pretoken = bytes(pretoken)        # nobody writes to it
        cdef i64 end = len(pretoken)
        return self.encode_split(pretoken, np.array([end] if end else [], dtype=np.int64), LIST)
