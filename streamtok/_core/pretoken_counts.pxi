"""A hash table: how often each pre-token was seen, and where first.

Open addressing, entries of 32 bytes. A pre-token of up to 15 bytes is its own key, so one cache
line finds it. Longer ones are rare: they are kept in one arena and compared byte by byte.
Pre-tokens are looked up in batches: first all keys, hashes and prefetches, then the table.
"""

cdef struct Pretoken:       # two to a cache line
    u64 low                 # up to 15 bytes, zeros behind them, and their number in the last byte;
    u64 high                # for longer ones a hash, and LONG with the place in the arena
    u64 count               # 0: an empty slot
    u64 first               # where in all the text it was seen first


cdef enum:
    BATCH = 256             # pre-tokens that are looked up together


cdef enum:                  # whether there is room for more
    FITS = 0
    OVER_LIMIT = 1
    NO_MEMORY = 2


cdef enum:
    SMALLEST = 1 << 12      # slots
    TAG_SHIFT = 56
    SLOTS_AHEAD = 8         # slots between a prefetch and its use
    LONG = 0xFF             # tag of a pre-token in the arena; others have their size


cdef u64 PLACE = (<u64>1 << TAG_SHIFT) - 1


@cython.final
cdef class PretokenTable:
    """Pre-tokens and their counts. Not safe for two threads at a time."""

    cdef Pretoken* slots
    cdef u64 mask           # number of slots - 1
    cdef u64 used           # slots that hold a pre-token
    cdef u8* arena          # long pre-tokens, each behind its length in 4 bytes
    cdef size_t arena_size
    cdef size_t arena_capacity
    cdef readonly size_t limit
    cdef size_t other_bytes # memory of the owner's that counts against the limit

    def __cinit__(self, size_t limit=0):
        """limit: bytes of memory, 0 for none."""
        self.limit = limit
        self.mask = SMALLEST - 1
        self.slots = <Pretoken*>st_new_table(SMALLEST * sizeof(Pretoken))
        if self.slots == NULL:
            raise MemoryError

    def __dealloc__(self):
        st_free_block(self.slots)
        free(self.arena)

    def __len__(self):
        return self.used

    @property
    def nbytes(self):
        """Bytes of memory held."""
        return self.memory()

    cdef size_t memory(self) noexcept nogil:
        return (self.mask + 1) * sizeof(Pretoken) + self.arena_capacity

    cdef size_t size_of(self, const Pretoken* pretoken) noexcept nogil:
        cdef u64 tag = pretoken.high >> TAG_SHIFT
        cdef u32 size
        if tag != LONG:
            return tag
        memcpy(&size, self.arena + (pretoken.high & PLACE), sizeof(u32))
        return size

    cdef const u8* bytes_of(self, const Pretoken* pretoken) noexcept nogil:
        if pretoken.high >> TAG_SHIFT != LONG:
            return <const u8*>&pretoken.low    # little end first, as st_load64 loads them
        return self.arena + (pretoken.high & PLACE) + sizeof(u32)

    cdef int reserve(self, size_t pretokens, size_t wanted) noexcept nogil:
        """Make room for so many new pre-tokens, and so many bytes of arena.

        FITS; else nothing has changed that can be seen: OVER_LIMIT or NO_MEMORY.
        """
        cdef u64 slots = self.mask + 1
        cdef size_t arena = self.arena_capacity
        cdef void* memory
        while (self.used + pretokens) * 8 > slots * 5:
            slots *= 2
        if self.arena_size + wanted > arena:
            arena = self.arena_size + self.arena_size // 2 + wanted
        if slots == self.mask + 1 and arena == self.arena_capacity:
            return FITS
        if self.limit and peak(self, slots, arena) > self.limit:
            return OVER_LIMIT
        if arena != self.arena_capacity:
            memory = realloc(self.arena, arena)
            if memory == NULL:
                return NO_MEMORY
            self.arena = <u8*>memory
            self.arena_capacity = arena
        if slots != self.mask + 1:
            return rehash(self, slots)
        return FITS

    cdef int reserve_for(self, PretokenTable other, size_t pretokens, size_t wanted) noexcept nogil:
        """Make room for all of `other` and so much besides; as `reserve`."""
        cdef size_t new_pretokens = pretokens, new_bytes = wanted
        cdef u64 i, low, high
        cdef const Pretoken* pretoken
        if self.reserve(pretokens + other.used, wanted + other.arena_size) == FITS:
            return FITS
        # Perhaps most of them are here already.
        for i in range(other.mask + 1):
            pretoken = other.slots + i
            if pretoken.count and not find_slot(self, other.bytes_of(pretoken), other.size_of(pretoken), &low,
                                        &high).count:
                new_pretokens += 1
                if high >> TAG_SHIFT == LONG:
                    new_bytes += sizeof(u32) + other.size_of(pretoken)
        return self.reserve(new_pretokens, new_bytes)

    cdef void take_over(self, PretokenTable other, u64 shift) noexcept nogil:
        """Add all of `other`, as if it had been seen `shift` bytes later; there is room for it."""
        cdef u64 i, low, high
        cdef const Pretoken* pretoken
        for i in range(other.mask + 1):
            pretoken = other.slots + i
            if i + SLOTS_AHEAD <= other.mask and other.slots[i + SLOTS_AHEAD].count:
                low = other.slots[i + SLOTS_AHEAD].low
                high = other.slots[i + SLOTS_AHEAD].high
                ST_PREFETCH(self.slots + (hash_key(low, high) & self.mask))  # wrong for long ones
            if pretoken.count:
                self.put(other.bytes_of(pretoken), other.size_of(pretoken), pretoken.count,
                         pretoken.first + shift)

    cdef void add(self, const u8* text, size_t readable, size_t start, const i64* ends,
                  size_t count, u64 base) noexcept nogil:
        """Count the pre-tokens of `text` that end at `ends`; there is room (`reserve`) for all of
        them.

        readable: bytes of `text` that may be loaded; base: place of text[0] in all the text. A
        negative end is that of a segment which is no pre-token.
        """
        cdef u64[BATCH] lows
        cdef u64[BATCH] highs
        cdef u64[BATCH] hashes
        cdef size_t[BATCH] starts
        cdef size_t i, n = 0, size, end
        cdef u64 low, high
        cdef Pretoken* slot
        for i in range(count):
            end = <size_t>(ends[i] if ends[i] >= 0 else -ends[i])
            size = end - start
            if ends[i] < 0 or size == 0:
                start = end
                continue
            if size <= SHORT_PRETOKEN and start + 16 <= readable:
                low = st_load64(text + start)
                high = st_load64(text + start + 8)
                if size < 8:
                    low &= (<u64>1 << (8 * size)) - 1
                    high = 0
                else:
                    high &= (<u64>1 << (8 * (size - 8))) - 1
                high |= <u64>size << TAG_SHIFT
            else:
                make_key(text + start, size, &low, &high)
            lows[n] = low
            highs[n] = high
            hashes[n] = hash_key(low, high)
            starts[n] = start
            ST_PREFETCH(self.slots + (hashes[n] & self.mask))
            n += 1
            start = end
        for i in range(n):
            slot = self.slots + (hashes[i] & self.mask)
            if highs[i] >> TAG_SHIFT == LONG:
                # For now `high` has the size where the table has a place.
                slot = find_long(self, slot, lows[i], text + starts[i], highs[i] & PLACE)
                if slot.count == 0:
                    highs[i] = keep(self, text + starts[i], highs[i] & PLACE)
            else:
                while slot.count and (slot.low != lows[i] or slot.high != highs[i]):
                    slot += 1
                    if slot == self.slots + self.mask + 1:
                        slot = self.slots
            if slot.count == 0:
                slot.low = lows[i]
                slot.high = highs[i]
                slot.first = base + starts[i]
                self.used += 1
            elif slot.first > base + starts[i]:
                slot.first = base + starts[i]
            slot.count += 1

    cdef void put(self, const u8* bytes, size_t size, u64 count, u64 first) noexcept nogil:
        """Count one pre-token `count` >= 1 times; there is room (`reserve`)."""
        cdef u64 low, high
        cdef Pretoken* slot
        slot = find_slot(self, bytes, size, &low, &high)
        if slot.count == 0:
            if high >> TAG_SHIFT == LONG:
                high = keep(self, bytes, size)
            slot.low = low
            slot.high = high
            slot.first = first
            self.used += 1
        elif slot.first > first:
            slot.first = first
        slot.count += count

    def absorb(self, PretokenTable other not None, u64 shift=0):
        """Add all of `other`, as if it had been seen `shift` bytes later. False: the limit forbids.

        Either all of it is added or nothing.
        """
        cdef int room
        with nogil:
            room = self.reserve_for(other, 0, 0)
            if room == FITS:
                self.take_over(other, shift)
        if room == NO_MEMORY:
            raise MemoryError("no memory for more pre-tokens: nothing was added")
        return room == FITS

    def prune(self):
        """(pre-tokens, bytes): drop all that were seen once; how many they were."""
        cdef u64 pretokens = 0, bytes = 0
        with nogil:
            drop_singletons(self, &pretokens, &bytes)
        return pretokens, bytes

    def export(self):
        """(bytes, uint32 [n], uint64 [n], uint64 [n]): pre-tokens in a row; sizes, counts, places.

        In no order that means anything.
        """
        cdef u64 i, n = self.used, total = 0
        cdef size_t size, at = 0, row = 0
        sizes = np.empty(n, np.uint32)
        counts = np.empty(n, np.uint64)
        firsts = np.empty(n, np.uint64)
        cdef u32* sizes_out = <u32*>array_memory(sizes, UINT32)
        cdef u64* counts_out = <u64*>array_memory(counts, UINT64)
        cdef u64* firsts_out = <u64*>array_memory(firsts, UINT64)
        cdef const Pretoken* pretoken
        for i in range(self.mask + 1):
            if self.slots[i].count:
                total += self.size_of(self.slots + i)
        data = np.empty(total, np.uint8)
        cdef u8* out = <u8*>array_memory(data, UINT8)
        with nogil:
            for i in range(self.mask + 1):
                pretoken = self.slots + i
                if pretoken.count == 0:
                    continue
                size = self.size_of(pretoken)
                memcpy(out + at, self.bytes_of(pretoken), size)
                sizes_out[row] = <u32>size
                counts_out[row] = pretoken.count
                firsts_out[row] = pretoken.first
                at += size
                row += 1
        return data, sizes, counts, firsts

    def load(self, data, sizes, counts, firsts):
        """Add what `export` gave. ValueError if the arrays do not fit together; False: the
        limit.
        """
        cdef ArrayView data_view = read_array(data, UINT8, "data")
        cdef ArrayView size_view = read_array(sizes, UINT32, "sizes")
        cdef ArrayView count_view = read_array(counts, UINT64, "counts")
        cdef ArrayView first_view = read_array(firsts, UINT64, "firsts")
        cdef const u8* p = <const u8*>data_view.data
        cdef const u32* size = <const u32*>size_view.data
        cdef const u64* count = <const u64*>count_view.data
        cdef const u64* first = <const u64*>first_view.data
        cdef size_t i, n = size_view.size, total = 0, at = 0, long_bytes = 0
        cdef int room
        if count_view.size != n or first_view.size != n:
            raise ValueError("as many sizes as counts and places are needed")
        for i in range(n):
            total += size[i]
            if size[i] > SHORT_PRETOKEN:
                long_bytes += sizeof(u32) + size[i]
            if size[i] == 0 or count[i] == 0:
                raise ValueError(f"pre-token {i} is empty or was never seen")
        if total != data_view.size:
            raise ValueError(f"the sizes sum to {total}, but there are {data_view.size} bytes")
        if n == 0:
            return True
        room = self.reserve(n, long_bytes)
        if room == NO_MEMORY:
            raise MemoryError(f"no memory for {n} pre-tokens")
        if room == OVER_LIMIT:
            return False
        with nogil:
            for i in range(n):
                self.put(p + at, size[i], count[i], first[i])
                at += size[i]
        return True


