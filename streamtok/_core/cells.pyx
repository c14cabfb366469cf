"""Pieces to ids: the whole-piece look-up, the cache of short pieces, long pieces in windows.

A piece that is a token is that token, as in tiktoken, whether or not its merges would build it.
Pieces of up to 15 bytes go through a hash table that holds the piece as a 16-byte key and up to
four ids in 32 bytes; it begins with all tokens of that length and learns what is merged. Longer ones
are remembered by a hash and their bytes. When either is full, both are wiped back to the tokens, so
memory is bounded. Pieces beyond those that are remembered are merged in stretches (`stretches.pyx`),
those that are still open window by window with the certificate of `frontier.pyx`.

Which pieces there are is found elsewhere (`scanner.pyx`); what holds both together is `encoder.pyx`.
"""

cimport cython

from libc.stdlib cimport calloc, free, labs, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

from streamtok._core.frontier cimport WINDOW, stable_tokens
from streamtok._core.merge cimport merge_many, merger_free
from streamtok._core.stretches cimport Growing, merge_stretches
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

cdef extern from "keys.h" nogil:
    u64 st_cell_hash(u64 low, u64 high) noexcept
    ctypedef size_t st_keys_function(const u8* buffer, size_t start, const i64* ends, size_t count,
                                     u64* keys, void** cells, void* table, int shift,
                                     void* nothing) noexcept
    st_keys_function* st_keys_tier()

cdef st_keys_function* wide_keys = st_keys_tier()


def use_wide_keys(bint wanted):
    """bool: whether keys are made eight at a time from now on. For tests."""
    global wide_keys
    wide_keys = st_keys_tier() if wanted else NULL
    return wide_keys != NULL


