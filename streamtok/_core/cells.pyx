"""Pieces to ids: the whole-piece look-up, the cache of short pieces, long pieces in windows.

A piece that is a token is that token, as in tiktoken, whether or not its merges would build it.
Pieces of up to 15 bytes go through a hash table that holds the piece as a 16-byte key and up to
four ids in 32 bytes; it begins with all tokens of that length and learns what is merged. Longer ones
are remembered by a hash and their bytes. When either is full, both are wiped back to the tokens, so
memory is bounded. Pieces beyond a window are encoded window by window with the certificate of
`frontier.pyx`, so time is linear.

Which pieces there are is found elsewhere (`scanner.pyx`); what holds both together is `encoder.pyx`.
"""

cimport cython

from libc.stdlib cimport calloc, free, labs, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from streamtok._core.frontier cimport WINDOW, stable_tokens
from streamtok._core.merge cimport merge, merge_keys, merger_free
from streamtok._core.types cimport (
    NONE,
    SHORT_PIECE,
    ST_PREFETCH,
    st_free_block,
    st_load64,
    st_load_part,
    st_mix,
    st_new_block,
)
from streamtok._core.vocab cimport find_token

cdef enum:
    SMALLEST_CACHE = 1 << 15
    LONG_CELLS = 1 << 16
    ARENA = 1 << 20         # uint32s
    SEEDED = 32             # tokens put into cells at a time
    BATCH_ARENA = BATCH * (LONG_PIECE + LONG_PIECE // 4)    # the most that a batch may need

cdef struct Batch:          # of pieces that are looked up together
    u64[2 * BATCH] keys
    Cell* cells[BATCH]      # of each piece; NULL: it is long, or none
    u32[BATCH] missed       # those that the cache does not know

cdef u64 KEY_MASK = 0x0FFFFFFFFFFFFFFF
cdef u64[32] key_masks      # for each size of a piece, which bits of 16 loaded bytes are its own


cdef void fill_key_masks() noexcept nogil:
    cdef int size
    for size in range(16):
        key_masks[2 * size] = (<u64>1 << (8 * size)) - 1 if size < 8 else <u64>-1
        key_masks[2 * size + 1] = (<u64>1 << (8 * (size - 8))) - 1 if size > 8 else 0


fill_key_masks()


@cython.final
cdef class Workspace:
    """Scratch memory of one encoding thread, and its cache of short pieces."""

    def __cinit__(self, TokenTable table):
        cdef Work* w = &self.c
        cdef const Tokens* t = table.tokens()
        cdef u64 cells = SMALLEST_CACHE
        while cells < <u64>t.n * 5 // 2:
            cells *= 2
        w.cells = <Cell*>st_new_block(cells * sizeof(Cell), 64)
        w.long_cells = <LongCell*>calloc(LONG_CELLS, sizeof(LongCell))
        w.arena = <u32*>malloc(ARENA * sizeof(u32))
        w.window = <u8*>malloc(WINDOW)
        w.window_ids = <u32*>malloc(WINDOW * sizeof(u32))
        if (w.cells == NULL or w.long_cells == NULL or w.arena == NULL or w.window == NULL
                or w.window_ids == NULL):
            raise MemoryError("no memory for an encoding workspace")
        w.cell_mask = cells - 1
        w.cells_limit = cells * 5 // 8
        with nogil:
            seed_cells(t, w)

    def __dealloc__(self):
        free(self.c.out)
        st_free_block(self.c.cells)
        free(self.c.long_cells)
        free(self.c.arena)
        free(self.c.window)
        free(self.c.window_ids)
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


cdef inline u64 cell_home(u64 low, u64 high) noexcept nogil:
    return st_mix(low ^ <u64>0x9E3779B97F4A7C15, high ^ <u64>0xD6E8FEB86659FD93)


cdef inline void fill_cell(Work* w, Cell* cell, u64 low, u64 high, const u32* ids, size_t filled,
                           u64 count) noexcept nogil:
    cdef size_t i
    cell.low = low
    cell.high = high | (count << 60)
    for i in range(filled):
        cell.ids[i] = ids[i]
    w.cells_used += 1


cdef void seed_cells(const Tokens* t, Work* w) noexcept nogil:
    """Back to the beginning: every token of up to 15 bytes is a piece of one id."""
    cdef u32 token, first, end = 0, place, size, readable = t.offsets[t.n]
    cdef const u8* p
    cdef u64 low, high
    cdef Cell* cell
    cdef Cell* last = w.cells + w.cell_mask
    cdef u64[2 * SEEDED] keys
    cdef Cell* cells[SEEDED]
    memset(w.cells, 0, (w.cell_mask + 1) * sizeof(Cell))
    if w.cells_used:
        memset(w.long_cells, 0, LONG_CELLS * sizeof(LongCell))
    w.cells_used = w.long_used = w.arena_used = 0
    # All keys, then all cells: so that many wait for memory at a time.
    while end < t.n:
        first = end
        end = first + SEEDED if t.n - first > SEEDED else t.n
        for token in range(first, end):
            place = t.offsets[token]
            size = t.offsets[token + 1] - place
            cells[token - first] = NULL
            if size > SHORT_PIECE or t.ids[token] == NONE:
                continue
            p = t.blob + place
            if readable - place >= 16:
                low = st_load64(p) & key_masks[2 * size]
                high = st_load64(p + 8) & key_masks[2 * size + 1]
            else:
                low = st_load_part(p, size if size < 8 else 8)
                high = st_load_part(p + 8, size - 8) if size > 8 else 0
            high |= <u64>size << 56
            keys[2 * (token - first)] = low
            keys[2 * (token - first) + 1] = high
            cell = &w.cells[cell_home(low, high) & w.cell_mask]
            ST_PREFETCH(cell)
            cells[token - first] = cell
        for token in range(first, end):
            cell = cells[token - first]
            if cell == NULL:
                continue
            while cell.high != 0:
                cell = cell + 1 if cell != last else w.cells
            fill_cell(w, cell, keys[2 * (token - first)], keys[2 * (token - first) + 1],
                      &t.ids[token], 1, 1)


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
    if t.sorted == NULL:
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


cdef int encode_rest(TokenTable table, Work* w, const u8* p, size_t n) except -1 nogil:
    """Encode p[:n] by the merge loop alone, in linear time."""
    cdef size_t window = WINDOW, done
    while n > 2 * window:
        done = commit_window(table, w, p, window)
        if done:
            p += done
            n -= done
            window = WINDOW
        else:
            window *= 2
    return emit(table.tokens(), w, w.merger.result,
                merge(table.tokens(), &w.merger, p, n))


cdef inline u64 hash_long(const u8* p, size_t n) noexcept nogil:
    """Hash of more than 15 bytes; never 0."""
    cdef u64 h = st_mix(st_load64(p) ^ n, st_load64(p + n - 8) ^ <u64>0xD6E8FEB86659FD93)
    cdef size_t i = 8
    while i + 8 < n:
        h = st_mix(h ^ st_load64(p + i), <u64>0x9E3779B97F4A7C15)
        i += 8
    return h | 1


cdef int encode_long(TokenTable table, Work* w, const u8* p, size_t n) except -1 nogil:
    """Encode a piece of more than 15 bytes."""
    cdef const Tokens* t = table.tokens()
    cdef LongCell* cell = NULL
    cdef u64 h = 0, at
    cdef size_t before = w.count, count, words
    cdef u32 token
    if n <= LONG_PIECE:
        h = hash_long(p, n)
        at = (h >> 32) & (LONG_CELLS - 1)
        while True:
            cell = &w.long_cells[at]
            if cell.hash == 0:
                break
            if (cell.hash == h and cell.size == n
                    and memcmp(w.arena + cell.at + cell.count, p, n) == 0):
                reserve(w, cell.count)
                memcpy(w.out + w.count, w.arena + cell.at, cell.count * sizeof(u32))
                w.count += cell.count
                return 0
            at = (at + 1) & (LONG_CELLS - 1)
    token = find_token(t, p, n)
    if token != NONE:
        emit(t, w, &token, 1)
    else:
        encode_rest(table, w, p, n)
    if n <= LONG_PIECE:
        count = w.count - before
        words = count + (n + 3) // 4
        cell.hash = h
        cell.at = <u32>w.arena_used
        cell.size = <u16>n
        cell.count = <u16>count
        memcpy(w.arena + w.arena_used, w.out + before, count * sizeof(u32))
        memcpy(w.arena + w.arena_used + count, p, n)
        w.arena_used += words
        w.long_used += 1
    return 0


cdef inline Cell* find_cell(Work* w, Cell* cell, u64 low, u64 high) noexcept nogil:
    """From its home on, the cell of a piece, or the empty one where it belongs."""
    while not (cell.low == low and (cell.high & KEY_MASK) == high) and cell.high != 0:
        cell += 1
        if cell > w.cells + w.cell_mask:
            cell = w.cells
    return cell


cdef int learn(TokenTable table, Work* w, Batch* b, size_t missed) except -1 nogil:
    """Merge the short pieces that the cache does not know (so they are no tokens); remember them."""
    cdef const Tokens* t = table.tokens()
    cdef u64[2 * BATCH] keys
    cdef u32[16 * BATCH] tokens
    cdef u8[BATCH] counts
    cdef u32[2] where
    cdef size_t i, count, before = w.count
    cdef u64 low, high
    cdef Cell* cell
    for i in range(missed):
        keys[2 * i] = b.keys[2 * b.missed[i]]
        keys[2 * i + 1] = b.keys[2 * b.missed[i] + 1]
    merge_keys(t, &w.merger, keys, missed, tokens, counts)
    for i in range(missed):
        low = keys[2 * i]
        high = keys[2 * i + 1]
        cell = find_cell(w, &w.cells[cell_home(low, high) & w.cell_mask], low, high)
        b.cells[b.missed[i]] = cell
        if cell.high != 0:              # it was twice in this batch
            continue
        emit(t, w, &tokens[16 * i], counts[i])
        count = w.count - before        # of ids, which may be more than tokens
        w.count = before
        if count <= CELL_IDS:
            fill_cell(w, cell, low, high, w.out + before, count, count)
        else:
            where[0] = <u32>w.arena_used
            where[1] = <u32>count
            memcpy(w.arena + w.arena_used, w.out + before, count * sizeof(u32))
            w.arena_used += count
            fill_cell(w, cell, low, high, where, 2, MANY)
    return 0


cdef int encode_pieces(TokenTable table, Work* w, const u8* buffer, size_t readable, size_t start,
                       const i64* ends, size_t count) except -1 nogil:
    """Encode the pieces that end at ends[:count], count <= BATCH, the first from `start`.

    buffer[:readable] may be read: more than the pieces, so that keys can be loaded 16 bytes at a
    time.
    """
    cdef Batch b
    cdef size_t i, at = start, end, size, count_here, missed = 0
    cdef u64 low, high
    cdef Cell* cell
    cdef u32* out
    cdef i64 close
    if (w.cells_used + BATCH > w.cells_limit or w.long_used + BATCH > LONG_CELLS // 8 * 5
            or w.arena_used + BATCH_ARENA > ARENA):
        seed_cells(table.tokens(), w)
    # All keys, then all cells, then all ids: so that many wait for memory at a time.
    for i in range(count):
        close = ends[i]
        end = <size_t>close if close >= 0 else at
        size = end - at
        b.cells[i] = NULL
        if size - 1 < SHORT_PIECE:
            if at + 16 <= readable:
                low = st_load64(buffer + at)
                high = st_load64(buffer + at + 8)
            else:
                low = st_load_part(buffer + at, size if size < 8 else 8)
                high = st_load_part(buffer + at + 8, size - 8) if size > 8 else 0
            # Looked up, since sizes are too irregular for a branch to be predicted.
            low &= key_masks[2 * size]
            high = (high & key_masks[2 * size + 1]) | <u64>size << 56
            b.keys[2 * i] = low
            b.keys[2 * i + 1] = high
            b.cells[i] = &w.cells[cell_home(low, high) & w.cell_mask]
            ST_PREFETCH(b.cells[i])
        at = end if close >= 0 else <size_t>(-close)
    for i in range(count):
        if b.cells[i] != NULL:
            cell = find_cell(w, b.cells[i], b.keys[2 * i], b.keys[2 * i + 1])
            b.cells[i] = cell
            b.missed[missed] = <u32>i
            missed += cell.high == 0
    if missed:
        learn(table, w, &b, missed)
    reserve(w, at - start)
    at = start
    out = w.out + w.count
    for i in range(count):
        cell = b.cells[i]
        if cell != NULL:
            count_here = cell.high >> 60
            if count_here == MANY:
                count_here = cell.ids[1]
                memcpy(out, w.arena + cell.ids[0], count_here * sizeof(u32))
            else:
                memcpy(out, cell.ids, CELL_IDS * sizeof(u32))
            out += count_here
            at += (cell.high >> 56) & 15
        elif ends[i] < 0:               # characters that no piece covers
            at = <size_t>(-ends[i])
        else:
            w.count = out - w.out
            encode_long(table, w, buffer + at, <size_t>ends[i] - at)
            at = <size_t>ends[i]
            reserve(w, <size_t>(labs(ends[count - 1]) - ends[i]))
            out = w.out + w.count
    w.count = out - w.out
    return 0
