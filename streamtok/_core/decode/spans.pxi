"""Where tokens that follow each other lie in their text. `engines/source_units.py` is the slow way."""

cdef u64 HIGH = 0x8080808080808080

def token_spans(ids, sizes, data, bint counts_utf16):
    """numpy.int64 [n, 2]: where each token begins and ends, or the characters that it touches.

    ids: uint32; sizes: uint16, the bytes of each id. data: None, for places in bytes; or the text
    of the tokens, for places in characters, or in UTF-16 (counts_utf16). Raises ValueError
    for an id that has no size and for tokens of another size than the text.
    """
    cdef ArrayView known = read_array(ids, UINT32, "ids")
    cdef ArrayView table = read_array(sizes, UINT16, "sizes")
    cdef object result = np.empty((known.size, 2), dtype=np.int64)
    cdef ArrayView spans = view_of(
        result, INT64, "spans", 2, PyBUF_ND | PyBUF_FORMAT | PyBUF_WRITABLE
    )
    cdef Text text
    cdef Room room
    cdef Watch watch
    cdef size_t end
    watch.looked = 0
    if data is None:
        with nogil:
            end = spans_in_bytes(<const u32*>known.data, known.size, <const u16*>table.data,
                                 table.size, &watch, <i64*>spans.data)
        if end == <size_t>-1:
            raise ValueError("an id has no size")
        return result
    room.bytes = NULL
    room.size = 0
    try:
        text_open(&text, &room, data, "strict")
        try:
            with nogil:
                end = spans_in_units(<const u32*>known.data, known.size, <const u16*>table.data,
                                     table.size, text.data, text.size, counts_utf16, &watch,
                                     <i64*>spans.data)
            if end != text.size:
                raise ValueError("the ids are not those of the text")
        finally:
            text_close(&text)
    finally:
        st_free_block(room.bytes)
    return result


cdef size_t spans_in_bytes(const u32* ids, size_t n, const u16* sizes, size_t n_sizes, Watch* watch,
                           i64* spans) except? 0 nogil:
    cdef size_t i, at = 0
    for i in range(n):
        if i & LOOK_IDS == LOOK_IDS:
            look(watch)
        if ids[i] >= n_sizes:
            return <size_t>-1
        spans[2 * i] = <i64>at
        at += sizes[ids[i]]
        spans[2 * i + 1] = <i64>at
    return at


cdef size_t spans_in_units(const u32* ids, size_t n, const u16* sizes, size_t n_sizes,
                           const u8* data, size_t size, bint counts_utf16, Watch* watch,
                           i64* spans) except? 0 nogil:
    cdef size_t i, j, at = 0, left, step
    cdef u64 word
    cdef i64 units = 0, start
    for i in range(n):
        if i & LOOK_IDS == LOOK_IDS:
            look(watch)
        if ids[i] >= n_sizes:
            return <size_t>-1
        left = sizes[ids[i]]
        if left == 0 or left > size - at:
            return <size_t>-1
        start = units - ((data[at] & 0xC0) == 0x80)     # inside of a character
        if counts_utf16 and start < units:
            j = at
            while j > 0 and (data[j] & 0xC0) == 0x80:
                j -= 1
            start -= data[j] >= 0xF0
        while True:                         # eight bytes at a time
            step = left if left < 8 else 8
            if at + 8 <= size:
                memcpy(&word, data + at, 8)
            else:
                word = 0
                memcpy(&word, data + at, step)
            word <<= 64 - 8 * step          # what is behind the token goes
            units += <i64>(step - bytes_marked(word & ~(word << 1)))        # 10xxxxxx
            if counts_utf16:
                units += <i64>bytes_marked(word & word << 1 & word << 2 & word << 3)
            at += step
            left -= step
            if left == 0:
                break
        spans[2 * i] = start
        spans[2 * i + 1] = units
    return at


cdef inline u64 bytes_marked(u64 word) noexcept nogil:
    """How many bytes have their highest bit."""
    return ((word & HIGH) >> 7) * <u64>0x0101010101010101 >> 56