cdef size_t peak(PretokenTable table, u64 slots, size_t arena) noexcept nogil:
    """Bytes of memory held while tables of the old and the new size are there."""
    cdef size_t both = slots * sizeof(Pretoken) + arena + table.other_bytes
    return both + (table.memory() - table.arena_capacity if slots != table.mask + 1 else 0)


cdef inline u64 hash_key(u64 low, u64 high) noexcept nogil:
    return st_mix(low ^ <u64>0x9E3779B97F4A7C15, high ^ <u64>0xD6E8FEB86659FD93)


cdef inline u64 hash_long(const u8* bytes, size_t size) noexcept nogil:
    cdef u64 h = size
    while size >= 8:
        h = st_mix(h ^ st_load64(bytes), <u64>0xA0761D6478BD642F)
        bytes += 8
        size -= 8
    return st_mix(h ^ st_load_part(bytes, size), <u64>0xE7037ED1A0B428DB)


cdef inline void make_key(const u8* bytes, size_t size, u64* low, u64* high) noexcept nogil:
    """The key of a pre-token; in that of a long one its size stands for its place in the arena."""
    if size > SHORT_PRETOKEN:
        low[0] = hash_long(bytes, size)
        high[0] = <u64>LONG << TAG_SHIFT | size
    else:
        low[0] = st_load_part(bytes, size if size < 8 else 8)
        high[0] = st_load_part(bytes + 8, size - 8) if size > 8 else 0
        high[0] |= <u64>size << TAG_SHIFT


