"""What one encoding thread needs: its cache, its scratch memory and the ids that it makes."""

cdef enum:
    BATCH = 256             # pre-tokens found, then encoded, at a time
    COUNT_STEP = 1 << 16    # bytes of which the ids are counted at a time
    MIDDLE_PRETOKEN = SEGMENT       # longest pre-token that waits for others in one piece,
    WIDE_PRETOKEN = 240     # and in pieces that overlap
    PENDING = 512           # pre-tokens that wait to be merged, at the most,
    PENDING_WIDE = 32       # and of more than MIDDLE_PRETOKEN bytes
    UNIT = ST_UNIT          # bytes: what waits begins at multiples of it
    RECENT_BITS = 10        # of a hash by which those that wait are found again
    PIECES = PENDING + PENDING_WIDE * ((WIDE_PRETOKEN - OVERLAP) // STRIDE)
    MOST_UNITS = PIECES * (SEGMENT // UNIT)


cdef struct Gap:            # where the ids of a pre-token that waits belong
    size_t at               # in `out`
    u64 low                 # its key
    u64 high
    u16 piece               # the first of those that it is made of
    u16 size
    u16 count               # of ids, once it is merged
    u16 original            # the first gap of the same pre-token


cdef struct Waiting:        # pieces of new pre-tokens, of up to 64 bytes each, that are merged together
    size_t count
    size_t wide             # pre-tokens in several pieces
    size_t unit             # of `bytes` that is free
    size_t place            # of `tokens`
    u16[PIECES] units       # piece i begins at bytes[UNIT * units[i]]
    u16[PIECES] places      # and its tokens at tokens[UNIT * places[i]]
    u8[PIECES] sizes
    u8[PIECES] counts       # of tokens
    u8* bytes
    u32* tokens


cdef struct Work:               # everything mutable that one encoding thread needs
    u32* out                    # ids
    size_t count
    size_t capacity
    bint counts_only            # ids of long pre-tokens need not be kept
    size_t forgotten            # of these ids, those that were not
    PretokenCache cache         # what is remembered
    Gap[PENDING] gaps           # in order
    size_t gap_count
    u16[1 << RECENT_BITS] recent    # by hash, the last gap that such a pre-token left, perhaps long ago
    Waiting waiting             # what these pre-tokens are
    Merger merger
    Merger scratch
    Room room                   # UTF-8 of a str, or a copy of bytes that others may write to
    Watch watch                 # when signals were looked at
    Lattice lattice             # of Unigram
    u8* marked                  # a pre-token with its mark
    size_t marked_capacity
    bint follows                # the places of ids are wanted, too
    Place* places               # of the ids in `out`, then
    size_t places_capacity
    u64 origin                  # where in the text the buffer begins that is encoded
    u8* section                 # the last full section of a long pre-token: endless runs repeat it
    u32* section_ids
    size_t section_count
    size_t section_stable       # bytes of it that are final; 0: nothing remembered


@cython.final
cdef class Workspace:
    """Scratch memory of one encoding thread, and its cache of short pre-tokens."""

    cdef Work c

    def __cinit__(self, TokenTable table not None):
        cdef Work* w = &self.c
        cdef const Tokens* t = table.tokens()
        w.section = <u8*>malloc(SECTION)
        w.section_ids = <u32*>malloc(SECTION * sizeof(u32))
        w.waiting.bytes = <u8*>malloc(MOST_UNITS * UNIT)
        w.waiting.tokens = <u32*>malloc(MOST_UNITS * UNIT * sizeof(u32))
        if (w.section == NULL or w.section_ids == NULL or w.waiting.bytes == NULL
                or w.waiting.tokens == NULL):
            raise MemoryError("no memory for an encoding workspace")
        cache_open(&w.cache, t)

    def __dealloc__(self):
        free(self.c.out)
        cache_close(&self.c.cache)
        free(self.c.section)
        free(self.c.section_ids)
        free(self.c.waiting.bytes)
        free(self.c.waiting.tokens)
        st_free_block(self.c.room.bytes)
        merger_free(&self.c.merger)
        merger_free(&self.c.scratch)
        free(self.c.lattice.nodes)
        free(self.c.places)
        free(self.c.marked)


cdef int reserve(Work* w, size_t more) except -1 nogil:
    """Room for `more` ids, and for the four that a cell stores at once."""
    cdef size_t wanted = w.count + more + CELL_IDS
    cdef u32* out
    if wanted <= w.capacity:
        return 0
    wanted += wanted // 2 + 256
    out = <u32*>realloc(w.out, wanted * sizeof(u32))
    if out == NULL:
        raise MemoryError(f"no memory for {wanted} ids")
    w.out = out
    w.capacity = wanted
    return 0


cdef int emit(const Tokens* t, Work* w, const u32* tokens, size_t count) except -1 nogil:
    cdef size_t i
    if t.byte_ids != NULL:
        return emit_bytes(t, w, tokens, count)
    reserve(w, count)
    for i in range(count):
        w.out[w.count + i] = t.ids[tokens[i]]
    w.count += count
    return 0


cdef int emit_bytes(const Tokens* t, Work* w, const u32* tokens, size_t count) except -1 nogil:
    """`emit` where tokens without an id leave as the ids of their bytes."""
    cdef size_t i, j, size
    cdef const u8* p
    for i in range(count):
        size = t.offsets[tokens[i] + 1] - t.offsets[tokens[i]]
        p = t.blob + t.offsets[tokens[i]]
        reserve(w, size)
        if t.ids[tokens[i]] != NONE:
            w.out[w.count] = t.ids[tokens[i]]
            w.count += 1
            continue
        for j in range(size):
            w.out[w.count + j] = t.byte_ids[p[j]]
        w.count += size
    return 0
