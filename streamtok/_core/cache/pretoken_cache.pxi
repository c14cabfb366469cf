"""The pre-token cache: pre-tokens and their ids. It starts with all tokens of the vocabulary.

Pre-tokens of up to 15 bytes are in a hash table of 32-byte cells: a 16-byte key and up to four ids.
One that finds its home taken goes to the other cell of that cache line first, then to the next lines.
Longer ones are found by a hash and compared byte by byte. A look-up ends after PROBES cells: what
finds no place up to there is not remembered. Both tables start small and grow to a limit, so memory is
bounded. A full table forgets what was not looked up since it was full last,
tokens included (the second-chance rule of page replacement, Corbató 1968). So text that repeats
itself stays fast, however much new text comes.
"""

cdef extern from "cache/keys.h" nogil:
    const u64 st_key_masks[32]
    const u64 ST_KEY_MASK


cdef enum:
    CELL_IDS = 4            # ids that a cell holds
    LONG_PRETOKEN = 256     # longest pre-token that is remembered
    PROBES = 128            # cells: at the largest load, one of a million pre-tokens finds no place up to there
    MANY = 7                # count of a cell whose ids are in the arena
    IDLE = 8                # flag of a count: nobody has asked for the pre-token since the last sweep
    IDLE_LONG = 0x8000      # the same of a long cell's


cdef struct Cell:           # a short pre-token and its ids, half a cache line
    u64 low                 # bytes 0 .. 7
    u64 high                # bytes 8 .. 14; above them 4 bits of length and 4 of count and IDLE
    u32[CELL_IDS] ids


cdef struct LongCell:       # a pre-token of more than 15 bytes
    u64 hash                # 0: empty
    u32 at                  # of the pre-token's bytes in the arena; the ids follow them
    u16 size
    u16 count               # and IDLE_LONG


cdef struct PretokenCache:
    Cell* cells
    u64 cell_mask
    int cell_shift          # of a hash that gives the number of a cell
    size_t cells_used
    size_t cells_limit
    u64 unasked             # flag of the count of a new cell: before the first sweep it is not worth
                            # the mispredicted branch of the first question
    Cell nothing            # an empty cell, in the place of one that is not found
    LongCell nothing_long
    LongCell* long_cells
    u64 long_mask
    size_t long_used
    size_t long_limit
    u32* arena              # ids of pre-tokens with more than four, and what belongs to long cells
    size_t arena_used
    size_t arena_size


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


cdef inline bint put_long(LongCell* cells, u64 mask, const LongCell* cell) noexcept nogil:
    """`put_cell` of a long cell."""
    cdef u64 at = cell.hash >> 32
    cdef int probes
    for probes in range(PROBES):
        if cells[at & mask].hash == 0:
            cells[at & mask] = cell[0]
            return True
        at += 1
    return False


