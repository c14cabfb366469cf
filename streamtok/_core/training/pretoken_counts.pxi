"""How often each pre-token occurs, and where it occurs first: a table of pre-tokens (`cache/table.pxi`)."""

cdef packed struct Seen:    # the numbers of a pre-token, CELL_NUMBERS of them
    u64 count
    u64 first               # position of the first occurrence in the whole text


cdef enum:
    SMALLEST = 1 << 12      # cells


@cython.final
cdef class PretokenTable:
    """Pre-tokens and their counts. Not thread-safe."""

    cdef PretokenCells c

    def __cinit__(self):
        if not open_table(&self.c, SMALLEST, 0):
            no_memory(SMALLEST, b"pre-tokens")

    def __dealloc__(self):
        close_table(&self.c)

    def __len__(self):
        return self.c.cells_used

    @property
    def nbytes(self):
        """The number of bytes of memory held."""
        return table_bytes(&self.c)

    cdef void clear(self) noexcept nogil:
        """Forget all pre-tokens, but keep the memory."""
        if self.c.cells_used:
            memset(self.c.cells, 0, (self.c.cell_mask + 1) * sizeof(Cell))
        self.c.cells_used = self.c.arena_used = 0

    cdef int reserve(self, size_t pretokens, size_t words) except -1 nogil:
        """Make room for this many new pre-tokens and words of the arena.

        A MemoryError has no visible effect.
        """
        cdef u64 cells = self.c.cell_mask + 1
        cdef size_t arena = self.c.arena_size
        while self.c.cells_used + pretokens > most_used(cells):
            cells *= 2
        if self.c.arena_used + words > arena:
            arena = self.c.arena_used + self.c.arena_used // 2 + words
        if arena != self.c.arena_size and not resize_arena(&self.c, arena):
            no_memory(arena, b"words of pre-tokens")
        if cells != self.c.cell_mask + 1 and not resize_cells(&self.c, cells):
            no_memory(cells, b"pre-tokens")
        return 0

    cdef void take_over(self, PretokenTable other, u64 shift) noexcept nogil:
        """Add all of `other`, as if its text began `shift` bytes later. There must be room for it.

        Both tables use the same hash, so both are traversed from front to back.
        """
        cdef u64 i, high
        cdef Cell* cell
        cdef Seen* seen
        for i in range(other.c.cell_mask + 1):
            cell = other.c.cells + i
            high = cell.high & ST_KEY_MASK
            if high:
                seen = seen_of(&other.c, cell)
                count_pretoken(&self.c, home_of(&self.c, cell.low, high), cell.low, high, bytes_of(&other.c, cell),
                               seen.count, seen.first + shift)

    cdef void add(self, const u8* text, size_t readable, size_t start, const i64* ends,
                  size_t count, u64 base) noexcept nogil:
        """Count the pre-tokens of `text` that end at `ends`. `reserve` must have made room for all of them.

        readable: bytes of `text` that may be loaded; base: position of text[0] in the whole text. A
        negative end marks the end of a segment that is not a pre-token.
        """
        cdef Lookup b
        cdef size_t i
        cdef u64 low, high, tagged, position
        cdef Cell* cell
        find_homes(&self.c, &b, text, readable, start, ends, count, <size_t>-1)
        for i in range(count):
            low, high = b.keys[2 * i], b.keys[2 * i + 1]
            if b.cells[i] != &self.c.nothing:
                # Most pre-tokens are short and in this cache line. The half of the line is selected without
                # a branch.
                position = b.cells[i] - self.c.cells
                tagged = high | <u64>CELL_NUMBERS << 60
                cell = self.c.cells + (position ^ 1)
                cell = self.c.cells + (position ^ (<u64>(cell.low == low) & <u64>(cell.high == tagged)))
                if cell.low == low and cell.high == tagged:
                    count_again(<Seen*>cell.numbers, 1, base + start)
                else:
                    count_pretoken(&self.c, b.cells[i], low, high, text + start, 1, base + start)
            start = <size_t>llabs(ends[i])

    def export(self):
        """(uint8 [bytes], uint32 [n], uint64 [n], uint64 [n]): the pre-tokens, concatenated; their sizes;
        their counts; and their first positions.

        The order is arbitrary.
        """
        cdef u64 i, n = self.c.cells_used, total = 0
        cdef size_t size, at = 0, row = 0
        sizes = np.empty(n, np.uint32)
        counts = np.empty(n, np.uint64)
        firsts = np.empty(n, np.uint64)
        cdef u32* sizes_out = <u32*>array_memory(sizes, UINT32)
        cdef u64* counts_out = <u64*>array_memory(counts, UINT64)
        cdef u64* firsts_out = <u64*>array_memory(firsts, UINT64)
        cdef Cell* cell
        cdef Seen* seen
        for i in range(self.c.cell_mask + 1):
            total += size_of(&self.c.cells[i])
        data = np.empty(total, np.uint8)
        cdef u8* out = <u8*>array_memory(data, UINT8)
        with nogil:
            for i in range(self.c.cell_mask + 1):
                cell = self.c.cells + i
                size = size_of(cell)
                if size == 0:
                    continue
                seen = seen_of(&self.c, cell)
                memcpy(out + at, bytes_of(&self.c, cell), size)
                sizes_out[row] = <u32>size
                counts_out[row] = seen.count
                firsts_out[row] = seen.first
                at += size
                row += 1
        return data, sizes, counts, firsts

    def load(self, data, sizes, counts, firsts):
        """Add a result of `export`. Raises ValueError if the arrays do not fit together."""
        cdef ArrayView data_view = read_array(data, UINT8, "data")
        cdef ArrayView size_view = read_array(sizes, UINT32, "sizes")
        cdef ArrayView count_view = read_array(counts, UINT64, "counts")
        cdef ArrayView first_view = read_array(firsts, UINT64, "firsts")
        cdef const u8* p = <const u8*>data_view.data
        cdef const u32* size = <const u32*>size_view.data
        cdef const u64* count = <const u64*>count_view.data
        cdef const u64* first = <const u64*>first_view.data
        cdef u64[2] key
        cdef size_t i, n = size_view.size, total = 0, at = 0, words = 0
        if count_view.size != n or first_view.size != n:
            raise ValueError("expected as many counts and positions as sizes")
        for i in range(n):
            total += size[i]
            if size[i] > SHORT_PRETOKEN:
                words += byte_words(size[i]) + CELL_NUMBERS
            if size[i] == 0 or count[i] == 0:
                raise ValueError(f"pre-token {i} is empty or was never seen")
        if total != data_view.size:
            raise ValueError(f"the sizes sum to {total}, but there are {data_view.size} bytes")
        self.reserve(n, words)
        with nogil:
            for i in range(n):
                make_key(p + at, size[i], total - at, key)
                count_pretoken(&self.c, home_of(&self.c, key[0], key[1]), key[0], key[1], p + at, count[i], first[i])
                at += size[i]


