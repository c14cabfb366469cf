"""Pieces to ids: known ones, new ones, long ones.

A piece that is a token is that token, as in tiktoken, whether or not its merges would build it: all
tokens are at first among what is remembered (`pretoken_cache.pxi`), and those that merges do not build are
looked for when they come back. New pieces leave gaps in the ids and wait for others, to be merged
side by side. Pieces beyond those that are remembered are merged in stretches
(`segments.pxi`), those that are still open window by window with the certificate of `stable_prefix.pxi`.

Which pieces there are is found elsewhere (`scanner.pxi`); what holds both together is `encoder.pxi`.
"""

cdef enum:
    BATCH = 256             # pieces found, then encoded, at a time
    MIDDLE_PIECE = 64       # longest piece that is merged together with others
    PENDING = 512           # pieces that wait to be merged, at the most


cdef struct Gap:            # where the ids of a piece that waits belong
    size_t at               # in `out`
    u64 hash                # of a piece of more than 15 bytes; 0: it is short
    u32 which               # of the pieces of its kind that wait


cdef struct Waiting:        # new pieces of one kind, each `stride` bytes after the one before
    size_t count
    u8[PENDING] sizes
    u8[PENDING] counts      # of tokens
    u8* bytes
    u32* tokens


cdef struct Work:           # everything mutable that one encoding thread needs
    u32* out                # ids
    size_t count
    size_t capacity
    Known known             # what is remembered
    Gap[PENDING] gaps       # in order
    size_t gap_count
    bint is_alone           # the pieces at hand are too few to wait for strategy.company
    Waiting short_pieces    # 16 bytes apart, as keys of cells
    Waiting middle_pieces   # of up to MIDDLE_PIECE bytes
    Merger merger
    Merger scratch
    Room room               # UTF-8 of a str, or a copy of bytes that others may write to
    Watch watch             # when signals were looked at
    u8* window              # the last full window of a long piece: endless runs repeat it
    u32* window_ids
    size_t window_count
    size_t window_stable    # bytes of it that are final; 0: nothing remembered