cdef inline bint is_near(const PretokenCache* cache, const Cell* cell, const Cell* place) noexcept nogil:
    """Whether a cell would be found if it were in that place, all between it and its home being taken."""
    cdef u64 home = home_of(cache, cell.low, cell.high & ST_KEY_MASK) - cache.cells
    return ((place - cache.cells) // 2 - home // 2) & cache.cell_mask // 2 < PROBES // 2


cdef inline u64 ask(Cell* cell) noexcept nogil:
    """The count of a cell that has been found, which is not idle then."""
    cell.high &= ~(<u64>IDLE << 60)
    return cell.high >> 60


cdef inline u32* ids_of_long(const PretokenCache* cache, const LongCell* cell) noexcept nogil:
    return cache.arena + cell.at + (cell.size + 3) // 4


cdef inline size_t ask_long(LongCell* cell) noexcept nogil:
    """`ask` of a long cell."""
    cell.count &= <u16>~<u16>IDLE_LONG
    return cell.count


cdef inline u64 hash_long(const u8* p, size_t n) noexcept nogil:
    """Hash of more than 15 bytes; never 0."""
    return st_hash_bytes(p, n) | 1


cdef enum:
    SMALLEST_CACHE = 1 << 15
    SMALLEST_LONG_CACHE = 1 << 16
    SMALLEST_ARENA = 1 << 20    # uint32s
    SEEDED = 32                 # tokens put into cells at a time
    SHORT_OWNER = 0x80000000    # flag of the number of a cell that is no long one


cdef size_t most_cached = 32 << 20  # bytes of each thread


def cache_limit():
    """int: bytes that a thread may spend on remembering pre-tokens, see `set_cache_limit`."""
    return st_load_size(&most_cached)


def set_cache_limit(size):
    """Bound the memory for remembered pre-tokens, of each thread that encodes with one encoding.

    size: bytes, 32 MiB at first; a third is for pre-tokens of more than 15 bytes. What is
    remembered begins small, with the tokens of the vocabulary (13 MiB for cl100k_base), and doubles
    while it is below the limit. When it is full, pre-tokens that did not come again are forgotten,
    so that memory stays flat however much new text comes. Applies to what grows from now on;
    nothing shrinks. Ids are the same whatever the limit. Raises ValueError if negative.
    """
    if size < 0:
        raise ValueError(f"the limit must not be negative: {size}")
    st_store_size(&most_cached, size)


cdef int cache_open(PretokenCache* cache, const Tokens* t) except -1:
    """Memory for `cache`, which must be all zero, and the tokens in it."""
    cdef u64 cells = SMALLEST_CACHE, long_cells = SMALLEST_LONG_CACHE
    cdef size_t many, words
    while cells < <u64>t.n * 5 // 2:
        cells *= 2
    many = long_tokens(t, &words)
    while long_cells < many * 5 // 2:
        long_cells *= 2
    cache.cells = <Cell*>st_new_table(cells * sizeof(Cell))
    cache.long_cells = <LongCell*>st_new_table(long_cells * sizeof(LongCell))
    cache.arena_size = SMALLEST_ARENA + words
    cache.arena = <u32*>st_new_growable(cache.arena_size * sizeof(u32))
    if cache.cells == NULL or cache.long_cells == NULL or cache.arena == NULL:
        raise MemoryError("no memory to remember pre-tokens")
    cache.cell_mask = cells - 1
    cache.cell_shift = st_hash_shift(cells)
    cache.cells_limit = cells * 5 // 8
    cache.long_mask = long_cells - 1
    cache.long_limit = long_cells * 5 // 8
    with nogil:
        seed_cells(t, cache)
    return 0


cdef void cache_close(PretokenCache* cache) noexcept:
    st_free_table(cache.cells)
    st_free_table(cache.long_cells)
    free(cache.arena)


cdef size_t cached_bytes(const PretokenCache* cache) noexcept nogil:
    """The memory for remembered pre-tokens."""
    return ((cache.cell_mask + 1) * sizeof(Cell) + (cache.long_mask + 1) * sizeof(LongCell)
            + cache.arena_size * sizeof(u32))


cdef inline void fill_cell(PretokenCache* cache, Cell* cell, u64 low, u64 high, const u32* ids, size_t filled,
                           u64 count) noexcept nogil:
    """count: of the ids or MANY, and whether the cell is idle."""
    cdef size_t i
    cell.low = low
    cell.high = high | (count << 60)
    for i in range(filled):
        cell.ids[i] = ids[i]
    cache.cells_used += 1


cdef LongCell* find_long(PretokenCache* cache, u64 hash, const u8* p, size_t n) noexcept nogil:
    """The cell of a pre-token of more than 15 bytes, or the empty one where it belongs; `nothing_long` if
    there is none.
    """
    cdef u64 at = hash >> 32
    cdef LongCell* cell
    cdef int probes
    for probes in range(PROBES):
        cell = &cache.long_cells[at & cache.long_mask]
        if cell.hash == 0 or (cell.hash == hash and cell.size == n
                              and memcmp(cache.arena + cell.at, p, n) == 0):
            return cell
        at += 1
    return &cache.nothing_long


cdef void fill_long(PretokenCache* cache, LongCell* cell, u64 hash, const u8* p, size_t n, const u32* ids,
                    size_t count, bint is_idle) noexcept nogil:
    """Remember a pre-token in the cell that `find_long` gave."""
    if cell == &cache.nothing_long:
        return
    cell.hash = hash
    cell.at = <u32>cache.arena_used
    cell.size = <u16>n
    cell.count = <u16>(count | IDLE_LONG if is_idle else count)
    memcpy(cache.arena + cache.arena_used, p, n)
    memcpy(ids_of_long(cache, cell), ids, count * sizeof(u32))
    cache.arena_used += (n + 3) // 4 + count
    cache.long_used += 1


cdef inline bint is_long_token(const Tokens* t, u32 token) noexcept nogil:
    cdef u32 size = t.offsets[token + 1] - t.offsets[token]
    return SHORT_PRETOKEN < size <= LONG_PRETOKEN and t.ids[token] != NONE


cdef size_t long_tokens(const Tokens* t, size_t* words) noexcept nogil:
    """How many tokens are known as long pre-tokens, and the words of the arena that they take."""
    cdef u32 token
    cdef size_t many = 0
    words[0] = 0
    for token in range(t.n):
        if is_long_token(t, token):
            many += 1
            words[0] += 1 + (t.offsets[token + 1] - t.offsets[token] + 3) // 4
    return many


cdef void seed_cells(const Tokens* t, PretokenCache* cache) noexcept nogil:
    """Every token of up to LONG_PRETOKEN bytes is a pre-token of one id. All cells must be empty."""
    cdef u32 token, first, end = 0, place, size, readable = t.offsets[t.n]
    cdef const u8* p
    cdef u64 low, high, hash
    cdef Cell[SEEDED] filled
    cdef Cell* homes[SEEDED]
    cache.cells_used = cache.long_used = cache.arena_used = cache.unasked = 0
    # All keys, then all cells: so that many wait for memory at a time.
    while end < t.n:
        first = end
        end = first + SEEDED if t.n - first > SEEDED else t.n
        for token in range(first, end):
            place = t.offsets[token]
            size = t.offsets[token + 1] - place
            homes[token - first] = NULL
            p = t.blob + place
            if size > SHORT_PRETOKEN or t.ids[token] == NONE:
                if is_long_token(t, token):
                    hash = hash_long(p, size)
                    fill_long(cache, find_long(cache, hash, p, size), hash, p, size, &t.ids[token], 1,
                              False)
                continue
            if readable - place >= 16:
                low = st_load64(p) & st_key_masks[2 * size]
                high = st_load64(p + 8) & st_key_masks[2 * size + 1]
            else:
                low = st_load_part(p, size if size < 8 else 8)
                high = st_load_part(p + 8, size - 8) if size > 8 else 0
            high |= <u64>size << 56
            homes[token - first] = home_of(cache, low, high)
            ST_PREFETCH(homes[token - first])
            filled[token - first].low = low
            filled[token - first].high = high | <u64>1 << 60
            filled[token - first].ids[0] = t.ids[token]
        for token in range(first, end):
            if homes[token - first] != NULL:
                cache.cells_used += put_cell(cache.cells, cache.cell_mask, homes[token - first] - cache.cells,
                                             &filled[token - first])


cdef void learn_short(PretokenCache* cache, Cell* home, const u8* key, const u32* ids,
                      u64 count) noexcept nogil:
    cdef u64 low = st_load64(key), high = st_load64(key + 8)
    cdef Cell* cell = find_cell(cache, home, low, high)
    cdef u32[2] where
    if cell.high != 0 or cell == &cache.nothing:    # it was twice among those that waited
        return
    if count <= CELL_IDS:
        fill_cell(cache, cell, low, high, ids, count, count | cache.unasked)
        return
    where[0] = <u32>cache.arena_used
    where[1] = <u32>count
    memcpy(cache.arena + cache.arena_used, ids, count * sizeof(u32))
    cache.arena_used += count
    fill_cell(cache, cell, low, high, where, 2, MANY | cache.unasked)
