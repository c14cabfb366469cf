"""Spans of tokens in their text, and conversion of spans from bytes to other units."""

cdef u64 HIGH = 0x8080808080808080


def token_spans(ids, sizes, id_spans, u64 start):
    """numpy.int64 [n, 2]: where in the bytes of its text each token begins and ends.

    ids: uint32; sizes: uint16, the number of bytes of each id. id_spans: int64 [k, 3], as from
    `Tail.encode`: (index, start, end) of each token whose size or position is not the usual one. If the end
    is 0, only the start is set; if both are 0, the token has no text. Every other token has its usual size
    and begins where the token before it ends; the first begins at `start`. Raises ValueError for an id that
    has no size.
    """
    cdef ArrayView known = read_array(ids, UINT32, "ids")
    cdef ArrayView table = read_array(sizes, UINT16, "sizes")
    cdef ArrayView given = read_array(id_spans.reshape(-1), INT64, "id_spans")
    cdef object result = np.empty((known.size, 2), dtype=np.int64)
    cdef i64* spans = <i64*>array_memory(result.reshape(-1), INT64)
    cdef Watch watch
    cdef size_t unknown
    watch.looked = 0
    with nogil:
        unknown = spans_in_bytes(<const u32*>known.data, known.size, <const u16*>table.data, table.size,
                                 <const IdSpan*>given.data, given.size // 3, <i64>start, &watch, spans)
    if unknown < known.size:
        raise ValueError(f"id {(<const u32*>known.data)[unknown]} has no size")
    return result


cdef size_t spans_in_bytes(const u32* ids, size_t n, const u16* sizes, size_t n_sizes, const IdSpan* id_spans,
                           size_t n_id_spans, i64 at, Watch* watch, i64* spans) except? 0 nogil:
    """Fill in `spans`. Returns the index of the first id that has no size, or n."""
    cdef size_t i, k = 0
    cdef i64 size
    cdef bint is_known
    for i in range(n):
        if i & LOOK_IDS == LOOK_IDS:
            look(watch)
        is_known = ids[i] < n_sizes
        size = sizes[ids[i]] if is_known else 0
        while k < n_id_spans and id_spans[k].at == i:
            if id_spans[k].end:
                at, size = <i64>id_spans[k].start, <i64>(id_spans[k].end - id_spans[k].start)
            elif id_spans[k].start:
                at = <i64>id_spans[k].start
            else:
                size = 0
            is_known = True
            k += 1
        if not is_known:
            return i
        spans[2 * i] = at
        at += size
        spans[2 * i + 1] = at
    return n


cdef inline u64 bytes_marked(u64 word) noexcept nogil:
    """The number of bytes whose highest bit is set."""
    return ((word & HIGH) >> 7) * <u64>0x0101010101010101 >> 56


cdef inline i64 units_marked(u64 word, size_t size, bint is_utf16) noexcept nogil:
    """The number of units in the characters that begin in the first `size` bytes, 1 to 8, of a word."""
    word <<= 64 - 8 * size              # drop the bytes after them
    cdef i64 found = <i64>(size - bytes_marked(word & ~(word << 1)))        # 10xxxxxx
    if is_utf16:
        found += <i64>bytes_marked(word & word << 1 & word << 2 & word << 3)
    return found


cdef inline i64 units_at(u8 byte, bint is_utf16) noexcept nogil:
    """The number of units in the character that begins with this byte; 0 if none does."""
    return ((byte & 0xC0) != 0x80) + (is_utf16 and byte >= 0xF0)


cdef inline i64 units_between(const u8* p, size_t at, size_t stop, size_t n, bint is_utf16) noexcept nogil:
    """The number of units in the characters that begin in p[at:stop], which is UTF-8."""
    cdef u64 word
    cdef i64 found = 0
    while stop - at > 8 or at + 8 > n:
        if at == stop:
            return found
        if at + 8 > n:
            found += units_at(p[at], is_utf16)
            at += 1
            continue
        memcpy(&word, p + at, 8)
        found += units_marked(word, 8, is_utf16)
        at += 8
    if at < stop:
        memcpy(&word, p + at, 8)
        found += units_marked(word, stop - at, is_utf16)
    return found


cdef inline bint has_four(const u8* p, size_t i) noexcept nogil:
    """Whether p[i] belongs to a character of four bytes."""
    while (p[i] & 0xC0) == 0x80:
        i -= 1
    return p[i] >= 0xF0


cdef int plain_units(const u8* p, size_t size, bint is_utf16, i64* spans, size_t n, Watch* watch) except -1 nogil:
    """Convert spans of UTF-8 from bytes to characters or UTF-16 units, in place."""
    cdef size_t i, start, stop, at = 0
    cdef i64 units = 0              # in the characters that begin before p[at]
    cdef bint is_inside
    for i in range(n):
        if i & LOOK_IDS == LOOK_IDS:
            look(watch)
        start, stop = <size_t>spans[2 * i], <size_t>spans[2 * i + 1]
        if start > stop or stop > size:
            return no_span()
        if start > at:
            units += units_between(p, at, start, size, is_utf16)
        elif start < at:
            units -= units_between(p, start, at, size, is_utf16)
        is_inside = start < size and (p[start] & 0xC0) == 0x80
        spans[2 * i] = units - is_inside
        if is_utf16 and is_inside:
            spans[2 * i] -= has_four(p, start)
        units += units_between(p, start, stop, size, is_utf16)
        spans[2 * i + 1] = units
        at = stop
    return 0


cdef int no_span() except -1 nogil:
    with gil:
        raise ValueError("a span is not in the text")


def spans_in(bint is_utf16, spans not None, bytes data not None):
    """numpy.int64 [n, 2]: spans of a text in characters, or in UTF-16 units. A span that touches a part of
    a character includes all of it.

    spans: int64 [n, 2], in bytes of the text; the result may reuse their memory. data: the text in UTF-8.
    Raises ValueError for a span outside the text.
    """
    cdef object result = np.ascontiguousarray(spans, np.int64).reshape(-1, 2)
    cdef i64* positions = <i64*>array_memory(result.reshape(-1), INT64)
    cdef size_t n = len(result), size = len(data)
    cdef const u8* p = <const u8*>PyBytes_AS_STRING(data)
    cdef i32 why = 0
    cdef int length = 0
    cdef Watch watch
    watch.looked = 0
    with nogil:
        valid_bytes(p, size, &why, &length)
        if why == 0:
            plain_units(p, size, is_utf16, positions, n, &watch)
    if why:
        raise ValueError("the text is not UTF-8")
    return result
