"""Mark where pre-tokens begin: compute the masks of a few blocks of text with the windows, for `scan`.

Windows decide about ASCII only. If many positions stay open in text that is not ASCII, it is marked
again, with each character replaced by one byte: an ASCII substitute of the same class
(`scan/substitutes.h`). The resulting bits are moved to the first bytes of the characters.
"""

cdef enum:
    # Marking again pays if, of 64 positions, at least this many are open on average,
    MANY_OPEN = 2
    MANY_WIDE = 2           # and at least this many bytes are not ASCII.
    STILL_WIDE = 1          # if this many bytes of 64 were removed, the next blocks are squeezed right away
    SQUEEZED = ST_MARGIN + 64 * MARKED_BLOCKS + 64 + 1


cdef inline bint has_wide(const u8* p, size_t blocks, size_t wanted) noexcept nogil:
    """Whether at least `wanted` bytes of p[:64 * blocks] are not ASCII."""
    cdef size_t i = 0, k, count = 0
    cdef u64 sums
    while i < 64 * blocks and count < wanted:
        sums = 0
        for k in range(8):
            sums += st_load64(p + i + 8 * k) >> 7 & <u64>0x0101010101010101
        count += (sums * <u64>0x0101010101010101) >> 56
        i += 64
    return count >= wanted


cdef inline u64 bits_from(const u64* bits, size_t at) noexcept nogil:
    """64 bits from bit `at` on. Also reads the word after the one that has bit `at`."""
    cdef size_t word = at >> 6, shift = at & 63
    return bits[word] >> shift | (bits[word + 1] << 1) << (63 - shift)


cdef bint mark_squeezed(const ScanTables* t, const u8* p, size_t before, size_t readable,
                        size_t blocks, u64* begins, u64* open, size_t* wide) noexcept nogil:
    """As `t.mark` of p[:64 * blocks], but with one byte for each character.

    Does nothing and returns False if p[-before:] has fewer than eight characters. Reads p[:readable],
    which has more than 64 * blocks bytes. wide: set to the number of bytes that squeezing removed.
    """
    cdef u8[SQUEEZED] squeezed
    cdef u64[MARKED_BLOCKS] kept
    cdef u64[MARKED_BLOCKS + 1] char_begins
    cdef u64[MARKED_BLOCKS + 1] char_open
    cdef unsigned skip, size
    cdef size_t count, char_blocks, at = 64 * blocks, k
    cdef u8* chars = squeezed + ST_MARGIN
    if not st_squeeze_before(t.substitutes, p, before, readable, squeezed, &skip):
        return False
    count = t.squeeze(t.substitutes, p, blocks, readable, &skip, chars, kept)
    wide[0] = at - count
    at += skip
    char_blocks = (count + 63) >> 6
    memset(chars + count, ST_NO_SUBSTITUTE, 64 * char_blocks + 1 - count)
    if at < readable:
        chars[count] = st_squeeze_one(t.substitutes, p + at, readable - at, &size)
    t.mark(t.windows, chars, char_blocks, char_begins, char_open)
    char_begins[char_blocks] = char_open[char_blocks] = 0
    at = 0
    for k in range(blocks):
        begins[k] = bits_from(char_begins, at)
        open[k] = bits_from(char_open, at)
        t.deposit(&begins[k], &open[k], kept[k])
        at += st_ones(kept[k])
    return True


cdef void mark(const ScanTables* t, Marks* marks, const u8* p, size_t before,
               size_t readable) noexcept nogil:
    """Fill marks.begins and marks.open for marks.blocks blocks from p on. May reduce marks.blocks to 1.

    p[-before:] and p[:readable] may be read; before >= ST_MARGIN.
    """
    cdef size_t i, open = 0, wide
    if not marks.is_squeezed:
        t.mark(t.windows, p, marks.blocks, marks.begins, marks.open)
        if t.substitutes == NULL or readable < MARKED_FROM:
            return
        for i in range(marks.blocks):
            open += st_ones(marks.open[i])
        if open < MANY_OPEN * marks.blocks or not has_wide(p, marks.blocks, MANY_WIDE * marks.blocks):
            return
    if mark_squeezed(t, p, before, readable, marks.blocks, marks.begins, marks.open, &wide):
        marks.is_squeezed = wide >= STILL_WIDE * marks.blocks
        return
    # Too few characters precede p: mark only one block, after which there are enough.
    marks.blocks = 1
    if marks.is_squeezed:
        t.mark(t.windows, p, 1, marks.begins, marks.open)


cdef bint mark_from(const ScanTables* t, Marks* marks, const u8* buffer, size_t start,
                    size_t end) noexcept nogil:
    """Mark the text after buffer[start], where a pre-token begins. Returns False if that is impossible."""
    cdef size_t size = end - start - 1, before = start + 1 - marks.first
    cdef u8[ST_LOOK_BACK + ST_REST_SIZE] copy
    cdef u64 margin = 0
    if before > ST_MARGIN and size > ST_REST:
        marks.base = start + 1
        marks.blocks = (size - 1) >> 6
        if marks.blocks > MARKED_BLOCKS:
            marks.blocks = MARKED_BLOCKS
        mark(t, marks, buffer + start + 1, before, size)
        return True
    if before >= ST_LOOK_BACK:
        before = ST_LOOK_BACK
        memcpy(copy, buffer + start + 1 - ST_LOOK_BACK, ST_LOOK_BACK)
    else:
        if before > ST_MARGIN:
            margin = st_load64(buffer + start + 1 - ST_MARGIN)
        elif buffer[start] < 0x80:
            margin = t.margins[buffer[start]]
            if margin == 0:
                return False
        else:
            return False
        before = ST_MARGIN
        memcpy(copy + ST_LOOK_BACK - ST_MARGIN, &margin, ST_MARGIN)
    marks.base = start + 1
    marks.blocks = st_copy_rest(copy + ST_LOOK_BACK, buffer + start + 1, size, t.extra_from)
    mark(t, marks, copy + ST_LOOK_BACK, before, 64 * marks.blocks + 3)
    return True
