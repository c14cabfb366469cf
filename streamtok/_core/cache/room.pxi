"""Room in the pre-token cache: it grows up to its limit, and then forgets what is idle."""

cdef bint grow_cells(PretokenCache* cache) noexcept nogil:
    """Twice the cells, and all that they hold; False if they may not grow."""
    cdef u64 i, home, count = cache.cell_mask + 1, used = 0
    cdef Cell* grown
    cdef size_t most = st_load_size(&most_cached)
    if 2 * count * sizeof(Cell) > most - most // 3:
        return False
    grown = <Cell*>st_new_table(2 * count * sizeof(Cell))
    if grown == NULL:
        return False
    for i in range(count):
        if cache.cells[i].high != 0:
            home = st_hash_key(cache.cells[i].low, cache.cells[i].high & ST_KEY_MASK) >> (cache.cell_shift - 1)
            used += put_cell(grown, 2 * count - 1, home, &cache.cells[i])
    st_free_table(cache.cells)
    cache.cells_used = used
    cache.cells = grown
    cache.cell_mask = 2 * count - 1
    cache.cell_shift -= 1
    cache.cells_limit = 2 * count * 5 // 8
    return True


cdef bint grow_long_cells(PretokenCache* cache) noexcept nogil:
    """Twice the long cells; False if they may not grow."""
    cdef u64 i, count = cache.long_mask + 1, used = 0
    cdef LongCell* grown
    if (2 * count * sizeof(LongCell) + cache.arena_size * sizeof(u32)
            > st_load_size(&most_cached) // 3):
        return False
    grown = <LongCell*>st_new_table(2 * count * sizeof(LongCell))
    if grown == NULL:
        return False
    for i in range(count):
        if cache.long_cells[i].hash != 0:
            used += put_long(grown, 2 * count - 1, &cache.long_cells[i])
    st_free_table(cache.long_cells)
    cache.long_used = used
    cache.long_cells = grown
    cache.long_mask = 2 * count - 1
    cache.long_limit = 2 * count * 5 // 8
    return True


cdef bint grow_arena(PretokenCache* cache) noexcept nogil:
    cdef u32* arena
    if ((cache.long_mask + 1) * sizeof(LongCell) + 2 * cache.arena_size * sizeof(u32)
            > st_load_size(&most_cached) // 3):
        return False
    arena = <u32*>realloc(cache.arena, 2 * cache.arena_size * sizeof(u32))
    if arena == NULL:
        return False
    cache.arena = arena
    cache.arena_size *= 2
    return True


cdef inline u64 share_of(size_t kept, size_t limit) noexcept nogil:
    """Of 256, how many of what would be kept, so that it takes no more than half."""
    return 256 if 2 * kept <= limit else 128 * limit // kept


cdef void sweep_cells(PretokenCache* cache) noexcept nogil:
    """Forget the idle cells; all others are idle from now on."""
    cdef u64 i, home, n = cache.cell_mask + 1, start = 0, share
    cdef size_t kept = 0
    cdef Cell cell
    for i in range(n):
        if cache.cells[i].high == 0:
            start = (i | 1) + 1
        else:
            kept += cache.cells[i].high >> 60 < IDLE
    share = share_of(kept, cache.cells_limit)
    cache.cells_used = 0
    cache.unasked = IDLE
    # Nothing was put beyond a line with an empty cell: from there on all may move towards their homes.
    for i in range(start, start + n):
        cell = cache.cells[i & cache.cell_mask]
        cache.cells[i & cache.cell_mask].high = 0
        if cell.high == 0 or cell.high >> 60 >= IDLE or (cell.low ^ i) & 255 >= share:
            continue
        home = home_of(cache, cell.low, cell.high & ST_KEY_MASK) - cache.cells
        cell.high |= <u64>IDLE << 60
        cache.cells_used += put_cell(cache.cells, cache.cell_mask, home, &cell)


cdef bint sweep_long_cells(PretokenCache* cache) noexcept nogil:
    """`sweep_cells` for long ones, and the arena without what is forgotten; False without
    memory.
    """
    cdef u64 i, n = cache.long_mask + 1, empty = n, share
    cdef size_t kept = 0, words = 0
    cdef LongCell cell
    cdef u64* starts = <u64*>calloc(cache.arena_used // 64 + 1, sizeof(u64))
    if starts == NULL:
        return False
    for i in range(n):
        cell = cache.long_cells[i]
        if cell.hash == 0:
            empty = i
        elif cell.count < IDLE_LONG:
            kept += 1
            words += (cell.size + 3) // 4 + cell.count
    share = min(share_of(kept, cache.long_limit), share_of(words, cache.arena_size))
    for i in range(n):
        cell = cache.long_cells[i]
        if cell.count >= IDLE_LONG or (cell.hash >> 8 ^ i) & 255 >= share:
            cache.long_cells[i].hash = 0
    close_gaps(cache, starts)
    free(starts)
    cache.long_used = 0
    for i in range(empty + 1, empty + n):
        cell = cache.long_cells[i & cache.long_mask]
        cache.long_cells[i & cache.long_mask].hash = 0
        if cell.hash == 0:
            continue
        cell.count |= IDLE_LONG
        cache.long_used += put_long(cache.long_cells, cache.long_mask, &cell)
    return True


cdef void close_gaps(PretokenCache* cache, u64* starts) noexcept nogil:
    """Move what cells own in the arena together, without a second arena.

    Owners are found by threading (Jonkers 1979): for the time being, the first word of what a cell
    owns is in the cell, and the number of the cell is in its place. starts: a bit for each word,
    all 0.
    """
    cdef u64 i, word
    cdef size_t at
    cdef u32 owner, size, used = 0
    cdef u32* from_cell
    for i in range(cache.cell_mask + 1):
        if (cache.cells[i].high >> 60 & MANY) == MANY:
            thread(cache, starts, &cache.cells[i].ids[0], <u32>i | SHORT_OWNER)
    for i in range(cache.long_mask + 1):
        if cache.long_cells[i].hash != 0:
            thread(cache, starts, &cache.long_cells[i].at, <u32>i)
    for i in range(cache.arena_used // 64 + 1):
        word = starts[i]
        while word:
            at = 64 * i + st_lowest(word)
            word &= word - 1
            owner = cache.arena[at]
            if owner & SHORT_OWNER:
                from_cell = &cache.cells[owner & ~<u32>SHORT_OWNER].ids[0]
                size = from_cell[1]
            else:
                from_cell = &cache.long_cells[owner].at
                size = ((cache.long_cells[owner].size + 3) // 4
                        + (cache.long_cells[owner].count & ~<u32>IDLE_LONG))
            cache.arena[at] = from_cell[0]
            from_cell[0] = used
            memmove(cache.arena + used, cache.arena + at, size * sizeof(u32))
            used += size
    cache.arena_used = used


cdef inline void thread(PretokenCache* cache, u64* starts, u32* place, u32 owner) noexcept nogil:
    cdef u32 at = place[0]
    starts[at >> 6] |= <u64>1 << (at & 63)
    place[0] = cache.arena[at]
    cache.arena[at] = owner


cdef void make_room(const Tokens* t, PretokenCache* cache, size_t pretokens, size_t words) noexcept nogil:
    """Room in the cache for so many more pre-tokens of each kind and words of the arena.

    It grows up to its limit; then what is idle is forgotten.
    """
    if cache.cells_used + pretokens > cache.cells_limit and not grow_cells(cache):
        sweep_cells(cache)
    if ((cache.long_used + pretokens > cache.long_limit and not grow_long_cells(cache))
            or (cache.arena_used + words > cache.arena_size and not grow_arena(cache))):
        # The ids of short pre-tokens may be what fills the arena.
        if not sweep_long_cells(cache) or cache.arena_used + words > cache.arena_size:
            memset(cache.cells, 0, (cache.cell_mask + 1) * sizeof(Cell))
            memset(cache.long_cells, 0, (cache.long_mask + 1) * sizeof(LongCell))
            seed_cells(t, cache)
