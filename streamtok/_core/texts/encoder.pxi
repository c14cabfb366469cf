"""Encodes texts into ids with the scanner, special tokens and the pre-token encoder.

An `Encoder` is immutable except for its pool of workspaces. Any number of threads may use it: each call
takes a workspace of its own.
"""

cdef enum:
    RELEASE_FROM = 4096     # bytes from which the GIL is released: for fewer, handing it over costs more
    STEP = 1 << 20          # bytes between two checks of the clock
    MODEL_STEP = 1 << 14    # the same for a model of pieces


cdef int encode_span(Encoder encoder, Work* w, const u8* buffer, size_t readable, size_t end,
                     bint final, Scan* s) except -1 nogil:
    """Encode as much of buffer[s.start:end] as can be decided. final: nothing follows `end`.

    Afterwards, the open pre-token begins at s.start.
    """
    cdef i64[BATCH] ends
    cdef const ScanTables* tables = encoder.scanner.tables()
    cdef const ScanTables* gaps = NULL
    cdef size_t count = BATCH, start
    cdef bint committed
    cdef double score
    cdef Marks marks
    marks_begin(&marks, s.start)
    # The cache of a model stores characters that no pre-token covers as pre-tokens without ids. The cache
    # for merges may store them as tokens.
    if encoder.table.tokens().model != NULL and not w.follows and tables.begins != NULL:
        gaps = tables
        marks.tells_gaps = False
    while count > BATCH - 64:           # fewer: everything that can be decided is encoded
        start = s.start
        committed = s.committed
        score = s.score
        count = scan(tables, s, &marks, buffer, end, final, ends, BATCH, &w.watch)
        if count == 0:
            break
        s.score = 0                     # score of the next pre-token
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
    """Emit the ids of the open pre-token that are final, given the bytes that certainly belong to it.

    Emits nothing while the pre-token may still be a token that merges cannot build. retry_at: the size from
    which another attempt is worth its cost. It is set to twice the size that is left, so that as many new
    bytes share that cost.
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
        if s.accept < s.start:          # only a later acceptance can make these bytes certain
            s.accept = s.start
        s.committed = True
    retry_at[0] = 2 * (certain - s.start)
    if retry_at[0] < SECTION:
        retry_at[0] = SECTION
    return 0


cdef int encode_whole(Encoder encoder, Work* w, ChangeRules rules, const u8* p, size_t n, size_t readable,
                      bint is_ascii, bint count_only, size_t* total) except -1 nogil:
    """Encode p[:n], a whole text; p[:readable] may be read. Appends the ids to w.out, or with count_only
    just counts them in `total`. is_ascii: the text is known to be ASCII.

    The caller must have entered the rules. No other code may write to p meanwhile. Raises
    DisallowedSpecialError, MemoryError, and whatever signal handlers raise.
    """
    cdef Levels levels
    begin_whole(w, &levels, count_only, total)
    levels.is_kept = is_ascii and rules.keeps_ascii
    encode_level(encoder, w, rules, rules.first_tokens, rules.first_table, 0, &levels, p, n, readable, total)
    total[0] += w.count + w.forgotten
    return 0


cdef inline void begin_whole(Work* w, Levels* levels, bint count_only, size_t* total) noexcept nogil:
    total[0] = 0
    w.counts_only = count_only
    w.forgotten = 0
    levels.is_kept = levels.takes_blanks = levels.is_after_word = levels.is_before_word = False
    levels.next_flags = 0
    levels.where[0] = levels.where[1] = PLACE_BEGIN | PLACE_FIRST


cdef struct Levels:         # of a whole text that rules change: see `transform/levels.pxi`
    u8[2] where             # PLACE_BEGIN | PLACE_FIRST of the next segment
    const u8* p             # the segment of the first level that the second level reads
    size_t n
    size_t start            # where that begins in the text
    u8 began                # `where` at its beginning
    bint is_changed
    bint is_kept            # nothing can change the text
    # For a part of a prompt, at the first level: the given tokens before and after it.
    bint takes_blanks       # the one before takes the whitespace that follows
    bint is_after_word
    bint is_before_word
    u8 next_flags           # TokenFlag of the one after


cdef int encode_level(Encoder encoder, Work* w, ChangeRules rules, TokenSet tokens, ElementTable table, int i,
                      Levels* levels, const u8* p, size_t n, size_t readable, size_t* total) except -1 nogil:
    """Encode p[:n], which is the whole input of level `i`, or a segment of the level before. Finds tokens
    as `find_tokens` does, then changes and encodes the text between them.
    """
    cdef Found found
    cdef size_t start = 0, search_from = 0, at
    cdef u8 flags
    cdef bint takes_blanks = i == 0 and levels.takes_blanks     # as the token before `start` does
    while True:
        tokens.matcher.search(&w.watch, p, search_from, n, True, &found)
        if found.kind == DISALLOWED:
            refuse(p, &found, found.start if i == 0 else source_offset(rules.first_table, levels, found.start))
        at = found.start
        flags = tokens.flags[found.which] if found.kind == ALLOWED else 0
        if flags & SINGLE_WORD and (
            (tokens.is_word_at(p, utf8_before(p, 0, at, n), n) if at > 0 else i == 0 and levels.is_after_word)
            or (tokens.is_word_at(p, found.end, n) if found.end < n else i == 0 and levels.is_before_word)
        ):
            search_from = found.end
            continue
        if takes_blanks:
            start = blanks_end(p, start, at, n)
            takes_blanks = start == at
        if found.kind != ALLOWED:
            if i == 0 and levels.next_flags & LSTRIP:
                n = blanks_begin(p, start, n, n)
            return encode_between(encoder, w, rules, table, i, levels, p, start, n, readable, total)
        if not takes_blanks:
            if flags & LSTRIP:
                at = blanks_begin(p, start, at, n)
            encode_between(encoder, w, rules, table, i, levels, p, start, at, readable, total)
        if not (takes_blanks and flags & LSTRIP and blanks_end(p, at, found.end, n) == found.end):
            put_id(w, tokens.matcher.ids[found.which], 0, 0)
        levels.where[1] = PLACE_BEGIN
        if i == 0:
            levels.where[0] = PLACE_BEGIN
        start = search_from = found.end
        takes_blanks = flags & RSTRIP != 0
    return 0


cdef int encode_between(Encoder encoder, Work* w, ChangeRules rules, ElementTable table, int i, Levels* levels,
                        const u8* p, size_t start, size_t stop, size_t readable, size_t* total) except -1 nogil:
    """Change p[start:stop], a segment of level `i`, and encode the result."""
    cdef ElementWalk x
    cdef const u8* out = p + start
    cdef size_t size = stop - start
    if start == stop:
        return 0
    readable -= start
    x.out, x.n_entries, x.is_changed, x.is_later = NULL, 0, False, False
    try:
        if table is not None and not levels.is_kept:
            element_walk_begin(table, &x, out, size, levels.where[i], True, NULL)
            walk_elements(table, &x)
        if i == 0:
            levels.p, levels.n, levels.start = out, size, start
            levels.began, levels.is_changed = levels.where[0], x.is_changed
            if x.is_later and levels.where[0] & PLACE_FIRST:
                levels.where[1] &= <u8>~PLACE_FIRST
        levels.where[i] = PLACE_BEGIN
        if x.is_changed:
            out, size, readable = x.out, x.size, x.size
        if i == 0 and rules.second_tokens is not None:
            encode_level(encoder, w, rules, rules.second_tokens, rules.second_table, 1, levels, out, size, readable,
                         total)
            levels.where[1] = PLACE_BEGIN
        else:
            encode_segment(encoder, w, out, readable, 0, size, total)
    finally:
        element_walk_free(&x)
    return 0


cdef size_t source_offset(ElementTable table, const Levels* levels, size_t offset) except? 0 nogil:
    """Where in the text the source of the changed segment's byte at `offset` begins."""
    cdef ElementWalk x
    cdef Alignment rows
    cdef LevelMark beginning
    if not levels.is_changed:
        return levels.start + offset
    memset(&rows, 0, sizeof(Alignment))
    memset(&beginning, 0, sizeof(LevelMark))
    try:
        element_walk_begin(table, &x, levels.p, levels.n, levels.began, True, &rows)
        walk_elements(table, &x)
        return levels.start + row_start(&rows, &beginning, offset)
    finally:
        element_walk_free(&x)
        alignment_free(&rows)


