"""The table of pre-tokens with a few numbers for each: its ids when encoding, its count when training.

It is a hash table of 32-byte cells with open addressing. A cell has a 16-byte key and up to four numbers.
The key of a pre-token of up to 15 bytes is its bytes and size. The key of a longer one is its hash and
size; its bytes are in an arena, followed by its numbers. If a short pre-token has more than four numbers,
these are in the arena, too. If the home cell is taken, the other cell of that cache line comes next, then
the cells of the next lines.

`cache/pretoken_cache.pxi` and `training/pretoken_counts.pxi` use it, each in its own unit.
"""

cdef extern from "cache/keys.h" nogil:
    const u64 st_key_masks[32]
    const u64 ST_KEY_MASK


cdef struct Lookup:             # pre-tokens that are looked up together
    u64[2 * BATCH] keys
    Cell* cells[BATCH]          # the home of each; an empty cell if it is too long to be cached, or not a
                                # pre-token
    u64[BIT_WORDS] not_short    # one bit each: more than 15 bytes, or not a pre-token


cdef bint open_table(PretokenCells* t, u64 cells, size_t words) noexcept nogil:
    """Allocate the memory of an empty table, whose fields must all be zero. Returns False if memory is
    missing.
    """
    t.cells = <Cell*>st_new_table(cells * sizeof(Cell))
    t.arena = <u32*>st_new_growable(words * sizeof(u32))
    t.arena_size = words
    set_cells(t, cells)
    return t.cells != NULL and t.arena != NULL


cdef void close_table(PretokenCells* t) noexcept:
    st_free_table(t.cells)
    free(t.arena)


cdef inline void set_cells(PretokenCells* t, u64 cells) noexcept nogil:
    t.cell_mask = cells - 1
    t.cell_shift = st_hash_shift(cells)
    t.cells_limit = most_used(cells)


cdef inline u64 most_used(u64 cells) noexcept nogil:
    """How many cells of a table of this size may be taken."""
    return cells * 5 // 8


cdef size_t table_bytes(const PretokenCells* t) noexcept nogil:
    """The size of the table in memory, in bytes."""
    return (t.cell_mask + 1) * sizeof(Cell) + t.arena_size * sizeof(u32)


cdef inline void make_key(const u8* p, size_t size, size_t readable, u64* key) noexcept nogil:
    """The key of p[:size]; p[:readable] may be read."""
    if size > SHORT_PRETOKEN:
        key[0] = st_hash_bytes(p, size)
        key[1] = size
        return
    if readable >= 16:
        key[0] = st_load64(p) & st_key_masks[2 * size]
        key[1] = st_load64(p + 8) & st_key_masks[2 * size + 1]
    else:
        key[0] = st_load_part(p, size if size < 8 else 8)
        key[1] = st_load_part(p + 8, size - 8) if size > 8 else 0
    key[1] |= <u64>size << 56


cdef inline Cell* home_of(const PretokenCells* t, u64 low, u64 high) noexcept nogil:
    return &t.cells[st_hash_key(low, high) >> t.cell_shift]


cdef inline u64 probe_at(u64 home, u64 step, u64 mask) noexcept nogil:
    """The cell to try at a step: first the home, then the other cell of its cache line, then the cells of
    the next lines.
    """
    return (((home & ~<u64>1) + step) ^ (home & 1)) & mask


cdef inline bint is_long(u64 high) noexcept nogil:
    return high >> 56 & 15 == 0


cdef inline size_t byte_words(u64 high) noexcept nogil:
    """The number of arena words for the bytes of this cell's pre-token; 0 if it is short."""
    return (<size_t><u32>high + 3) // 4 if is_long(high) else 0


cdef inline u32* owned(const PretokenCells* t, const Cell* cell) noexcept nogil:
    """A cell's data in the arena: the bytes of a long pre-token, then its numbers."""
    cdef u64 start
    memcpy(&start, cell.numbers, sizeof(u64))
    return t.arena + start


cdef inline u32* numbers_of(const PretokenCells* t, Cell* cell) noexcept nogil:
    if cell.high >> 60 & IN_ARENA != IN_ARENA:
        return cell.numbers
    return owned(t, cell) + byte_words(cell.high)