cdef Pretoken* find_long(PretokenTable table, Pretoken* slot, u64 low, const u8* bytes,
                      size_t size) noexcept nogil:
    """The slot of a long pre-token, or the empty one where it belongs."""
    while slot.count:
        if (slot.low == low and slot.high >> TAG_SHIFT == LONG and table.size_of(slot) == size
                and memcmp(table.bytes_of(slot), bytes, size) == 0):
            break
        slot += 1
        if slot == table.slots + table.mask + 1:
            slot = table.slots
    return slot


cdef Pretoken* find_slot(PretokenTable table, const u8* bytes, size_t size, u64* low,
                 u64* high) noexcept nogil:
    cdef Pretoken* slot
    make_key(bytes, size, low, high)
    slot = table.slots + (hash_key(low[0], high[0]) & table.mask)
    if size > SHORT_PRETOKEN:
        return find_long(table, slot, low[0], bytes, size)
    while slot.count and (slot.low != low[0] or slot.high != high[0]):
        slot += 1
        if slot == table.slots + table.mask + 1:
            slot = table.slots
    return slot


cdef u64 keep(PretokenTable table, const u8* bytes, size_t size) noexcept nogil:
    """Put a long pre-token into the arena; the second half of its key."""
    cdef u64 place = table.arena_size
    cdef u32 size32 = <u32>size
    memcpy(table.arena + place, &size32, sizeof(u32))
    memcpy(table.arena + place + sizeof(u32), bytes, size)
    table.arena_size += sizeof(u32) + size
    return <u64>LONG << TAG_SHIFT | place


