"""What is remembered of pieces: a piece and its ids, of all tokens at first, then of what was merged.

Pieces of up to 15 bytes are in a hash table of cells that hold the piece as a 16-byte key and up to
four ids in 32 bytes. Longer ones are found by a hash and compared byte by byte. Both begin small and
grow to a limit, so memory is bounded. Where they are full, what nobody has asked for since they
were full before is forgotten, tokens too (the second-chance rule of page replacement, Corbató 1968):
text that repeats itself goes on at full speed, however much new text comes.
"""

cdef extern from "keys.h" nogil:
    u64 st_cell_hash(u64 low, u64 high) noexcept
    const u64 st_key_masks[32]
    const u64 ST_KEY_MASK


cdef enum:
    CELL_IDS = 4            # ids that a cell holds
    LONG_PIECE = 256        # longest piece that is remembered
    MANY = 7                # count of a cell whose ids are in the arena
    IDLE = 8                # flag of a count: nobody has asked for the piece since the last sweep
    IDLE_LONG = 0x8000      # the same of a long cell's


cdef struct Cell:           # a short piece and its ids, half a cache line
    u64 low                 # bytes 0 .. 7
    u64 high                # bytes 8 .. 14; above them 4 bits of length and 4 of count and IDLE
    u32[CELL_IDS] ids


cdef struct LongCell:       # a piece of more than 15 bytes
    u64 hash                # 0: empty
    u32 at                  # of the piece's bytes in the arena; the ids follow them
    u16 size
    u16 count               # and IDLE_LONG


cdef struct Known:
    Cell* cells
    u64 cell_mask
    int cell_shift          # of a hash that gives the number of a cell
    size_t cells_used
    size_t cells_limit
    u64 unasked             # flag of the count of a new cell: before the first sweep it is not worth
                            # the mispredicted branch of the first question
    Cell nothing            # an empty cell
    LongCell* long_cells
    u64 long_mask
    size_t long_used
    size_t long_limit
    u32* arena              # ids of pieces with more than four, and what belongs to long cells
    size_t arena_used
    size_t arena_size


cdef inline Cell* home_of(Known* known, u64 low, u64 high) noexcept nogil:
    return &known.cells[st_cell_hash(low, high) >> known.cell_shift]


cdef inline Cell* find_cell(Known* known, Cell* cell, u64 low, u64 high) noexcept nogil:
    """From its home on, the cell of a piece, or the empty one where it belongs."""
    while not (cell.low == low and (cell.high & ST_KEY_MASK) == high) and cell.high != 0:
        cell += 1
        if cell > known.cells + known.cell_mask:
            cell = known.cells
    return cell


cdef inline u64 ask(Cell* cell) noexcept nogil:
    """The count of a cell that has been found, which is not idle then."""
    cell.high &= ~(<u64>IDLE << 60)
    return cell.high >> 60


cdef inline u32* ids_of_long(const Known* known, const LongCell* cell) noexcept nogil:
    return known.arena + cell.at + (cell.size + 3) // 4


cdef inline size_t ask_long(LongCell* cell) noexcept nogil:
    """`ask` of a long cell."""
    cell.count &= <u16>~<u16>IDLE_LONG
    return cell.count


cdef inline u64 hash_long(const u8* p, size_t n) noexcept nogil:
    """Hash of more than 15 bytes; never 0."""
    cdef u64 h = st_mix(st_load64(p) ^ n, st_load64(p + n - 8) ^ <u64>0xD6E8FEB86659FD93)
    cdef size_t i = 8
    while i + 8 < n:
        h = st_mix(h ^ st_load64(p + i), <u64>0x9E3779B97F4A7C15)
        i += 8
    return h | 1


cdef enum:
    SMALLEST_CACHE = 1 << 15
    SMALLEST_LONG_CACHE = 1 << 16
    SMALLEST_ARENA = 1 << 20    # uint32s
    SEEDED = 32                 # tokens put into cells at a time
    SHORT_OWNER = 0x80000000    # flag of the number of a cell that is no long one


cdef size_t most_cached = 32 << 20  # bytes of each thread


def cache_limit():
    """int: bytes that a thread may spend on remembering pieces, see `set_cache_limit`."""
    return st_load_size(&most_cached)


def set_cache_limit(size):
    """Bound the memory for remembered pieces, of each thread that encodes with one encoding.

    size: bytes, 32 MiB at first; a third is for pieces of more than 15 bytes. What is remembered
    begins small, with the tokens of the vocabulary (13 MiB for cl100k_base), and doubles while it is
    below the limit. When it is full, pieces that did not come again are forgotten, so that memory
    stays flat however much new text comes. Applies to what grows from now on; nothing shrinks. Ids
    are the same whatever the limit. Raises ValueError if negative.
    """
    if size < 0:
        raise ValueError(f"the limit must not be negative: {size}")
    st_store_size(&most_cached, size)