cdef inline size_t words_of(const Cell* cell) noexcept nogil:
    """The number of arena words that belong to a cell."""
    return byte_words(cell.high) + cell.numbers[2] if cell.high >> 60 & IN_ARENA == IN_ARENA else 0


cdef inline Cell* find_cell(PretokenCells* t, Cell* cell, u64 low, u64 high, const u8* p) noexcept nogil:
    """Search for a pre-token from `cell`, its home, on. Returns its cell, or else the empty cell where it
    belongs, or `nothing` if neither is within reach. p: its bytes, read only if it is long.
    """
    cdef u64 home = cell - t.cells, step = 0
    while cell.high != 0 and not (cell.low == low and (cell.high & ST_KEY_MASK) == high
                                  and (not is_long(high) or memcmp(owned(t, cell), p, high) == 0)):
        step += 1
        if step == t.probes:
            return &t.nothing
        cell = t.cells + probe_at(home, step, t.cell_mask)
    return cell


cdef inline bint put_cell(const PretokenCells* t, Cell* cells, u64 mask, u64 home, const Cell* cell) noexcept nogil:
    """Copy a cell to the first empty one from its home on. Returns False if there is none within reach."""
    cdef u64 at = home, step = 0
    while cells[at].high != 0:
        step += 1
        if step == t.probes:
            return False
        at = probe_at(home, step, mask)
    cells[at] = cell[0]
    return True


cdef inline void fill_cell(PretokenCells* t, Cell* cell, u64 low, u64 high, const u8* p, const u32* numbers,
                           u64 count) noexcept nogil:
    """Fill a cell with the pre-token p, which has this key."""
    cdef size_t words = byte_words(high)
    cdef u64 start = t.arena_used
    t.cells_used += 1
    cell.low = low
    if count <= CELL_NUMBERS and words == 0:
        memcpy(cell.numbers, numbers, count * sizeof(u32))
        cell.high = high | (count | t.new_flag) << 60
        return
    cell.high = high | (IN_ARENA | t.new_flag) << 60
    memcpy(cell.numbers, &start, sizeof(u64))
    cell.numbers[2] = <u32>count
    if words:
        memcpy(t.arena + start, p, high)
    memcpy(t.arena + start + words, numbers, count * sizeof(u32))
    t.arena_used += words + count


cdef void learn(PretokenCells* t, Cell* home, u64 low, u64 high, const u8* p, const u32* numbers,
                u64 count) noexcept nogil:
    """Add the pre-token p with this key and home, unless it is already in the table or no slot is within
    reach.
    """
    cdef Cell* cell = find_cell(t, home, low, high, p)
    if cell.high == 0 and cell != &t.nothing:
        fill_cell(t, cell, low, high, p, numbers, count)