cdef inline u64 home_of(PretokenTable table, const Pretoken* pretoken) noexcept nogil:
    """The slot from which a pre-token of the table is looked for."""
    cdef u64 high = pretoken.high
    if high >> TAG_SHIFT == LONG:       # hashed with its size in the place of its place
        high = <u64>LONG << TAG_SHIFT | table.size_of(pretoken)
    return hash_key(pretoken.low, high) & table.mask


cdef int rehash(PretokenTable table, u64 slots) noexcept nogil:
    """Move to a table of `slots` slots: FITS or NO_MEMORY."""
    cdef Pretoken* old = table.slots
    cdef u64 n = table.mask + 1, i, at
    cdef Pretoken* fresh = <Pretoken*>st_new_table(slots * sizeof(Pretoken))
    if fresh == NULL:
        return NO_MEMORY
    table.mask = slots - 1
    table.slots = fresh
    for i in range(n):
        if old[i].count:
            at = home_of(table, old + i)
            while fresh[at].count:
                at = (at + 1) & table.mask
            fresh[at] = old[i]
    st_free_block(old)
    return FITS


cdef void drop_singletons(PretokenTable table, u64* pretokens, u64* bytes) noexcept nogil:
    """Forget what was seen once, in place; how many pre-tokens, and bytes of them."""
    cdef Pretoken* slots = table.slots
    cdef Pretoken pretoken
    cdef u64 i, at, empty = 0
    while slots[empty].count:       # no pre-token was ever looked for across this slot
        empty += 1
    for i in range(table.mask + 1):
        if slots[i].count == 1:
            bytes[0] += table.size_of(slots + i)
            pretokens[0] += 1
            slots[i].count = 0
    table.used -= pretokens[0]
    # Close the gaps: put each pre-token again where it is found, in order from that empty slot on.
    for i in range(1, table.mask + 1):
        at = (empty + i) & table.mask
        if slots[at].count:
            pretoken = slots[at]
            slots[at].count = 0
            at = home_of(table, &pretoken)
            while slots[at].count:
                at = (at + 1) & table.mask
            slots[at] = pretoken
    if table.arena_size:
        squeeze(table)


cdef void squeeze(PretokenTable table) noexcept nogil:
    """Copy the arena without the pre-tokens that are no longer there; without memory, keep it."""
    cdef u8* fresh
    cdef size_t size = 0, bytes
    cdef u64 i
    cdef const u8* source
    for i in range(table.mask + 1):
        if table.slots[i].count and table.slots[i].high >> TAG_SHIFT == LONG:
            size += sizeof(u32) + table.size_of(table.slots + i)
    fresh = <u8*>realloc(NULL, size + 1)
    if fresh == NULL:
        return
    size = 0
    for i in range(table.mask + 1):
        if table.slots[i].count and table.slots[i].high >> TAG_SHIFT == LONG:
            source = table.arena + (table.slots[i].high & PLACE)
            bytes = sizeof(u32) + table.size_of(table.slots + i)
            memcpy(fresh + size, source, bytes)
            table.slots[i].high = <u64>LONG << TAG_SHIFT | size
            size += bytes
    free(table.arena)
    table.arena = fresh
    table.arena_size = size
    table.arena_capacity = size + 1
