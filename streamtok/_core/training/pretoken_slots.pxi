"""The slots of a table of counts: keys, look-up, growth, and dropping what was seen once."""

cdef size_t peak(PretokenTable table, u64 slots, size_t arena) noexcept nogil:
    """Bytes of memory held while tables of the old and the new size are there."""
    cdef size_t both = slots * sizeof(Pretoken) + arena + table.other_bytes
    return both + (table.memory() - table.arena_capacity if slots != table.mask + 1 else 0)


cdef inline void make_key(const u8* bytes, size_t size, u64* low, u64* high) noexcept nogil:
    """The key of a pre-token; in that of a long one its size stands for its place in the arena."""
    if size > SHORT_PRETOKEN:
        low[0] = st_hash_bytes(bytes, size)
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


cdef inline Pretoken* find_short(PretokenTable table, u64 low, u64 high) noexcept nogil:
    """The slot of a pre-token of up to 15 bytes, or the empty one where it belongs."""
    cdef Pretoken* slot = table.slots + (st_hash_key(low, high) >> table.shift)
    while slot.count and (slot.low != low or slot.high != high):
        slot += 1
        if slot == table.slots + table.mask + 1:
            slot = table.slots
    return slot


cdef Pretoken* find_slot(PretokenTable table, const u8* bytes, size_t size, u64* low,
                 u64* high) noexcept nogil:
    make_key(bytes, size, low, high)
    if size <= SHORT_PRETOKEN:
        return find_short(table, low[0], high[0])
    return find_long(table, table.slots + (st_hash_key(low[0], high[0]) >> table.shift), low[0], bytes, size)


cdef u64 keep(PretokenTable table, const u8* bytes, size_t size) noexcept nogil:
    """Put a long pre-token into the arena; the second half of its key."""
    cdef u64 place = table.arena_size
    cdef u32 size32 = <u32>size
    memcpy(table.arena + place, &size32, sizeof(u32))
    memcpy(table.arena + place + sizeof(u32), bytes, size)
    table.arena_size += sizeof(u32) + size
    return <u64>LONG << TAG_SHIFT | place


cdef inline u64 slot_home(PretokenTable table, const Pretoken* pretoken) noexcept nogil:
    """The slot from which a pre-token of the table is looked for."""
    cdef u64 high = pretoken.high
    if high >> TAG_SHIFT == LONG:       # hashed with its size in the place of its place
        high = <u64>LONG << TAG_SHIFT | table.size_of(pretoken)
    return st_hash_key(pretoken.low, high) >> table.shift


cdef int rehash(PretokenTable table, u64 slots) noexcept nogil:
    """Move to a table of `slots` slots: FITS or NO_MEMORY."""
    cdef Pretoken* old = table.slots
    cdef u64 n = table.mask + 1, i, at
    cdef Pretoken* fresh = <Pretoken*>st_new_table(slots * sizeof(Pretoken))
    if fresh == NULL:
        return NO_MEMORY
    table.mask = slots - 1
    table.shift = st_hash_shift(slots)
    table.slots = fresh
    for i in range(n):
        if old[i].count:
            at = slot_home(table, old + i)
            while fresh[at].count:
                at = (at + 1) & table.mask
            fresh[at] = old[i]
    st_free_table(old)
    return FITS


cdef void take_table(PretokenTable table, PretokenTable other, u64 shift) noexcept nogil:
    """Take the pre-tokens of `other`, `shift` bytes later, which gets this empty table instead."""
    cdef u64 i
    table.slots, other.slots = other.slots, table.slots
    table.mask, other.mask = other.mask, table.mask
    table.shift, other.shift = other.shift, table.shift
    table.used, other.used = other.used, table.used
    table.arena, other.arena = other.arena, table.arena
    table.arena_size, other.arena_size = other.arena_size, table.arena_size
    table.arena_capacity, other.arena_capacity = other.arena_capacity, table.arena_capacity
    if shift:
        for i in range(table.mask + 1):
            if table.slots[i].count:
                table.slots[i].first += shift


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
            at = slot_home(table, &pretoken)
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