cdef enum:
    BATCH_ARENA = BATCH * (LONG_PIECE + LONG_PIECE // 4)    # the most that a batch may need
    PENDING_ARENA = PENDING * (MIDDLE_PIECE + MIDDLE_PIECE // 4)
    ODD = BATCH // 64
    SETTLE_AT = 256             # pieces: more at a time are not merged faster
    COMPANY = 12                # pieces of a batch from which the new ones among them wait for others




cdef struct Lookup:          # of pieces that are looked up together
    u64[2 * BATCH] keys
    Cell* cells[BATCH]      # where each belongs; an empty one: it is long, or none
    u64[ODD] odd            # bit i % 64 of i // 64: piece i is one of these


@cython.final
cdef class Workspace:
    """Scratch memory of one encoding thread, and its cache of short pieces."""

    cdef Work c

    def __cinit__(self, TokenTable table):
        cdef Work* w = &self.c
        cdef const Tokens* t = table.tokens()
        w.window = <u8*>malloc(WINDOW)
        w.window_ids = <u32*>malloc(WINDOW * sizeof(u32))
        w.short_pieces.bytes = <u8*>calloc(PENDING + 1, 16)
        w.short_pieces.tokens = <u32*>malloc(PENDING * 16 * sizeof(u32))
        w.middle_pieces.bytes = <u8*>calloc(PENDING + 1, MIDDLE_PIECE)
        w.middle_pieces.tokens = <u32*>malloc(PENDING * MIDDLE_PIECE * sizeof(u32))
        if (w.window == NULL or w.window_ids == NULL or w.short_pieces.bytes == NULL
                or w.short_pieces.tokens == NULL or w.middle_pieces.bytes == NULL
                or w.middle_pieces.tokens == NULL):
            raise MemoryError("no memory for an encoding workspace")
        known_open(&w.known, t)

    def __dealloc__(self):
        free(self.c.out)
        known_close(&self.c.known)
        free(self.c.window)
        free(self.c.window_ids)
        free(self.c.short_pieces.bytes)
        free(self.c.short_pieces.tokens)
        free(self.c.middle_pieces.bytes)
        free(self.c.middle_pieces.tokens)
        st_free_block(self.c.room.bytes)
        merger_free(&self.c.merger)
        merger_free(&self.c.scratch)


cdef int reserve(Work* w, size_t more) except -1 nogil:
    """Room for `more` ids, and for the four that a cell stores at once."""
    cdef size_t wanted = w.count + more + CELL_IDS
    cdef u32* out
    if wanted <= w.capacity:
        return 0
    wanted += wanted // 2 + 256
    out = <u32*>realloc(w.out, wanted * sizeof(u32))
    if out == NULL:
        raise MemoryError(f"no memory for {wanted} ids")
    w.out = out
    w.capacity = wanted
    return 0


cdef int emit(const Tokens* t, Work* w, const u32* tokens, size_t count) except -1 nogil:
    cdef size_t i
    if t.byte_ids != NULL:
        return emit_bytes(t, w, tokens, count)
    reserve(w, count)
    for i in range(count):
        w.out[w.count + i] = t.ids[tokens[i]]
    w.count += count
    return 0


cdef int emit_bytes(const Tokens* t, Work* w, const u32* tokens, size_t count) except -1 nogil:
    """`emit` where tokens without an id leave as the ids of their bytes."""
    cdef size_t i, j, size
    cdef const u8* p
    for i in range(count):
        size = t.offsets[tokens[i] + 1] - t.offsets[tokens[i]]
        p = t.blob + t.offsets[tokens[i]]
        reserve(w, size)
        if t.ids[tokens[i]] != NONE:
            w.out[w.count] = t.ids[tokens[i]]
            w.count += 1
            continue
        for j in range(size):
            w.out[w.count + j] = t.byte_ids[p[j]]
        w.count += size
    return 0


cdef size_t commit_window(TokenTable table, Work* w, const u8* p, size_t n) except? 0 nogil:
    """Emit the tokens of p[:n] that are final whatever follows; the bytes that they cover."""
    cdef const Tokens* t = table.tokens()
    cdef size_t stable, before = w.count
    cdef Py_ssize_t count
    if n == WINDOW and w.window_stable and memcmp(p, w.window, WINDOW) == 0:
        reserve(w, w.window_count)
        memcpy(w.out + w.count, w.window_ids, w.window_count * sizeof(u32))
        w.count += w.window_count
        return w.window_stable
    if not is_sorted(t):
        with gil:
            table.prepare_prefixes()
    count = stable_tokens(t, &w.merger, &w.scratch, p, n, &stable)
    emit(t, w, w.merger.result, count)
    if n == WINDOW and stable:
        memcpy(w.window, p, WINDOW)
        w.window_count = w.count - before
        memcpy(w.window_ids, w.out + before, w.window_count * sizeof(u32))
        w.window_stable = stable
    return stable


cdef size_t commit_sure(TokenTable table, Work* w, const u8* p, size_t n) except? 0 nogil:
    """As `commit_window`, for n >= WINDOW bytes; costs one certificate or two, not one a window."""
    cdef size_t done = 0, step
    # An endless run repeats its windows, and then their ids need not be found again.
    while n - done >= WINDOW:
        step = commit_window(table, w, p + done, WINDOW)
        if step == 0:
            break
        done += step
        if n - done < WINDOW or memcmp(p + done, w.window, WINDOW) != 0:
            break
    if n - done > WINDOW:
        done += commit_window(table, w, p + done, n - done)
    return done


cdef int encode_rest(TokenTable table, Work* w, const u8* p, size_t n) except -1 nogil:
    """Encode p[:n], all there is, by the merge loop alone."""
    cdef const Tokens* t = table.tokens()
    cdef size_t before = w.count, i
    cdef Growing into
    if t.byte_ids != NULL:      # there may be more ids than tokens
        into.items = w.scratch.result
        into.capacity = w.scratch.result_capacity
        into.count = 0
        try:
            merge_stretches(t, &w.merger, p, n, &into, &w.watch)
        finally:
            w.scratch.result = into.items
            w.scratch.result_capacity = into.capacity
        return emit_bytes(t, w, into.items, into.count)
    into.items = w.out
    into.capacity = w.capacity
    into.count = before
    try:
        merge_stretches(t, &w.merger, p, n, &into, &w.watch)
    finally:
        w.out = into.items
        w.capacity = into.capacity
    w.count = into.count
    if not table.is_dense:
        for i in range(before, w.count):
            w.out[i] = t.ids[w.out[i]]
    return reserve(w, 0)


cdef inline void wait(Work* w, Waiting* pieces, size_t stride, const u8* p, size_t n,
                      u64 hash) noexcept nogil:
    """Leave a gap in the ids for this piece, until `settle`. There must be room for it."""
    cdef Gap* gap = &w.gaps[w.gap_count]
    gap.at = w.count
    gap.hash = hash
    gap.which = <u32>pieces.count
    memcpy(pieces.bytes + stride * pieces.count, p, n)
    pieces.sizes[pieces.count] = <u8>n
    pieces.count += 1
    w.gap_count += 1


cdef inline u32 unreachable_token(const Tokens* t, const u8* p, size_t n) noexcept nogil:
    """The token that is exactly p[:n] if its merges may not build it and nobody remembers it."""
    if n > t.longest_unreachable:
        return NONE
    cdef u32 token = find_token(t, p, n)
    return NONE if token == NONE or t.ids[token] == NONE else token


cdef int encode_long(TokenTable table, Work* w, const u8* p, size_t n, u64 hash) except -1 nogil:
    """Encode a piece of more than 15 bytes, or let it wait. `hash` is its, if it may be remembered."""
    cdef const Tokens* t = table.tokens()
    cdef LongCell* cell = NULL
    cdef size_t before = w.count, count
    cdef u32 token
    if n > LONG_PIECE:
        token = find_token(t, p, n)
        if token != NONE:
            return emit(t, w, &token, 1)
        return encode_rest(table, w, p, n)
    cell = find_long(&w.known, hash, p, n)
    if cell.hash != 0:
        count = ask_long(cell)
        reserve(w, count)
        memcpy(w.out + w.count, ids_of_long(&w.known, cell), count * sizeof(u32))
        w.count += count
    elif n <= MIDDLE_PIECE and not w.is_alone:
        wait(w, &w.middle_pieces, MIDDLE_PIECE, p, n, hash)
    else:
        token = unreachable_token(t, p, n)
        if token != NONE:
            emit(t, w, &token, 1)
        else:
            encode_rest(table, w, p, n)
        fill_long(&w.known, cell, hash, p, n, w.out + before, w.count - before, True)
    return 0


cdef size_t to_ids(TokenTable table, u32* tokens, size_t count) noexcept nogil:
    """Put ids in the place of the tokens; the number of ids, no more than the tokens have bytes."""
    cdef const Tokens* t = table.tokens()
    cdef u32[MIDDLE_PIECE] copy
    cdef size_t i, j, size, made = 0
    if table.is_dense:
        return count
    if t.byte_ids == NULL:
        for i in range(count):
            tokens[i] = t.ids[tokens[i]]
        return count
    memcpy(copy, tokens, count * sizeof(u32))
    for i in range(count):
        if t.ids[copy[i]] != NONE:
            tokens[made] = t.ids[copy[i]]
            made += 1
            continue
        size = t.offsets[copy[i] + 1] - t.offsets[copy[i]]
        for j in range(size):
            tokens[made + j] = t.byte_ids[t.blob[t.offsets[copy[i]] + j]]
        made += size
    return made


cdef void forget_gaps(Work* w) noexcept nogil:
    w.gap_count = w.short_pieces.count = w.middle_pieces.count = 0


cdef int settle(TokenTable table, Work* w) except -1 nogil:
    """Merge the pieces that wait, remember them and put their ids into the gaps."""
    cdef const Tokens* t = table.tokens()
    cdef Waiting* pieces
    cdef Gap* gap
    cdef LongCell* cell
    cdef Cell* homes[PENDING]
    cdef size_t i, k, stride, total = 0, to, end
    cdef const u8* p
    cdef u32* ids
    cdef u32 token
    if w.gap_count == 0:
        return 0
    make_room(t, &w.known, PENDING, PENDING_ARENA)
    for i in range(w.gap_count):            # so that the cells are there when they are filled
        gap = &w.gaps[i]
        if gap.hash == 0:
            p = w.short_pieces.bytes + 16 * gap.which
            homes[i] = home_of(&w.known, st_load64(p), st_load64(p + 8))
            ST_PREFETCH(homes[i])
        else:
            ST_PREFETCH(&w.known.long_cells[(gap.hash >> 32) & w.known.long_mask])
    merge_many(t, &w.merger, w.short_pieces.bytes, 16, w.short_pieces.sizes, w.short_pieces.count,
               w.short_pieces.tokens, w.short_pieces.counts)
    merge_many(t, &w.merger, w.middle_pieces.bytes, MIDDLE_PIECE, w.middle_pieces.sizes,
               w.middle_pieces.count, w.middle_pieces.tokens, w.middle_pieces.counts)
    for i in range(w.gap_count):
        gap = &w.gaps[i]
        k = gap.which
        stride = 16 if gap.hash == 0 else MIDDLE_PIECE
        pieces = &w.short_pieces if gap.hash == 0 else &w.middle_pieces
        ids = pieces.tokens + stride * k
        p = pieces.bytes + stride * k
        token = unreachable_token(t, p, pieces.sizes[k])
        if token != NONE:
            ids[0] = token
            pieces.counts[k] = 1
        pieces.counts[k] = <u8>to_ids(table, ids, pieces.counts[k])
        total += pieces.counts[k]
        if gap.hash == 0:
            learn_short(&w.known, homes[i], p, ids, pieces.counts[k])
        else:
            cell = find_long(&w.known, gap.hash, p, pieces.sizes[k])
            if cell.hash == 0:
                fill_long(&w.known, cell, gap.hash, p, pieces.sizes[k], ids, pieces.counts[k],
                          True)
    reserve(w, total)
    end = w.count
    w.count += total
    to = w.count
    for i in range(w.gap_count, 0, -1):
        gap = &w.gaps[i - 1]
        stride = 16 if gap.hash == 0 else MIDDLE_PIECE
        pieces = &w.short_pieces if gap.hash == 0 else &w.middle_pieces
        to -= end - gap.at
        memmove(w.out + to, w.out + gap.at, (end - gap.at) * sizeof(u32))
        end = gap.at
        to -= pieces.counts[gap.which]
        memcpy(w.out + to, pieces.tokens + stride * gap.which,
               pieces.counts[gap.which] * sizeof(u32))
    forget_gaps(w)
    return 0


cdef void find_odd(const Work* w, Lookup* b, const u8* buffer, size_t start, const i64* ends,
                   size_t count) noexcept nogil:
    """Put the hashes of long pieces in the place of their keys, and fetch what is known of them.

    First all their cells, then what these point to: so that many wait for memory at a time.
    """
    cdef size_t which[BATCH]
    cdef size_t i, k, at, size, found = 0
    cdef u64 hash, bits
    cdef LongCell* cell
    for k in range((count + 63) // 64):
        bits = b.odd[k]
        while bits:
            i = 64 * k + <size_t>st_lowest(bits)
            bits &= bits - 1
            at = <size_t>llabs(ends[i - 1]) if i else start
            size = <size_t>ends[i] - at
            if ends[i] < 0 or size - SHORT_PIECE - 1 >= LONG_PIECE - SHORT_PIECE:
                continue                    # none at all, or longer than what is remembered
            hash = hash_long(buffer + at, size)
            b.keys[2 * i] = hash
            ST_PREFETCH(&w.known.long_cells[(hash >> 32) & w.known.long_mask])
            which[found] = i
            found += 1
    for k in range(found):
        hash = b.keys[2 * which[k]]
        cell = &w.known.long_cells[(hash >> 32) & w.known.long_mask]
        if cell.hash == hash:
            ST_PREFETCH(w.known.arena + cell.at)


cdef int encode_pieces(TokenTable table, Work* w, const u8* buffer, size_t readable, size_t start,
                       const i64* ends, size_t count) except -1 nogil:
    """Encode the pieces that end at ends[:count], count <= BATCH, the first from `start`.

    New ones wait for `settle`, without which w.out is not complete. buffer[:readable] may be read:
    more than the pieces, so that keys can be loaded 16 bytes at a time.
    """
    cdef Lookup b
    cdef size_t i = 0, k, at = start, end, size, part, count_here
    cdef u64 low, high
    cdef Cell* cell
    cdef u32* out
    cdef i64 close
    if w.gap_count + BATCH > PENDING or w.gap_count >= SETTLE_AT:
        settle(table, w)
    make_room(table.tokens(), &w.known, BATCH, BATCH_ARENA)
    w.is_alone = count < strategy.company
    # All keys, then all cells: so that many wait for memory at a time.
    if strategy.keys != NULL:
        i = count
        while i >= 8 and <size_t>llabs(ends[i - 2]) + 16 > readable:
            i -= 1
        if i >= 8:
            i = strategy.keys(buffer, start, ends, i, b.keys, <void**>b.cells, b.odd, w.known.cells,
                          w.known.cell_shift, &w.known.nothing)
            at = <size_t>ends[i - 1] if i else start
        else:
            i = 0
    for k in range((i + 63) // 64, <size_t>ODD):
        b.odd[k] = 0
    while i < count:
        close = ends[i]
        end = <size_t>close if close >= 0 else at
        size = end - at
        part = size if size < SHORT_PIECE else SHORT_PIECE
        if at + 16 <= readable:
            low = st_load64(buffer + at)
            high = st_load64(buffer + at + 8)
        else:
            low = st_load_part(buffer + at, part if part < 8 else 8)
            high = st_load_part(buffer + at + 8, part - 8) if part > 8 else 0
        # Looked up, since sizes are too irregular for a branch to be predicted.
        low &= st_key_masks[2 * part]
        high = (high & st_key_masks[2 * part + 1]) | <u64>part << 56
        b.keys[2 * i] = low
        b.keys[2 * i + 1] = high
        b.cells[i] = home_of(&w.known, low, high) if size - 1 < SHORT_PIECE else &w.known.nothing
        ST_PREFETCH(b.cells[i])
        b.odd[i >> 6] |= <u64>(size - 1 >= SHORT_PIECE) << (i & 63)
        at = end if close >= 0 else <size_t>(-close)
        i += 1
    find_odd(w, &b, buffer, start, ends, count)
    reserve(w, at - start)
    out = w.out + w.count
    for i in range(count):
        cell = b.cells[i]
        low = b.keys[2 * i]
        high = b.keys[2 * i + 1]
        if cell.low != low or (cell.high & ST_KEY_MASK) != high:
            cell = find_cell(&w.known, cell, low, high)
            if cell.high == 0:
                w.count = out - w.out
                at = <size_t>llabs(ends[i - 1]) if i else start
                encode_odd(table, w, buffer, at, ends[i], &b.keys[2 * i])
                reserve(w, <size_t>(llabs(ends[count - 1]) - llabs(ends[i])))
                out = w.out + w.count
                continue
        count_here = cell.high >> 60
        if count_here > CELL_IDS:       # idle, or too many
            count_here = ask(cell)
        if count_here == MANY:
            count_here = cell.ids[1]
            memcpy(out, w.known.arena + cell.ids[0], count_here * sizeof(u32))
        else:
            memcpy(out, cell.ids, CELL_IDS * sizeof(u32))
        out += count_here
    w.count = out - w.out
    return 0


cdef int encode_now(TokenTable table, Work* w, const u8* key, size_t size) except -1 nogil:
    """Encode a new piece of up to 15 bytes and remember it. There must be room for its ids."""
    cdef const Tokens* t = table.tokens()
    cdef u32* ids = w.out + w.count
    cdef size_t count = 1
    ids[0] = unreachable_token(t, key, size)
    if ids[0] == NONE:
        count = merge_alone(t, &w.merger, key, size, ids)
    count = to_ids(table, ids, count)
    learn_short(&w.known, home_of(&w.known, st_load64(key), st_load64(key + 8)), key, ids, count)
    w.count += count
    return 0


cdef int encode_odd(TokenTable table, Work* w, const u8* buffer, size_t start, i64 end,
                    const u64* key) except -1 nogil:
    """Encode a piece that has no cell, or let it wait: it is new, long or none at all."""
    cdef size_t size
    if end < 0:                     # characters that no piece covers
        return 0
    size = <size_t>end - start
    if size > SHORT_PIECE:
        return encode_long(table, w, buffer + start, size, key[0])
    if w.is_alone:
        return encode_now(table, w, <const u8*>key, size)
    wait(w, &w.short_pieces, 16, <const u8*>key, 16, 0)
    w.short_pieces.sizes[w.short_pieces.count - 1] = <u8>size
    return 0
