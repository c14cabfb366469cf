"""Room in the pre-token cache: it grows up to its limit, and then forgets what is idle."""

cdef bint grow_cells(PretokenCache* cache) noexcept nogil:
    """Twice the cells, and all that they hold; False if they may not grow."""
    cdef u64 i, home, count = cache.cell_mask + 1, used = 0
    cdef Cell* grown
    if 2 * count * sizeof(Cell) + cache.arena_size * sizeof(u32) > st_load_size(&most_cached):
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
    cache.cells_limit = 2 * count * 11 // 16
    return True


cdef bint grow_arena(PretokenCache* cache) noexcept nogil:
    cdef u32* arena
    if cached_bytes(cache) + cache.arena_size * sizeof(u32) > st_load_size(&most_cached):
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


cdef inline size_t words_of(const Cell* cell) noexcept nogil:
    """The words of the arena that belong to a cell."""
    return byte_words(cell.high) + cell.ids[1] if (cell.high >> 60 & MANY) == MANY else 0


cdef void sweep(PretokenCache* cache) noexcept nogil:
    """Forget the idle cells; all others are idle from now on."""
    cdef u64 i, home, n = cache.cell_mask + 1, start = 0, share
    cdef size_t kept = 0, words = 0
    cdef Cell cell
    for i in range(n):
        if cache.cells[i].high == 0:
            start = (i | 1) + 1
        elif cache.cells[i].high >> 60 < IDLE:
            kept += 1
            words += words_of(&cache.cells[i])
    share = min(share_of(kept, cache.cells_limit), share_of(words, cache.arena_size))
    for i in range(n):
        if cache.cells[i].high >> 60 >= IDLE or (cache.cells[i].low ^ i) & 255 >= share:
            cache.cells[i].high = 0
    cache.cells_used = 0
    cache.unasked = IDLE
    # Nothing was put beyond a line with an empty cell: from there on all may move towards their homes.
    for i in range(start, start + n):
        cell = cache.cells[i & cache.cell_mask]
        cache.cells[i & cache.cell_mask].high = 0
        if cell.high == 0:
            continue
        home = home_of(cache, cell.low, cell.high & ST_KEY_MASK) - cache.cells
        cell.high |= <u64>IDLE << 60
        cache.cells_used += put_cell(cache.cells, cache.cell_mask, home, &cell)


cdef void close_gaps(PretokenCache* cache) noexcept nogil:
    """Move what cells own together, into another arena; without memory for one, leave it as it is."""
    cdef u32* arena = <u32*>st_new_growable(cache.arena_size * sizeof(u32))
    cdef size_t used = 0, size
    cdef u64 i
    cdef Cell* cell
    if arena == NULL:
        return
    for i in range(cache.cell_mask + 1):
        cell = &cache.cells[i]
        size = words_of(cell)
        if size:
            memcpy(arena + used, cache.arena + cell.ids[0], size * sizeof(u32))
            cell.ids[0] = <u32>used
            used += size
    free(cache.arena)
    cache.arena = arena
    cache.arena_used = used


cdef void make_room(const Tokens* t, PretokenCache* cache, size_t pretokens, size_t words) noexcept nogil:
    """Room in the cache for so many more pre-tokens and words of the arena.

    It grows up to its limit; then what is idle is forgotten.
    """
    cdef bint is_full = cache.cells_used + pretokens > cache.cells_limit and not grow_cells(cache)
    cdef bint needs_words = cache.arena_used + words > cache.arena_size and not grow_arena(cache)
    if not is_full and not needs_words:
        return
    sweep(cache)
    if needs_words:
        close_gaps(cache)
    if cache.arena_used + words > cache.arena_size:     # there was no memory to close the gaps, or few
        memset(cache.cells, 0, (cache.cell_mask + 1) * sizeof(Cell))
        seed_cells(t, cache)