cdef void find_homes(PretokenCells* t, Lookup* b, const u8* buffer, size_t readable, size_t start,
                     const i64* ends, size_t count, size_t longest) noexcept nogil:
    """Find keys and home cells of the pre-tokens that end at ends[:count], count <= BATCH.

    longest: a size in bytes; longer pre-tokens get no cell. buffer[:readable] may be read, even past the
    last pre-token, so that keys can be loaded 16 bytes at a time. All cells are prefetched first, then the
    bytes of long pre-tokens, so that many memory accesses overlap.
    """
    cdef size_t which[BATCH]
    cdef size_t i = count, k, at, size, found = 0
    cdef u64 bits
    while i > 0 and (<size_t>llabs(ends[i - 2]) if i > 1 else start) + 16 > readable:
        i -= 1
    i = strategy.keys(buffer, start, ends, i, b.keys, <void**>b.cells, b.not_short, t.cells, t.cell_shift,
                      &t.nothing)
    at = <size_t>ends[i - 1] if i else start
    for k in range((i + 63) // 64, <size_t>BIT_WORDS):
        b.not_short[k] = 0
    while i < count:
        size = <size_t>ends[i] - at if ends[i] >= 0 else 0
        make_key(buffer + at, size if size < SHORT_PRETOKEN else SHORT_PRETOKEN, readable - at, &b.keys[2 * i])
        b.cells[i] = (home_of(t, b.keys[2 * i], b.keys[2 * i + 1]) if size - 1 < SHORT_PRETOKEN
                      else &t.nothing)
        ST_PREFETCH(b.cells[i])
        b.not_short[i >> 6] |= <u64>(size - 1 >= SHORT_PRETOKEN) << (i & 63)
        at = <size_t>llabs(ends[i])
        i += 1
    for k in range((count + 63) // 64):
        bits = b.not_short[k]
        while bits:
            i = 64 * k + <size_t>st_lowest(bits)
            bits &= bits - 1
            at = <size_t>llabs(ends[i - 1]) if i else start
            size = <size_t>ends[i] - at
            if ends[i] < 0 or size - SHORT_PRETOKEN - 1 >= longest - SHORT_PRETOKEN:
                continue                    # not a pre-token, or too long
            make_key(buffer + at, size, size, &b.keys[2 * i])
            b.cells[i] = home_of(t, b.keys[2 * i], size)
            ST_PREFETCH(b.cells[i])
            which[found] = i
            found += 1
    for k in range(found):
        i = which[k]
        if b.cells[i].low == b.keys[2 * i]:
            ST_PREFETCH(owned(t, b.cells[i]))


cdef bint resize_cells(PretokenCells* t, u64 count) noexcept nogil:
    """Move all pre-tokens to a table of `count` cells. Returns False if memory is missing."""
    cdef Cell* cells = <Cell*>st_new_table(count * sizeof(Cell))
    cdef Cell* old = t.cells
    cdef u64 i, home, n = t.cell_mask + 1
    if cells == NULL:
        return False
    set_cells(t, count)
    t.cells = cells
    t.cells_used = 0
    for i in range(n):
        if old[i].high != 0:
            home = home_of(t, old[i].low, old[i].high & ST_KEY_MASK) - cells
            t.cells_used += put_cell(t, cells, t.cell_mask, home, &old[i])
    st_free_table(old)
    return True


cdef bint resize_arena(PretokenCells* t, size_t words) noexcept nogil:
    cdef u32* arena = <u32*>realloc(t.arena, words * sizeof(u32))
    if arena == NULL:
        return False
    t.arena = arena
    t.arena_size = words
    return True


cdef u64 unreached(const PretokenCells* t) noexcept nogil:
    """The first cell after a cache line with an empty cell: no search goes past that line."""
    cdef u64 i = 0
    while t.cells[i].high != 0:
        i += 1
    return (i | 1) + 1


cdef void close_up(PretokenCells* t, u64 start) noexcept nogil:
    """Move the remaining cells to where look-ups find them, after some cells have been emptied.

    Both cells of a cache line are taken out before either is put back: each may be the other's next slot,
    and a look-up stops at the first empty cell.

    start: where to begin, which is the result of `unreached` before cells were emptied. Adds `new_flag` to
    the counts.
    """
    cdef u64 i, home
    cdef int k
    cdef Cell cell[2]
    t.cells_used = 0
    for i in range(start, start + t.cell_mask + 1, 2):
        memcpy(cell, t.cells + (i & t.cell_mask), sizeof(cell))
        for k in range(2):
            t.cells[(i + k) & t.cell_mask].high = 0
        for k in range(2):
            if cell[k].high != 0:
                home = home_of(t, cell[k].low, cell[k].high & ST_KEY_MASK) - t.cells
                cell[k].high |= t.new_flag << 60
                t.cells_used += put_cell(t, t.cells, t.cell_mask, home, &cell[k])


cdef void close_gaps(PretokenCells* t) noexcept nogil:
    """Move the cells' data into a new arena, without gaps. Does nothing if there is no memory for one."""
    cdef u32* arena = <u32*>st_new_growable(t.arena_size * sizeof(u32))
    cdef size_t size
    cdef u64 i, used = 0
    if arena == NULL:
        return
    for i in range(t.cell_mask + 1):
        size = words_of(&t.cells[i])
        if size:
            memcpy(arena + used, owned(t, &t.cells[i]), size * sizeof(u32))
            memcpy(t.cells[i].numbers, &used, sizeof(u64))
            used += size
    free(t.arena)
    t.arena = arena
    t.arena_used = used
