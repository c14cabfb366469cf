"""The pre-token cache: pre-tokens and their ids. It starts with all tokens of the vocabulary.

Pre-tokens of up to 15 bytes are in a hash table of 32-byte cells: a 16-byte key and up to four ids.
One that finds its home taken goes to the other cell of that cache line first, then to the next lines.
Longer ones are there, too: their key is a hash and their size, and their bytes and ids are in an
arena. A look-up ends after PROBES cells: what finds no place up to there is not remembered. The table
starts small and grows to a limit, so memory is bounded. A full table forgets what was not looked up
since it was full last, tokens included (the second-chance rule of page replacement, Corbató 1968). So
text that repeats itself stays fast, however much new text comes.
"""

cdef extern from "cache/keys.h" nogil:
    const u64 st_key_masks[32]
    const u64 ST_KEY_MASK


cdef inline Cell* home_of(const PretokenCache* cache, u64 low, u64 high) noexcept nogil:
    return &cache.cells[st_hash_key(low, high) >> cache.cell_shift]


cdef inline u64 next_place(u64 home, u64 place, u64 mask) noexcept nogil:
    """Where a pre-token may be that is not in that place: in the other cell of the cache line of its
    home, which is there already, then in the lines behind.
    """
    if place == home:
        return home ^ 1
    return ((home | 1 if place == home ^ 1 else place) + 1) & mask


cdef inline Cell* find_cell(PretokenCache* cache, Cell* cell, u64 low, u64 high) noexcept nogil:
    """From its home on, the cell of a pre-token, or the empty one where it belongs; `nothing` if there
    is none.
    """
    cdef u64 home = cell - cache.cells, place = home
    cdef int probes = 1
    while cell.high != 0 and not (cell.low == low and (cell.high & ST_KEY_MASK) == high):
        if probes == PROBES:
            return &cache.nothing
        probes += 1
        place = next_place(home, place, cache.cell_mask)
        cell = cache.cells + place
    return cell


cdef inline bint put_cell(Cell* cells, u64 mask, u64 home, const Cell* cell) noexcept nogil:
    """Copy a cell to the first empty one from its home on. False: there is none."""
    cdef u64 at = home
    cdef int probes = 1
    while cells[at].high != 0:
        if probes == PROBES:
            return False
        probes += 1
        at = next_place(home, at, mask)
    cells[at] = cell[0]
    return True