cdef inline Seen* seen_of(const PretokenCells* t, Cell* cell) noexcept nogil:
    return <Seen*>numbers_of(t, cell)


cdef inline size_t size_of(const Cell* cell) noexcept nogil:
    """The size of a cell's pre-token in bytes; 0 if the cell is empty."""
    return <u32>cell.high if is_long(cell.high) else cell.high >> 56 & 15


cdef inline const u8* bytes_of(const PretokenCells* t, const Cell* cell) noexcept nogil:
    if is_long(cell.high):
        return <const u8*>owned(t, cell)
    return <const u8*>&cell.low         # little-endian, as st_load64 loads it


cdef inline size_t words_for(size_t size) noexcept nogil:
    """The most arena words that a text's pre-tokens can need: one of n > 15 bytes needs (n + 19) // 4."""
    return size * 9 // 16


cdef inline void count_again(Seen* seen, u64 count, u64 first) noexcept nogil:
    seen.count += count
    if seen.first > first:
        seen.first = first


cdef inline void count_pretoken(PretokenCells* t, Cell* home, u64 low, u64 high, const u8* p, u64 count,
                                u64 first) noexcept nogil:
    """Count the pre-token p, with this key and home, `count` >= 1 times. There must be room for it."""
    cdef Cell* cell = find_cell(t, home, low, high, p)
    cdef u64[2] once
    if cell.high == 0:
        once[0], once[1] = count, first
        fill_cell(t, cell, low, high, p, <const u32*>once, CELL_NUMBERS)
        return
    count_again(seen_of(t, cell), count, first)