cdef int known_open(Known* known, const Tokens* t) except -1:
    """Memory for `known`, which must be all zero, and the tokens in it."""
    cdef u64 cells = SMALLEST_CACHE, long_cells = SMALLEST_LONG_CACHE
    cdef size_t many, words
    while cells < <u64>t.n * 5 // 2:
        cells *= 2
    many = long_tokens(t, &words)
    while long_cells < many * 5 // 2:
        long_cells *= 2
    known.cells = <Cell*>st_new_block(cells * sizeof(Cell), 64)
    known.long_cells = <LongCell*>calloc(long_cells, sizeof(LongCell))
    known.arena_size = SMALLEST_ARENA + words
    known.arena = <u32*>malloc(known.arena_size * sizeof(u32))
    if known.cells == NULL or known.long_cells == NULL or known.arena == NULL:
        raise MemoryError("no memory to remember pieces")
    known.cell_mask = cells - 1
    known.cell_shift = 64
    while cells >> (64 - known.cell_shift) > 1:
        known.cell_shift -= 1
    known.cells_limit = cells * 5 // 8
    known.long_mask = long_cells - 1
    known.long_limit = long_cells * 5 // 8
    with nogil:
        seed_cells(t, known)
    return 0


cdef void known_close(Known* known) noexcept:
    st_free_block(known.cells)
    free(known.long_cells)
    free(known.arena)


cdef size_t cached_bytes(const Known* known) noexcept nogil:
    """The memory for remembered pieces."""
    return ((known.cell_mask + 1) * sizeof(Cell) + (known.long_mask + 1) * sizeof(LongCell)
            + known.arena_size * sizeof(u32))


cdef inline void fill_cell(Known* known, Cell* cell, u64 low, u64 high, const u32* ids, size_t filled,
                           u64 count) noexcept nogil:
    """count: of the ids or MANY, and whether the cell is idle."""
    cdef size_t i
    cell.low = low
    cell.high = high | (count << 60)
    for i in range(filled):
        cell.ids[i] = ids[i]
    known.cells_used += 1


cdef LongCell* find_long(Known* known, u64 hash, const u8* p, size_t n) noexcept nogil:
    """The cell of a piece of more than 15 bytes, or the empty one where it belongs."""
    cdef u64 at = (hash >> 32) & known.long_mask
    cdef LongCell* cell
    while True:
        cell = &known.long_cells[at]
        if cell.hash == 0 or (cell.hash == hash and cell.size == n
                              and memcmp(known.arena + cell.at, p, n) == 0):
            return cell
        at = (at + 1) & known.long_mask


cdef void fill_long(Known* known, LongCell* cell, u64 hash, const u8* p, size_t n, const u32* ids,
                    size_t count, bint is_idle) noexcept nogil:
    cell.hash = hash
    cell.at = <u32>known.arena_used
    cell.size = <u16>n
    cell.count = <u16>(count | IDLE_LONG if is_idle else count)
    memcpy(known.arena + known.arena_used, p, n)
    memcpy(ids_of_long(known, cell), ids, count * sizeof(u32))
    known.arena_used += (n + 3) // 4 + count
    known.long_used += 1


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


cdef void seed_cells(const Tokens* t, Known* known) noexcept nogil:
    """Back to the beginning: every token of up to LONG_PIECE bytes is a piece of one id."""
    cdef u32 token, first, end = 0, place, size, readable = t.offsets[t.n]
    cdef const u8* p
    cdef u64 low, high, hash
    cdef Cell* cell
    cdef Cell* last = known.cells + known.cell_mask
    cdef u64[2 * SEEDED] keys
    cdef Cell* cells[SEEDED]
    memset(known.cells, 0, (known.cell_mask + 1) * sizeof(Cell))
    if known.long_used:
        memset(known.long_cells, 0, (known.long_mask + 1) * sizeof(LongCell))
    known.cells_used = known.long_used = known.arena_used = known.unasked = 0
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
                    fill_long(known, find_long(known, hash, p, size), hash, p, size, &t.ids[token], 1,
                              False)
                continue
            if readable - place >= 16:
                low = st_load64(p) & st_key_masks[2 * size]
                high = st_load64(p + 8) & st_key_masks[2 * size + 1]
            else:
                low = st_load_part(p, size if size < 8 else 8)
                high = st_load_part(p + 8, size - 8) if size > 8 else 0
            high |= <u64>size << 56
            keys[2 * (token - first)] = low
            keys[2 * (token - first) + 1] = high
            cell = home_of(known, low, high)
            ST_PREFETCH(cell)
            cells[token - first] = cell
        for token in range(first, end):
            cell = cells[token - first]
            if cell == NULL:
                continue
            while cell.high != 0:
                cell = cell + 1 if cell != last else known.cells
            fill_cell(known, cell, keys[2 * (token - first)], keys[2 * (token - first) + 1],
                      &t.ids[token], 1, 1)


