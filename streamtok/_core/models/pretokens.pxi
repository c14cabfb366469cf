"""Encode pre-tokens that are not in the cache, and the open ones of streams, with a model of pieces."""

cdef enum:
    MORE_IDS = 4                # how many more ids than bytes a cached pre-token may have
    LONGEST_CACHED = LONG_PRETOKEN - MORE_IDS


cdef size_t model_ids(const Model* m, Work* w, const u8* p, size_t n, u32* out,
                      IdSpan* id_spans) except? 0 nogil:
    """Write the ids of p[:n] to `out` and, unless NULL, their spans in p to `id_spans`.

    Returns the number of ids.
    """
    if m.kind == WORD_PIECE:
        return word_piece(m, &w.watch, p, n, out, id_spans)
    if m.kind == WORD_LEVEL:
        return word_level(m, p, n, out, id_spans)
    return unigram(m, &w.lattice, &w.watch, p, n, out, id_spans)


cdef int encode_pieces(TokenTable table, Work* w, const u8* p, size_t n, const u64* key) except -1 nogil:
    """Encode a pre-token that is not in the cache, and cache it if it fits. key: its key in the cache."""
    cdef const Model* m = table.tokens().model
    cdef size_t before = w.count, count
    if m.n_stages:
        encode_staged(table, w, p, n, 0)
    else:
        put_model_ids(m, w, p, n, 0)
    count = w.count - before
    if n <= LONGEST_CACHED and count <= n + (MORE_IDS if m.n_stages else 0):
        learn(&w.cache, home_of(&w.cache, key[0], key[1]), key[0], key[1], p, w.out + before, count)
    return 0


cdef int put_model_ids(const Model* m, Work* w, const u8* p, size_t n, u64 origin) except -1 nogil:
    """Emit the ids of p[:n], which is at `origin` in the text, and their spans if wanted."""
    cdef IdSpan* id_spans = reserve_ids(w, most_ids(m, n))
    return keep_ids(w, model_ids(m, w, p, n, w.out + w.count, id_spans), origin)


cdef IdSpan* reserve_ids(Work* w, size_t most) except? NULL nogil:
    """Reserve capacity for `most` ids and spans; return where the spans go, NULL if none are wanted."""
    reserve(w, most)
    if not w.follows:
        return NULL
    reserve_id_spans(w, most)
    return w.id_spans + w.n_id_spans


cdef int keep_ids(Work* w, size_t count, u64 origin) except -1 nogil:
    """Emit the first `count` ids in the reserved memory; their text begins at `origin`."""
    if w.follows:
        keep_id_spans(w, count, origin)
    w.count += count
    return 0


cdef int put_id(Work* w, u32 id, u64 start, u64 end) except -1 nogil:
    """Emit one id, whose span is start:end."""
    set_id_span(reserve_ids(w, 1), 0, start, end)
    w.out[w.count] = id
    return keep_ids(w, 1, 0)


cdef int reserve_id_spans(Work* w, size_t more) except -1 nogil:
    cdef size_t wanted = w.n_id_spans + more
    if wanted > w.id_spans_capacity:
        w.id_spans = <IdSpan*>grown(w.id_spans, &w.id_spans_capacity, wanted, sizeof(IdSpan), b"spans of ids")
    return 0


cdef void keep_id_spans(Work* w, size_t count, u64 origin) noexcept nogil:
    """Emit the spans of the next `count` ids; their text begins at `origin`."""
    cdef size_t i
    cdef IdSpan* span
    for i in range(count):
        span = w.id_spans + w.n_id_spans + i
        span.at = w.count + i
        span.start += origin
        span.end += origin
    w.n_id_spans += count


cdef int encode_followed(TokenTable table, Work* w, const u8* buffer, size_t start, const i64* ends,
                         size_t count) except -1 nogil:
    """As `encode_pretokens`, but with the spans of all ids, so without the cache, which holds no spans."""
    cdef const Model* m = table.tokens().model
    cdef size_t i, end, at = start
    for i in range(count):
        end = <size_t>llabs(ends[i])
        if ends[i] > 0 and end > at and m.n_stages:
            encode_staged(table, w, buffer + at, end - at, w.origin + at)
        elif ends[i] > 0 and end > at:
            put_model_ids(m, w, buffer + at, end - at, w.origin + at)
        at = end
    return 0


cdef int commit_pieces(TokenTable table, Work* w, const u8* buffer, Scan* s, size_t certain,
                       size_t* retry_at) except -1 nogil:
    """Emit the final ids of the open pre-token buffer[s.start:certain], and skip their bytes.

    A word that is too long for the model is unknown, whatever follows. If spans are wanted, its id is
    emitted only at the end of the word, which is also the end of the span.
    """
    cdef const Model* m = table.tokens().model
    cdef size_t n = certain - s.start, whole
    if m.n_stages and can_emit_early(m):
        certain = s.start
        if s.committed or n > m.longest:        # otherwise the whole pre-token may be one token
            whole = st_whole_characters(buffer + s.start, n)
            certain += commit_symbols(table, w, buffer + s.start, whole, s.committed, w.origin + s.start)
    elif m.kind == UNIGRAM:
        whole = st_whole_characters(buffer + s.start, n)
        certain = s.start
        if not m.n_stages:              # with stages, pre-tokens are words
            certain += commit_paths(m, w, buffer + s.start, whole, s)
    elif w.follows or m.n_stages:
        retry_at[0] = 2 * n
        return 0
    elif not s.committed:
        if m.kind == WORD_LEVEL and n <= m.longest:
            return 0
        if m.kind == WORD_PIECE and not has_more_characters(buffer + s.start, n, m.most_characters):
            retry_at[0] = 2 * n
            return 0
        check_unknown(m, buffer + s.start, n)
        put_id(w, m.unknown, 0, 0)
    if certain > s.start:
        n -= certain - s.start
        s.start = certain
        if s.accept < certain:
            s.accept = certain
        s.committed = True
    retry_at[0] = 2 * n
    if retry_at[0] < SECTION:
        retry_at[0] = SECTION
    return 0


cdef size_t commit_paths(const Model* m, Work* w, const u8* p, size_t n, Scan* s) except? 0 nogil:
    """Emit the ids that are final, whatever follows p[:n]; return the bytes that they cover."""
    cdef size_t done
    find_paths(m, &w.lattice, &w.watch, p, n, s.score)
    done = final_position(m, w.lattice.nodes, &w.watch, p, n)
    if done:
        s.score = w.lattice.nodes[done].score
        put_path(m, w, p, done, w.origin + s.start)
    return done


cdef int put_path(const Model* m, Work* w, const u8* p, size_t n, u64 origin) except -1 nogil:
    """Emit the ids of the path to the end of p[:n], which is at `origin` in the text."""
    cdef IdSpan* id_spans = reserve_ids(w, most_ids(m, n))
    return keep_ids(w, path_ids(m, w.lattice.nodes, &w.watch, p, n, w.out + w.count, id_spans), origin)


cdef int end_pieces(TokenTable table, Work* w, const u8* buffer, size_t start, size_t end,
                    double score) except -1 nogil:
    """Emit the last ids of a pre-token. score: for Unigram, that of the ids already emitted."""
    cdef const Model* m = table.tokens().model
    if m.kind == MERGES:
        return end_symbols(table, w, buffer + start, end - start, w.origin + start)
    if m.kind == UNIGRAM:
        find_paths(m, &w.lattice, &w.watch, buffer + start, end - start, score)
        put_path(m, w, buffer + start, end - start, w.origin + start)
    return 0
