"""The capacity of the pre-token cache: the cache grows up to its limit, then drops idle pre-tokens."""

cdef bint may_grow(const PretokenCells* cache, size_t more) noexcept nogil:
    return table_bytes(cache) + more <= st_load_size(&most_cached)


cdef bint grow_cells(PretokenCells* cache) noexcept nogil:
    """Double the number of cells. Returns False if the limit or the memory does not allow it."""
    cdef u64 count = cache.cell_mask + 1
    return may_grow(cache, count * sizeof(Cell)) and resize_cells(cache, 2 * count)


cdef bint grow_arena(PretokenCells* cache) noexcept nogil:
    return (may_grow(cache, cache.arena_size * sizeof(u32))
            and resize_arena(cache, 2 * cache.arena_size))


cdef inline u64 share_of(size_t kept, size_t limit) noexcept nogil:
    """How many of every 256 kept items may stay if they are to take at most half of the limit."""
    return 256 if 2 * kept <= limit else 128 * limit // kept


cdef void sweep(PretokenCells* cache) noexcept nogil:
    """Drop the idle cells, and random others if too many would stay. Mark the rest as idle."""
    cdef u64 i, n = cache.cell_mask + 1, start = unreached(cache), share
    cdef size_t kept = 0, words = 0
    for i in range(n):
        if cache.cells[i].high != 0 and cache.cells[i].high >> 60 < IDLE:
            kept += 1
            words += words_of(&cache.cells[i])
    share = min(share_of(kept, cache.cells_limit), share_of(words, cache.arena_size))
    for i in range(n):
        if cache.cells[i].high >> 60 >= IDLE or (cache.cells[i].low ^ i) & 255 >= share:
            cache.cells[i].high = 0
    cache.new_flag = IDLE
    close_up(cache, start)


cdef void reserve_cells(const Tokens* t, PretokenCells* cache, size_t pretokens, size_t words) noexcept nogil:
    """Make room in the cache for this many more pre-tokens and words of the arena.

    The cache grows up to its limit; then idle pre-tokens are dropped.
    """
    cdef bint is_full = cache.cells_used + pretokens > cache.cells_limit and not grow_cells(cache)
    cdef bint needs_words = cache.arena_used + words > cache.arena_size and not grow_arena(cache)
    if not is_full and not needs_words:
        return
    sweep(cache)
    if needs_words:
        close_gaps(cache)
    if cache.arena_used + words > cache.arena_size:     # too few gaps, or no memory to close them
        memset(cache.cells, 0, (cache.cell_mask + 1) * sizeof(Cell))
        seed_cells(t, cache)