cdef inline bint is_near(const PretokenCache* cache, const Cell* cell, const Cell* place) noexcept nogil:
    """Whether a cell would be found if it were in that place, all between it and its home being taken."""
    cdef u64 home = home_of(cache, cell.low, cell.high & ST_KEY_MASK) - cache.cells
    return ((place - cache.cells) // 2 - home // 2) & cache.cell_mask // 2 < PROBES // 2


cdef inline size_t byte_words(u64 high) noexcept nogil:
    """Words of the arena that the bytes of this cell's pre-token take: none of a short one's."""
    return 0 if high >> 56 & 15 else ((high & 0xFFFF) + 3) // 4


cdef inline u64 ask(Cell* cell) noexcept nogil:
    """The count of a cell that has been found, which is not idle then."""
    cell.high &= ~(<u64>IDLE << 60)
    return cell.high >> 60


cdef inline bint is_other(const PretokenCache* cache, const Cell* cell, const u8* p) noexcept nogil:
    """Whether a cell with the key of p is that of another pre-token, a long one with the same hash."""
    return (byte_words(cell.high) != 0
            and memcmp(cache.arena + cell.ids[0], p, cell.high & 0xFFFF) != 0)


cdef enum:
    SMALLEST_CACHE = 1 << 15
    SMALLEST_ARENA = 1 << 20    # uint32s
    SEEDED = 32                 # tokens put into cells at a time


cdef size_t most_cached = 32 << 20  # bytes of each thread


def cache_limit():
    """int: bytes that a thread may spend on remembering pre-tokens, see `set_cache_limit`."""
    return st_load_size(&most_cached)


def set_cache_limit(size):
    """Bound the memory for remembered pre-tokens, of each thread that encodes with one encoding.

    size: bytes, 32 MiB at first. What is remembered begins small, with the tokens of the vocabulary
    (12 MiB for cl100k_base), and doubles while it is below the limit. When it is full, pre-tokens that
    did not come again are forgotten, so that memory stays flat however much new text comes. Applies
    to what grows from now on; nothing shrinks. Ids are the same whatever the limit. Raises
    ValueError if negative.
    """
    if size < 0:
        raise ValueError(f"the limit must not be negative: {size}")
    st_store_size(&most_cached, size)


cdef int cache_open(PretokenCache* cache, const Tokens* t) except -1:
    """Memory for `cache`, which must be all zero, and the tokens in it."""
    cdef u64 cells = SMALLEST_CACHE
    while cells < <u64>t.n * 5 // 2:
        cells *= 2
    cache.cells = <Cell*>st_new_table(cells * sizeof(Cell))
    cache.arena_size = SMALLEST_ARENA + long_token_words(t)
    cache.arena = <u32*>st_new_growable(cache.arena_size * sizeof(u32))
    if cache.cells == NULL or cache.arena == NULL:
        raise MemoryError("no memory to remember pre-tokens")
    cache.cell_mask = cells - 1
    cache.cell_shift = st_hash_shift(cells)
    cache.cells_limit = cells * 11 // 16
    with nogil:
        seed_cells(t, cache)
    return 0


cdef void cache_close(PretokenCache* cache) noexcept:
    st_free_table(cache.cells)
    free(cache.arena)


cdef size_t cached_bytes(const PretokenCache* cache) noexcept nogil:
    """The memory for remembered pre-tokens."""
    return (cache.cell_mask + 1) * sizeof(Cell) + cache.arena_size * sizeof(u32)


cdef inline void give_words(PretokenCache* cache, Cell* cell, const u8* p, const u32* ids,
                            size_t count) noexcept nogil:
    """Put the ids of a cell, which has its key, into the arena, behind the bytes p of a long pre-token."""
    cdef size_t words = byte_words(cell.high)
    cell.ids[0] = <u32>cache.arena_used
    cell.ids[1] = <u32>count
    if words:
        memcpy(cache.arena + cache.arena_used, p, cell.high & 0xFFFF)
    memcpy(cache.arena + cache.arena_used + words, ids, count * sizeof(u32))
    cache.arena_used += words + count


cdef void learn(PretokenCache* cache, Cell* home, u64 low, u64 high, const u8* p, const u32* ids,
                u64 count) noexcept nogil:
    """Remember the pre-token p with this key and home, if it is not there and finds a place."""
    cdef Cell* cell = find_cell(cache, home, low, high)
    if cell.high != 0 or cell == &cache.nothing:
        return
    cell.low = low
    cell.high = high
    cache.cells_used += 1
    if count <= CELL_IDS and byte_words(high) == 0:
        memcpy(cell.ids, ids, count * sizeof(u32))
        cell.high |= (count | cache.unasked) << 60
        return
    give_words(cache, cell, p, ids, count)
    cell.high |= (MANY | cache.unasked) << 60


cdef inline bint is_long_token(const Tokens* t, u32 token) noexcept nogil:
    cdef u32 size = t.offsets[token + 1] - t.offsets[token]
    return SHORT_PRETOKEN < size <= LONG_PRETOKEN and t.ids[token] != NONE


cdef size_t long_token_words(const Tokens* t) noexcept nogil:
    """The words of the arena for the tokens that are known as long pre-tokens."""
    cdef u32 token
    cdef size_t words = 0
    for token in range(t.n):
        if is_long_token(t, token):
            words += 1 + (token_size(t, token) + 3) // 4
    return words


cdef void seed_cells(const Tokens* t, PretokenCache* cache) noexcept nogil:
    """Every token of up to LONG_PRETOKEN bytes is a pre-token of one id. All cells must be empty."""
    cdef u32 token, first, end = 0, place, size, readable = t.offsets[t.n]
    cdef const u8* p
    cdef u64 low, high
    cdef Cell* cell
    cdef Cell[SEEDED] filled
    cdef Cell* homes[SEEDED]
    cache.cells_used = cache.arena_used = cache.unasked = 0
    if t.model != NULL:             # its pre-tokens are no tokens of the table
        return
    # All keys, then all cells: so that many wait for memory at a time.
    while end < t.n:
        first = end
        end = first + SEEDED if t.n - first > SEEDED else t.n
        for token in range(first, end):
            place = t.offsets[token]
            size = t.offsets[token + 1] - place
            homes[token - first] = NULL
            p = t.blob + place
            cell = &filled[token - first]
            if size > SHORT_PRETOKEN:
                if not is_long_token(t, token):
                    continue
                cell.low = st_hash_bytes(p, size)
                cell.high = size
                give_words(cache, cell, p, &t.ids[token], 1)
                homes[token - first] = home_of(cache, cell.low, cell.high)
                cell.high |= <u64>MANY << 60
            elif t.ids[token] != NONE:
                if readable - place >= 16:
                    low = st_load64(p) & st_key_masks[2 * size]
                    high = st_load64(p + 8) & st_key_masks[2 * size + 1]
                else:
                    low = st_load_part(p, size if size < 8 else 8)
                    high = st_load_part(p + 8, size - 8) if size > 8 else 0
                high |= <u64>size << 56
                homes[token - first] = home_of(cache, low, high)
                cell.low = low
                cell.high = high | <u64>1 << 60
                cell.ids[0] = t.ids[token]
            ST_PREFETCH(homes[token - first])
        for token in range(first, end):
            if homes[token - first] != NULL:
                cache.cells_used += put_cell(cache.cells, cache.cell_mask, homes[token - first] - cache.cells,
                                             &filled[token - first])