cdef enum:
    SMALLEST_CACHE = 1 << 15
    SMALLEST_LONG_CACHE = 1 << 16
    SMALLEST_ARENA = 1 << 20    # uint32s
    SEEDED = 32                 # tokens put into cells at a time
    BATCH_ARENA = BATCH * (LONG_PIECE + LONG_PIECE // 4)    # the most that a batch may need
    PENDING_ARENA = PENDING * (MIDDLE_PIECE + MIDDLE_PIECE // 4)
    SETTLE_AT = 256             # pieces: more at a time are not merged faster

cdef struct Batch:          # of pieces that are looked up together
    u64[2 * BATCH] keys
    Cell* cells[BATCH]      # where each belongs; an empty one: it is long, or none

cdef u64 KEY_MASK = 0x0FFFFFFFFFFFFFFF
cdef size_t most_cached = 32 << 20  # bytes of each workspace: half for cells, half for long ones
cdef u64[32] key_masks      # for each size of a piece, which bits of 16 loaded bytes are its own


def cache_limit():
    """int: bytes that a thread may spend on remembering pieces, see `set_cache_limit`."""
    return most_cached


def set_cache_limit(size):
    """Bound the memory for remembered pieces, of each thread that encodes with one encoding.

    size: bytes, 32 MiB at first. What is remembered begins small, with the tokens of the vocabulary
    (13 MiB for cl100k_base), doubles while it is below the limit, and is wiped back to the tokens
    when it is full, so that memory stays flat however much new text comes. Applies to what grows
    from now on; nothing shrinks. Ids are the same whatever the limit. Raises ValueError if negative.
    """
    global most_cached
    if size < 0:
        raise ValueError(f"the limit must not be negative: {size}")
    most_cached = size


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
        cdef u64 cells = SMALLEST_CACHE, long_cells = SMALLEST_LONG_CACHE
        cdef size_t many, words
        while cells < <u64>t.n * 5 // 2:
            cells *= 2
        many = long_tokens(t, &words)
        while long_cells < many * 5 // 2:
            long_cells *= 2
        w.cells = <Cell*>st_new_block(cells * sizeof(Cell), 64)
        w.long_cells = <LongCell*>calloc(long_cells, sizeof(LongCell))
        w.arena_size = SMALLEST_ARENA + words
        w.arena = <u32*>malloc(w.arena_size * sizeof(u32))
        w.window = <u8*>malloc(WINDOW)
        w.window_ids = <u32*>malloc(WINDOW * sizeof(u32))
        w.short_pieces.bytes = <u8*>calloc(PENDING + 1, 16)
        w.short_pieces.tokens = <u32*>malloc(PENDING * 16 * sizeof(u32))
        w.middle_pieces.bytes = <u8*>calloc(PENDING + 1, MIDDLE_PIECE)
        w.middle_pieces.tokens = <u32*>malloc(PENDING * MIDDLE_PIECE * sizeof(u32))
        if (w.cells == NULL or w.long_cells == NULL or w.arena == NULL or w.window == NULL
                or w.window_ids == NULL or w.short_pieces.bytes == NULL
                or w.short_pieces.tokens == NULL or w.middle_pieces.bytes == NULL
                or w.middle_pieces.tokens == NULL):
            raise MemoryError("no memory for an encoding workspace")
        w.cell_mask = cells - 1
        w.cell_shift = 64
        while cells >> (64 - w.cell_shift) > 1:
            w.cell_shift -= 1
        w.cells_limit = cells * 5 // 8
        w.long_mask = long_cells - 1
        w.long_limit = long_cells * 5 // 8
        with nogil:
            seed_cells(t, w)

    def __dealloc__(self):
        free(self.c.out)
        st_free_block(self.c.cells)
        free(self.c.long_cells)
        free(self.c.arena)
        free(self.c.window)
        free(self.c.window_ids)
        free(self.c.short_pieces.bytes)
        free(self.c.short_pieces.tokens)
        free(self.c.middle_pieces.bytes)
        free(self.c.middle_pieces.tokens)
        st_free_block(self.c.room.bytes)
        merger_free(&self.c.merger)
        merger_free(&self.c.scratch)


cdef size_t cached_bytes(const Work* w) noexcept nogil:
    """The memory for remembered pieces."""
    return ((w.cell_mask + 1) * sizeof(Cell) + (w.long_mask + 1) * sizeof(LongCell)
            + w.arena_size * sizeof(u32))


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


cdef inline Cell* home_of(Work* w, u64 low, u64 high) noexcept nogil:
    return &w.cells[st_cell_hash(low, high) >> w.cell_shift]


cdef inline void fill_cell(Work* w, Cell* cell, u64 low, u64 high, const u32* ids, size_t filled,
                           u64 count) noexcept nogil:
    cdef size_t i
    cell.low = low
    cell.high = high | (count << 60)
    for i in range(filled):
        cell.ids[i] = ids[i]
    w.cells_used += 1


cdef inline u64 hash_long(const u8* p, size_t n) noexcept nogil:
    """Hash of more than 15 bytes; never 0."""
    cdef u64 h = st_mix(st_load64(p) ^ n, st_load64(p + n - 8) ^ <u64>0xD6E8FEB86659FD93)
    cdef size_t i = 8
    while i + 8 < n:
        h = st_mix(h ^ st_load64(p + i), <u64>0x9E3779B97F4A7C15)
        i += 8
    return h | 1


cdef LongCell* find_long(Work* w, u64 hash, const u8* p, size_t n) noexcept nogil:
    """The cell of a piece of more than 15 bytes, or the empty one where it belongs."""
    cdef u64 at = (hash >> 32) & w.long_mask
    cdef LongCell* cell
    while True:
        cell = &w.long_cells[at]
        if cell.hash == 0 or (cell.hash == hash and cell.size == n
                              and memcmp(w.arena + cell.at + cell.count, p, n) == 0):
            return cell
        at = (at + 1) & w.long_mask


cdef void fill_long(Work* w, LongCell* cell, u64 hash, const u8* p, size_t n, const u32* ids,
                    size_t count) noexcept nogil:
    cell.hash = hash
    cell.at = <u32>w.arena_used
    cell.size = <u16>n
    cell.count = <u16>count
    memcpy(w.arena + w.arena_used, ids, count * sizeof(u32))
    memcpy(w.arena + w.arena_used + count, p, n)
    w.arena_used += count + (n + 3) // 4
    w.long_used += 1


cdef inline bint is_long_token(const Tokens* t, u32 token) noexcept nogil:
    cdef u32 size = t.offsets[token + 1] - t.offsets[token]
    return SHORT_PIECE < size <= LONG_PIECE and t.ids[token] != NONE


cdef size_t long_tokens(const Tokens* t, size_t* words) noexcept nogil:
    """How many tokens are known as long pieces, and the words of the arena that they take."""
    cdef u32 token
    cdef size_t many = 0
    words[0] = 0
    for token in range(t.n):
        if is_long_token(t, token):
            many += 1
            words[0] += 1 + (t.offsets[token + 1] - t.offsets[token] + 3) // 4
    return many


cdef void seed_cells(const Tokens* t, Work* w) noexcept nogil:
    """Back to the beginning: every token of up to LONG_PIECE bytes is a piece of one id."""
    cdef u32 token, first, end = 0, place, size, readable = t.offsets[t.n]
    cdef const u8* p
    cdef u64 low, high, hash
    cdef Cell* cell
    cdef Cell* last = w.cells + w.cell_mask
    cdef u64[2 * SEEDED] keys
    cdef Cell* cells[SEEDED]
    memset(w.cells, 0, (w.cell_mask + 1) * sizeof(Cell))
    if w.long_used:
        memset(w.long_cells, 0, (w.long_mask + 1) * sizeof(LongCell))
    w.cells_used = w.long_used = w.arena_used = 0
    # All keys, then all cells: so that many wait for memory at a time.
    while end < t.n:
        first = end
        end = first + SEEDED if t.n - first > SEEDED else t.n
        for token in range(first, end):
            place = t.offsets[token]
            size = t.offsets[token + 1] - place
            cells[token - first] = NULL
            p = t.blob + place
            if size > SHORT_PIECE or t.ids[token] == NONE:
                if is_long_token(t, token):
                    hash = hash_long(p, size)
                    fill_long(w, find_long(w, hash, p, size), hash, p, size, &t.ids[token], 1)
                continue
            if readable - place >= 16:
                low = st_load64(p) & key_masks[2 * size]
                high = st_load64(p + 8) & key_masks[2 * size + 1]
            else:
                low = st_load_part(p, size if size < 8 else 8)
                high = st_load_part(p + 8, size - 8) if size > 8 else 0
            high |= <u64>size << 56
            keys[2 * (token - first)] = low
            keys[2 * (token - first) + 1] = high
            cell = home_of(w, low, high)
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


cdef bint grow_cells(Work* w) noexcept nogil:
    """Twice the cells, and all that they hold; False if they may not grow."""
    cdef u64 i, at, count = w.cell_mask + 1
    cdef Cell* grown
    if 2 * count * sizeof(Cell) > most_cached // 2:
        return False
    grown = <Cell*>st_new_block(2 * count * sizeof(Cell), 64)
    if grown == NULL:
        return False
    memset(grown, 0, 2 * count * sizeof(Cell))
    for i in range(count):
        if w.cells[i].high != 0:
            at = st_cell_hash(w.cells[i].low, w.cells[i].high & KEY_MASK) >> (w.cell_shift - 1)
            while grown[at].high != 0:
                at = (at + 1) & (2 * count - 1)
            grown[at] = w.cells[i]
    st_free_block(w.cells)
    w.cells = grown
    w.cell_mask = 2 * count - 1
    w.cell_shift -= 1
    w.cells_limit = 2 * count * 5 // 8
    return True


cdef bint grow_long_cells(Work* w) noexcept nogil:
    """Twice the long cells, and twice the arena."""
    cdef u64 i, at, count = w.long_mask + 1
    cdef LongCell* grown
    cdef u32* arena
    if 2 * (count * sizeof(LongCell) + w.arena_size * sizeof(u32)) > most_cached // 2:
        return False
    arena = <u32*>realloc(w.arena, 2 * w.arena_size * sizeof(u32))
    if arena == NULL:
        return False
    w.arena = arena
    w.arena_size *= 2
    grown = <LongCell*>calloc(2 * count, sizeof(LongCell))
    if grown == NULL:
        return False
    for i in range(count):
        if w.long_cells[i].hash != 0:
            at = (w.long_cells[i].hash >> 32) & (2 * count - 1)
            while grown[at].hash != 0:
                at = (at + 1) & (2 * count - 1)
            grown[at] = w.long_cells[i]
    free(w.long_cells)
    w.long_cells = grown
    w.long_mask = 2 * count - 1
    w.long_limit = 2 * count * 5 // 8
    return True


cdef void make_room(const Tokens* t, Work* w, size_t pieces, size_t words) noexcept nogil:
    """Room in the cache for so many more pieces of each kind and words of the arena.

    It grows up to its limit; then it is wiped.
    """
    if w.cells_used + pieces > w.cells_limit and not grow_cells(w):
        seed_cells(t, w)
    if ((w.long_used + pieces > w.long_limit or w.arena_used + words > w.arena_size)
            and not grow_long_cells(w)):
        seed_cells(t, w)


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
    """Encode p[:n], all there is, by the merge loop alone."""
    cdef const Tokens* t = table.tokens()
    cdef size_t before = w.count, i
    cdef Growing into
    if t.byte_ids != NULL:      # there may be more ids than tokens
        into.items = w.scratch.result
        into.capacity = w.scratch.result_capacity
        into.count = 0
        try:
            merge_stretches(t, &w.merger, p, n, &into)
        finally:
            w.scratch.result = into.items
            w.scratch.result_capacity = into.capacity
        return emit_bytes(t, w, into.items, into.count)
    into.items = w.out
    into.capacity = w.capacity
    into.count = before
    try:
        merge_stretches(t, &w.merger, p, n, &into)
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


cdef int encode_long(TokenTable table, Work* w, const u8* p, size_t n) except -1 nogil:
    """Encode a piece of more than 15 bytes, or let it wait."""
    cdef const Tokens* t = table.tokens()
    cdef LongCell* cell = NULL
    cdef u64 hash
    cdef size_t before = w.count
    cdef u32 token
    if n > LONG_PIECE:
        token = find_token(t, p, n)
        if token != NONE:
            return emit(t, w, &token, 1)
        return encode_rest(table, w, p, n)
    hash = hash_long(p, n)
    cell = find_long(w, hash, p, n)
    if cell.hash != 0:
        reserve(w, cell.count)
        memcpy(w.out + w.count, w.arena + cell.at, cell.count * sizeof(u32))
        w.count += cell.count
    elif n <= MIDDLE_PIECE:
        wait(w, &w.middle_pieces, MIDDLE_PIECE, p, n, hash)
    else:
        encode_rest(table, w, p, n)
        fill_long(w, cell, hash, p, n, w.out + before, w.count - before)
    return 0


cdef inline Cell* find_cell(Work* w, Cell* cell, u64 low, u64 high) noexcept nogil:
    """From its home on, the cell of a piece, or the empty one where it belongs."""
    while not (cell.low == low and (cell.high & KEY_MASK) == high) and cell.high != 0:
        cell += 1
        if cell > w.cells + w.cell_mask:
            cell = w.cells
    return cell


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


cdef void learn_short(Work* w, Cell* home, const u8* key, const u32* ids,
                      u64 count) noexcept nogil:
    cdef u64 low = st_load64(key), high = st_load64(key + 8)
    cdef Cell* cell = find_cell(w, home, low, high)
    cdef u32[2] where
    if cell.high != 0:                  # it was twice among those that waited
        return
    if count <= CELL_IDS:
        fill_cell(w, cell, low, high, ids, count, count)
        return
    where[0] = <u32>w.arena_used
    where[1] = <u32>count
    memcpy(w.arena + w.arena_used, ids, count * sizeof(u32))
    w.arena_used += count
    fill_cell(w, cell, low, high, where, 2, MANY)


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
    if w.gap_count == 0:
        return 0
    make_room(t, w, PENDING, PENDING_ARENA)
    for i in range(w.gap_count):            # so that the cells are there when they are filled
        gap = &w.gaps[i]
        if gap.hash == 0:
            p = w.short_pieces.bytes + 16 * gap.which
            homes[i] = home_of(w, st_load64(p), st_load64(p + 8))
            ST_PREFETCH(homes[i])
        else:
            ST_PREFETCH(&w.long_cells[(gap.hash >> 32) & w.long_mask])
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
        pieces.counts[k] = <u8>to_ids(table, ids, pieces.counts[k])
        total += pieces.counts[k]
        p = pieces.bytes + stride * k
        if gap.hash == 0:
            learn_short(w, homes[i], p, ids, pieces.counts[k])
        else:
            cell = find_long(w, gap.hash, p, pieces.sizes[k])
            if cell.hash == 0:
                fill_long(w, cell, gap.hash, p, pieces.sizes[k], ids, pieces.counts[k])
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


cdef int encode_pieces(TokenTable table, Work* w, const u8* buffer, size_t readable, size_t start,
                       const i64* ends, size_t count) except -1 nogil:
    """Encode the pieces that end at ends[:count], count <= BATCH, the first from `start`.

    New ones wait for `settle`, without which w.out is not complete. buffer[:readable] may be read:
    more than the pieces, so that keys can be loaded 16 bytes at a time.
    """
    cdef Batch b
    cdef size_t i = 0, at = start, end, size, part, count_here
    cdef u64 low, high
    cdef Cell* cell
    cdef u32* out
    cdef i64 close
    if w.gap_count + BATCH > PENDING or w.gap_count >= SETTLE_AT:
        settle(table, w)
    make_room(table.tokens(), w, BATCH, BATCH_ARENA)
    # All keys, then all cells: so that many wait for memory at a time.
    if wide_keys != NULL:
        i = count
        while i >= 8 and <size_t>labs(ends[i - 2]) + 16 > readable:
            i -= 1
        if i >= 8:
            i = wide_keys(buffer, start, ends, i, b.keys, <void**>b.cells, w.cells, w.cell_shift,
                          &w.nothing)
            at = <size_t>ends[i - 1] if i else start
        else:
            i = 0
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
        low &= key_masks[2 * part]
        high = (high & key_masks[2 * part + 1]) | <u64>part << 56
        b.keys[2 * i] = low
        b.keys[2 * i + 1] = high
        b.cells[i] = home_of(w, low, high) if size - 1 < SHORT_PIECE else &w.nothing
        ST_PREFETCH(b.cells[i])
        at = end if close >= 0 else <size_t>(-close)
        i += 1
    reserve(w, at - start)
    out = w.out + w.count
    for i in range(count):
        cell = b.cells[i]
        low = b.keys[2 * i]
        high = b.keys[2 * i + 1]
        if cell.low != low or (cell.high & KEY_MASK) != high:
            cell = find_cell(w, cell, low, high)
            if cell.high == 0:
                w.count = out - w.out
                at = <size_t>labs(ends[i - 1]) if i else start
                encode_odd(table, w, buffer, at, ends[i], &b.keys[2 * i])
                reserve(w, <size_t>(labs(ends[count - 1]) - labs(ends[i])))
                out = w.out + w.count
                continue
        count_here = cell.high >> 60
        if count_here == MANY:
            count_here = cell.ids[1]
            memcpy(out, w.arena + cell.ids[0], count_here * sizeof(u32))
        else:
            memcpy(out, cell.ids, CELL_IDS * sizeof(u32))
        out += count_here
    w.count = out - w.out
    return 0


cdef int encode_odd(TokenTable table, Work* w, const u8* buffer, size_t start, i64 end,
                    const u64* key) except -1 nogil:
    """Encode a piece that has no cell, or let it wait: it is new, long or none at all."""
    cdef size_t size
    if end < 0:                     # characters that no piece covers
        return 0
    size = <size_t>end - start
    if size > SHORT_PIECE:
        return encode_long(table, w, buffer + start, size)
    wait(w, &w.short_pieces, 16, <const u8*>key, 16, 0)
    w.short_pieces.sizes[w.short_pieces.count - 1] = <u8>size
    return 0