cdef bint grow_cells(Known* known) noexcept nogil:
    """Twice the cells, and all that they hold; False if they may not grow."""
    cdef u64 i, at, count = known.cell_mask + 1
    cdef Cell* grown
    cdef size_t most = st_load_size(&most_cached)
    if 2 * count * sizeof(Cell) > most - most // 3:
        return False
    grown = <Cell*>st_new_block(2 * count * sizeof(Cell), 64)
    if grown == NULL:
        return False
    memset(grown, 0, 2 * count * sizeof(Cell))
    for i in range(count):
        if known.cells[i].high != 0:
            at = st_cell_hash(known.cells[i].low, known.cells[i].high & ST_KEY_MASK) >> (known.cell_shift - 1)
            while grown[at].high != 0:
                at = (at + 1) & (2 * count - 1)
            grown[at] = known.cells[i]
    st_free_block(known.cells)
    known.cells = grown
    known.cell_mask = 2 * count - 1
    known.cell_shift -= 1
    known.cells_limit = 2 * count * 5 // 8
    return True


cdef bint grow_long_cells(Known* known) noexcept nogil:
    """Twice the long cells; False if they may not grow."""
    cdef u64 i, at, count = known.long_mask + 1
    cdef LongCell* grown
    if (2 * count * sizeof(LongCell) + known.arena_size * sizeof(u32)
            > st_load_size(&most_cached) // 3):
        return False
    grown = <LongCell*>calloc(2 * count, sizeof(LongCell))
    if grown == NULL:
        return False
    for i in range(count):
        if known.long_cells[i].hash != 0:
            at = (known.long_cells[i].hash >> 32) & (2 * count - 1)
            while grown[at].hash != 0:
                at = (at + 1) & (2 * count - 1)
            grown[at] = known.long_cells[i]
    free(known.long_cells)
    known.long_cells = grown
    known.long_mask = 2 * count - 1
    known.long_limit = 2 * count * 5 // 8
    return True


cdef bint grow_arena(Known* known) noexcept nogil:
    cdef u32* arena
    if ((known.long_mask + 1) * sizeof(LongCell) + 2 * known.arena_size * sizeof(u32)
            > st_load_size(&most_cached) // 3):
        return False
    arena = <u32*>realloc(known.arena, 2 * known.arena_size * sizeof(u32))
    if arena == NULL:
        return False
    known.arena = arena
    known.arena_size *= 2
    return True


cdef inline u64 share_of(size_t kept, size_t limit) noexcept nogil:
    """Of 256, how many of what would be kept, so that it takes no more than half."""
    return 256 if 2 * kept <= limit else 128 * limit // kept


cdef void sweep_cells(Known* known) noexcept nogil:
    """Forget the idle cells; all others are idle from now on."""
    cdef u64 i, at, n = known.cell_mask + 1, empty = n, share
    cdef size_t kept = 0
    cdef Cell cell
    for i in range(n):
        if known.cells[i].high == 0:
            empty = i
        else:
            kept += known.cells[i].high >> 60 < IDLE
    share = share_of(kept, known.cells_limit)
    known.cells_used = 0
    known.unasked = IDLE
    # Nothing was put beyond an empty cell, so from there on all may move towards their homes.
    for i in range(empty + 1, empty + n):
        cell = known.cells[i & known.cell_mask]
        known.cells[i & known.cell_mask].high = 0
        if cell.high == 0 or cell.high >> 60 >= IDLE or (cell.low ^ i) & 255 >= share:
            continue
        at = home_of(known, cell.low, cell.high & ST_KEY_MASK) - known.cells
        while known.cells[at].high != 0:
            at = (at + 1) & known.cell_mask
        cell.high |= <u64>IDLE << 60
        known.cells[at] = cell
        known.cells_used += 1


cdef bint sweep_long_cells(Known* known) noexcept nogil:
    """`sweep_cells` for long ones, and the arena without what is forgotten; False without memory."""
    cdef u64 i, at, n = known.long_mask + 1, empty = n, share
    cdef size_t kept = 0, words = 0
    cdef LongCell cell
    cdef u64* starts = <u64*>calloc(known.arena_used // 64 + 1, sizeof(u64))
    if starts == NULL:
        return False
    for i in range(n):
        cell = known.long_cells[i]
        if cell.hash == 0:
            empty = i
        elif cell.count < IDLE_LONG:
            kept += 1
            words += (cell.size + 3) // 4 + cell.count
    share = min(share_of(kept, known.long_limit), share_of(words, known.arena_size))
    for i in range(n):
        cell = known.long_cells[i]
        if cell.count >= IDLE_LONG or (cell.hash >> 8 ^ i) & 255 >= share:
            known.long_cells[i].hash = 0
    close_gaps(known, starts)
    free(starts)
    known.long_used = 0
    for i in range(empty + 1, empty + n):
        cell = known.long_cells[i & known.long_mask]
        known.long_cells[i & known.long_mask].hash = 0
        if cell.hash == 0:
            continue
        cell.count |= IDLE_LONG
        at = (cell.hash >> 32) & known.long_mask
        while known.long_cells[at].hash != 0:
            at = (at + 1) & known.long_mask
        known.long_cells[at] = cell
        known.long_used += 1
    return True


cdef void close_gaps(Known* known, u64* starts) noexcept nogil:
    """Move what cells own in the arena together, without a second arena.

    Owners are found by threading (Jonkers 1979): for the time being, the first word of what a cell owns
    is in the cell, and the number of the cell is in its place. starts: a bit for each word, all 0.
    """
    cdef u64 i, word
    cdef size_t at
    cdef u32 owner, size, used = 0
    cdef u32* from_cell
    for i in range(known.cell_mask + 1):
        if (known.cells[i].high >> 60 & MANY) == MANY:
            thread(known, starts, &known.cells[i].ids[0], <u32>i | SHORT_OWNER)
    for i in range(known.long_mask + 1):
        if known.long_cells[i].hash != 0:
            thread(known, starts, &known.long_cells[i].at, <u32>i)
    for i in range(known.arena_used // 64 + 1):
        word = starts[i]
        while word:
            at = 64 * i + st_lowest(word)
            word &= word - 1
            owner = known.arena[at]
            if owner & SHORT_OWNER:
                from_cell = &known.cells[owner & ~<u32>SHORT_OWNER].ids[0]
                size = from_cell[1]
            else:
                from_cell = &known.long_cells[owner].at
                size = ((known.long_cells[owner].size + 3) // 4
                        + (known.long_cells[owner].count & ~<u32>IDLE_LONG))
            known.arena[at] = from_cell[0]
            from_cell[0] = used
            memmove(known.arena + used, known.arena + at, size * sizeof(u32))
            used += size
    known.arena_used = used


cdef inline void thread(Known* known, u64* starts, u32* place, u32 owner) noexcept nogil:
    cdef u32 at = place[0]
    starts[at >> 6] |= <u64>1 << (at & 63)
    place[0] = known.arena[at]
    known.arena[at] = owner


cdef void make_room(const Tokens* t, Known* known, size_t pieces, size_t words) noexcept nogil:
    """Room in the cache for so many more pieces of each kind and words of the arena.

    It grows up to its limit; then what is idle is forgotten.
    """
    if known.cells_used + pieces > known.cells_limit and not grow_cells(known):
        sweep_cells(known)
    if ((known.long_used + pieces > known.long_limit and not grow_long_cells(known))
            or (known.arena_used + words > known.arena_size and not grow_arena(known))):
        # The ids of short pieces may be what fills the arena.
        if not sweep_long_cells(known) or known.arena_used + words > known.arena_size:
            seed_cells(t, known)


cdef void learn_short(Known* known, Cell* home, const u8* key, const u32* ids,
                      u64 count) noexcept nogil:
    cdef u64 low = st_load64(key), high = st_load64(key + 8)
    cdef Cell* cell = find_cell(known, home, low, high)
    cdef u32[2] where
    if cell.high != 0:                  # it was twice among those that waited
        return
    if count <= CELL_IDS:
        fill_cell(known, cell, low, high, ids, count, count | known.unasked)
        return
    where[0] = <u32>known.arena_used
    where[1] = <u32>count
    memcpy(known.arena + known.arena_used, ids, count * sizeof(u32))
    known.arena_used += count
    fill_cell(known, cell, low, high, where, 2, MANY | known.unasked)
