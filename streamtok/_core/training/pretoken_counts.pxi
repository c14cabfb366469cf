"""A hash table: how often each pre-token was seen, and where first.

Open addressing, entries of 32 bytes. A pre-token of up to 15 bytes is its own key, so one cache
line finds it. Longer ones are rare: they are kept in one arena and compared byte by byte.
Pre-tokens are looked up in batches: first all keys, hashes and prefetches, then the table.
"""

cdef extern from "cache/keys.h" nogil:
    const u64 st_key_masks[32]


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
    HAS_SURROGATE = 3       # no: it is no text


cdef enum:
    SMALLEST = 1 << 12      # slots
    TAG_SHIFT = 56
    LONG = 0xFF             # tag of a pre-token in the arena; others have their size


cdef u64 PLACE = (<u64>1 << TAG_SHIFT) - 1


@cython.final
cdef class PretokenTable:
    """Pre-tokens and their counts. Not safe for two threads at a time."""

    cdef Pretoken* slots
    cdef u64 mask           # number of slots - 1
    cdef int shift          # of a hash that gives the number of a slot
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
        self.shift = st_hash_shift(SMALLEST)
        self.slots = <Pretoken*>st_new_table(SMALLEST * sizeof(Pretoken))
        if self.slots == NULL:
            raise MemoryError

    def __dealloc__(self):
        st_free_table(self.slots)
        free(self.arena)

    def __len__(self):
        return self.used

    @property
    def nbytes(self):
        """Bytes of memory held."""
        return self.memory()

    cdef size_t memory(self) noexcept nogil:
        return (self.mask + 1) * sizeof(Pretoken) + self.arena_capacity

    cdef void clear(self) noexcept nogil:
        """Forget all pre-tokens; the memory is kept."""
        if self.used:
            memset(self.slots, 0, (self.mask + 1) * sizeof(Pretoken))
        self.used = 0
        self.arena_size = 0

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
        """Add all of `other`, as if it had been seen `shift` bytes later; there is room for it.

        Both have the same hash, so that both are gone through from the front to the back.
        """
        cdef u64 i
        cdef const Pretoken* pretoken
        cdef Pretoken* slot
        for i in range(other.mask + 1):
            pretoken = other.slots + i
            if pretoken.count == 0:
                continue
            if pretoken.high >> TAG_SHIFT == LONG:
                self.put(other.bytes_of(pretoken), other.size_of(pretoken), pretoken.count,
                         pretoken.first + shift)
                continue
            slot = find_short(self, pretoken.low, pretoken.high)
            if slot.count == 0:
                slot[0] = pretoken[0]
                slot.first += shift
                self.used += 1
                continue
            slot.count += pretoken.count
            if slot.first > pretoken.first + shift:
                slot.first = pretoken.first + shift

    cdef void add(self, const u8* text, size_t readable, size_t start, const i64* ends,
                  size_t count, u64 base) noexcept nogil:
        """Count the pre-tokens of `text` that end at `ends`; there is room (`reserve`) for all of
        them.

        readable: bytes of `text` that may be loaded; base: place of text[0] in all the text. A
        negative end is that of a segment which is no pre-token.
        """
        cdef u64[BATCH] lows
        cdef u64[BATCH] highs
        cdef u64[BATCH] homes
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
                low = st_load64(text + start) & st_key_masks[2 * size]
                high = st_load64(text + start + 8) & st_key_masks[2 * size + 1] | <u64>size << TAG_SHIFT
            else:
                make_key(text + start, size, &low, &high)
            lows[n] = low
            highs[n] = high
            homes[n] = st_hash_key(low, high) >> self.shift
            starts[n] = start
            ST_PREFETCH(self.slots + homes[n])
            n += 1
            start = end
        for i in range(n):
            slot = self.slots + homes[i]
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
