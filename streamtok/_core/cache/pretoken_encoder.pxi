"""Encodes pre-tokens into ids: cached ones, new ones and long ones.

A pre-token that is a token becomes that token, as in tiktoken, even if merges would not build it. The cache
(`cache/pretoken_cache.pxi`) starts with all tokens. If it has dropped a token that merges do not build, the
token table finds that token.

New pre-tokens leave gaps in the ids and stay pending, so that several are merged side by side
(`cache/waiting.pxi`). Pre-tokens that are too long for the cache are merged in segments
(`merge/segments.pxi`). A pre-token whose end has not arrived is merged section by section, as far as
`merge/stable_prefix.pxi` proves the ids final.

`scan/scanner.pxi` finds the pre-tokens; `texts/encoder.pxi` combines it with this file.
"""


cdef enum:
    BATCH_ARENA = BATCH * (LONG_PRETOKEN + LONG_PRETOKEN // 4)    # the most words that a batch may need
    SETTLE_AT = 256             # pre-tokens; merging more together is not faster


cdef int encode_long(TokenTable table, Work* w, const u8* p, size_t n, u64 hash) except -1 nogil:
    """Encode a pre-token of more than 15 bytes that is not cached, or leave it pending. hash: its hash,
    used only if it has at most LONG_PRETOKEN bytes.
    """
    cdef const Tokens* t = table.tokens()
    cdef size_t before = w.count
    cdef u32 token
    if n <= MIDDLE_PRETOKEN:
        wait(w, p, n, hash, n)
        return 0
    token = find_unreachable(t, p, n) if n <= LONG_PRETOKEN else find_token(t, p, n)
    if token != NONE:
        emit(t, w, &token, 1)
    else:
        encode_rest(table, w, p, n)
    if n <= LONG_PRETOKEN:
        learn(&w.cache, home_of(&w.cache, hash, n), hash, n, p, w.out + before, w.count - before)
    return 0


cdef inline size_t most_ids_of(size_t n, size_t count) noexcept nogil:
    """The most ids that `count` pre-tokens of n bytes in total can have. Long ones do not count: they
    reserve their own capacity.
    """
    return n if n < count * SHORT_PRETOKEN else count * SHORT_PRETOKEN


cdef int encode_pretokens(TokenTable table, Work* w, const u8* buffer, size_t readable, size_t start,
                       const i64* ends, size_t count, const ScanTables* gaps) except -1 nogil:
    """Encode the pre-tokens that end at ends[:count], count <= BATCH. The first begins at `start`.

    gaps: tables that tell which of these are characters that no pre-token covers; NULL if the ends of such
    characters are negative.

    New pre-tokens are pending until `settle`; before that, w.out is incomplete. readable: see `find_homes`.
    """
    cdef size_t i = 0, n
    if not w.follows:
        return encode_run(table, w, buffer, readable, start, ends, count, gaps)
    if table.tokens().model != NULL:
        return encode_followed(table, w, buffer, start, ends, count)
    while i < count:
        n = 0
        while i + n < count and ends[i + n] >= 0:
            n += 1
        encode_run(table, w, buffer, readable, start, ends + i, n, gaps)
        i += n
        if i < count:               # the next id does not begin where the last one ends
            settle(table, w)
            start = <size_t>llabs(ends[i])
            reserve_id_spans(w, 1)
            set_id_span(w.id_spans, w.n_id_spans, w.origin + start, 0)
            keep_id_spans(w, 1, 0)
            i += 1
    return 0


cdef int encode_run(TokenTable table, Work* w, const u8* buffer, size_t readable, size_t start,
                    const i64* ends, size_t count, const ScanTables* gaps) except -1 nogil:
    cdef Lookup b
    cdef size_t i, at, count_here, extra = 0
    cdef u64 low, high
    cdef Cell* cell
    cdef Cell displaced
    cdef u32* out
    if table.tokens().model != NULL and table.tokens().model.n_stages:
        extra = MORE_IDS                            # ids that a pre-token may have beyond one for each byte
    if w.gap_count + BATCH > PENDING or w.gap_count >= SETTLE_AT:
        settle(table, w)
    reserve_cells(table.tokens(), &w.cache, BATCH, BATCH_ARENA)
    find_homes(&w.cache, &b, buffer, readable, start, ends, count, LONG_PRETOKEN)
    at = <size_t>llabs(ends[count - 1]) if count else start
    reserve(w, most_ids_of(at - start, count) + count * extra)
    out = w.out + w.count
    i = st_take_known(b.keys, <void**>b.cells, 0, count, &out)
    while i < count:
        low = b.keys[2 * i]
        high = b.keys[2 * i + 1]
        at = <size_t>llabs(ends[i - 1]) if i else start
        cell = find_cell(&w.cache, b.cells[i], low, high, buffer + at)
        if cell.high == 0:
            w.count = out - w.out
            encode_uncached(table, w, buffer, at, ends[i], &b.keys[2 * i], gaps)
            reserve(w, most_ids_of(<size_t>(llabs(ends[count - 1]) - llabs(ends[i])), count) + count * extra)
            out = w.out + w.count
        else:
            if cell != b.cells[i] and is_near(&w.cache, b.cells[i], cell):
                # Swap the cell with the one in its home, which is looked up less often. All cache lines
                # between the two are full, so look-ups still find both.
                displaced = cell[0]
                cell[0] = b.cells[i][0]
                b.cells[i][0] = displaced
                cell = b.cells[i]
            count_here = ask(cell)
            if count_here == IN_ARENA:
                count_here = cell.numbers[2]
                if is_long(cell.high):
                    w.count = out - w.out
                    reserve(w, count_here + count * extra
                            + most_ids_of(<size_t>(llabs(ends[count - 1]) - llabs(ends[i])), count))
                    out = w.out + w.count
                memcpy(out, numbers_of(&w.cache, cell), count_here * sizeof(u32))
            else:
                memcpy(out, cell.numbers, CELL_NUMBERS * sizeof(u32))
            out += count_here
        i = st_take_known(b.keys, <void**>b.cells, i + 1, count, &out)
    w.count = out - w.out
    return 0


cdef int encode_uncached(TokenTable table, Work* w, const u8* buffer, size_t start, i64 end,
                    const u64* key, const ScanTables* gaps) except -1 nogil:
    """Encode a new or long pre-token, or leave it pending. Characters that no pre-token covers get no ids."""
    cdef size_t size
    if end < 0:                     # characters that no pre-token covers
        return 0
    size = <size_t>end - start
    if gaps != NULL and not can_begin(gaps, buffer + start, size):
        learn(&w.cache, home_of(&w.cache, key[0], key[1]), key[0], key[1], buffer + start, w.out, 0)
        return 0
    if table.tokens().model != NULL:
        return encode_pieces(table, w, buffer + start, size, key)
    if size > SHORT_PRETOKEN:
        return encode_long(table, w, buffer + start, size, key[0])
    wait(w, buffer + start, size, key[0], key[1])
    return 0