cdef int encode_segment(Encoder encoder, Work* w, const u8* p, size_t n, size_t begin, size_t stop,
                        size_t* total) except -1 nogil:
    """Encode p[begin:stop], which no pre-token crosses; p[:n] may be read.

    It works in steps, so that counting needs no memory for the ids of the whole text, Unigram's paths stay
    in the processor's cache, and signals are handled soon.
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


cdef int refuse(const u8* p, const Found* refused, u64 offset) except -1 nogil:
    """Raise DisallowedSpecialError for a special token in p that begins at byte `offset` of the text."""
    with gil:
        raise DisallowedSpecialError(<i64>offset, p[refused.start:refused.end].decode("utf-8"))


cdef int encode_object(Encoder encoder, Work* w, ChangeRules rules, object data, str errors, bint count_only,
                       size_t* total) except -1:
    """Like `encode_whole`, for a caller's text, which is repaired or refused as `errors` says."""
    cdef Source source
    cdef bint is_open = source_open(&source, data, errors), is_done = False
    enter_rules(rules)
    try:
        if is_open and not count_only:
            foresee(encoder._spares, w, source.size * max(source.unit, 1) // 3)
        if is_open and source.size >= RELEASE_FROM:
            with nogil:
                is_done = encode_source(encoder, w, rules, &source, count_only, total)
        elif is_open:
            is_done = encode_source(encoder, w, rules, &source, count_only, total)
        if not is_done:
            encode_object(encoder, w, rules, text_bytes(data, errors), "surrogateescape", count_only, total)
    finally:
        leave_rules(rules)
        if is_open:
            source_close(&source)
    return 0


cdef bint encode_source(Encoder encoder, Work* w, ChangeRules rules, const Source* source, bint count_only,
                        size_t* total) except -1 nogil:
    """Like `encode_whole`, for an open source. Returns False if its text must be repaired or refused."""
    cdef size_t size
    cdef const u8* p = source_utf8(source, &w.buffer, 0, source.size, &size)
    if p == NULL:
        return False
    encode_whole(encoder, w, rules, p, size, size, source.is_ascii, count_only, total)
    return True


cdef int need_scanner(Encoder encoder) except -1:
    """Raise ValueError if the encoder cannot cut text: see `Encoder.encode_split`."""
    if encoder.scanner is None:
        raise ValueError("this encoder has no scanner: cut the text and use encode_split")
    return 0


@cython.final
cdef class Encoder:
    """Encodes whole texts with a token table and a scanner, which may be None: see `encode_split`."""

    cdef readonly TokenTable table
    cdef readonly Scanner scanner
    cdef void* _ready           # a Workspace with a reference, or NULL
    cdef list _pool             # more workspaces
    cdef Spares _spares

    def __cinit__(self, TokenTable table not None, Scanner scanner):
        self.table = table
        self.scanner = scanner
        self._pool = []
        self._spares = Spares()

    def __dealloc__(self):
        Py_XDECREF(<PyObject*>self._ready)

    cdef Workspace take(self):
        # Appending to an empty list and popping from it would cost more than encoding a word.
        cdef void* ready = st_swap(&self._ready, NULL)
        cdef Workspace workspace = None
        if ready != NULL:
            workspace = <Workspace>ready
            Py_DECREF(workspace)        # the variable holds a reference now
            return workspace
        if self._pool:
            try:
                workspace = self._pool.pop()
            except IndexError:          # another thread came first
                pass
        return workspace if workspace is not None else Workspace(self.table)

    cdef void give(self, Workspace workspace):
        workspace.c.count = workspace.c.n_id_spans = 0
        workspace.c.counts_only = workspace.c.follows = False
        forget_gaps(&workspace.c)       # a call that failed may have left some
        buffer_trim(&workspace.c.buffer)
        if workspace.c.capacity > SPARE_LIMIT:      # do not keep the memory of one huge text
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
        """Free the memory kept between calls, caches included. The next call allocates it again."""
        Py_XDECREF(<PyObject*>st_swap(&self._ready, NULL))
        self._pool.clear()
        self._spares.clear()

    def spare_bytes(self):
        """int: the size in bytes of the memory that arrays have given back and that is kept for new arrays.
        """
        return self._spares.total()

    def cache_bytes(self):
        """int: the size in bytes of the cache of pre-tokens that the next call uses."""
        cdef Workspace workspace = self.take()
        cdef size_t size = table_bytes(&workspace.c.cache)
        self.give(workspace)
        return size

    def encode(self, data, ChangeRules rules not None, str errors not None, Output output not None):
        """The ids of a whole text.

        data: str or bytes-like; output: LIST, ARRAY or COUNT. Raises UnicodeDecodeError or
        DisallowedSpecialError.
        """
        cdef size_t total
        cdef bint count_only = output.form == AS_COUNT
        cdef Workspace workspace
        need_scanner(self)
        workspace = self.take()
        try:
            encode_object(self, &workspace.c, rules, data, errors, count_only, &total)
            if count_only:
                return total
            return ids_as(output.form, self.table, self._spares, &workspace.c, None)
        finally:
            self.give(workspace)

    def encode_split(self, data, ends, Output output not None):
        """The ids of the pre-tokens that the caller has cut: data[0:ends[0]], data[ends[0]:ends[1]], ….

        data: bytes-like; ends: int64 [n], whose absolute values do not decrease and are not beyond the
        data. A negative end closes bytes that belong to no pre-token.
        """
        cdef ArrayView text = read_array(data, UINT8, "data")
        cdef ArrayView end_array = read_array(ends, INT64, "ends")
        cdef size_t done = 0, step, start = 0, count = end_array.size
        cdef const u8* p = <const u8*>text.data
        cdef const i64* closed = <const i64*>end_array.data
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
        """list[int]: the ids of one pre-token, which is first looked up as a whole."""
        pretoken = bytes(pretoken)        # a copy that nothing else writes to
        cdef i64 end = len(pretoken)
        return self.encode_split(pretoken, np.array([end] if end else [], dtype=np.int64), LIST)
