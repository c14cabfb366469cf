"""Where tokens that follow each other are in their text, and stretches of a text in other units."""

cdef u64 HIGH = 0x8080808080808080


cdef enum Unit:             # in the order of `UNITS` in engines/source_units.py
    BYTES
    CHARACTERS
    UTF16


def token_spans(ids, sizes):
    """numpy.int64 [n, 2]: where in the bytes of its text each token begins and ends.

    ids: uint32; sizes: uint16, the bytes of each id. Raises ValueError for an id that has no size.
    """
    cdef ArrayView known = read_array(ids, UINT32, "ids")
    cdef ArrayView table = read_array(sizes, UINT16, "sizes")
    cdef object result = np.empty((known.size, 2), dtype=np.int64)
    cdef i64* spans = <i64*>array_memory(result.reshape(-1), INT64)
    cdef Watch watch
    cdef size_t end
    watch.looked = 0
    with nogil:
        end = spans_in_bytes(<const u32*>known.data, known.size, <const u16*>table.data, table.size,
                             &watch, spans)
    if end == <size_t>-1:
        raise ValueError("an id has no size")
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


cdef struct UnitCursor:     # between two characters of a text
    const u8* p
    size_t n
    Unit unit
    const i64* odd          # [n_odd, 3]: see `spans_in`
    size_t n_odd
    size_t at               # in bytes,
    i64 units               # and in units
    size_t passed           # of the odd ones
    bint is_valid           # the text is UTF-8


cdef inline u64 bytes_marked(u64 word) noexcept nogil:
    """How many bytes have their highest bit."""
    return ((word & HIGH) >> 7) * <u64>0x0101010101010101 >> 56


cdef inline size_t utf8_start(const u8* p, size_t i) noexcept nogil:
    """Where the character begins that p[i] is inside of; of well-formed UTF-8."""
    while (p[i] & 0xC0) == 0x80:
        i -= 1
    return i


cdef inline bint is_odd(const UnitCursor* c, size_t which) noexcept nogil:
    """Whether an odd character is one in this unit: both parts of a pair are four bytes as well."""
    return c.unit != BYTES or c.odd[3 * which + 2] == 1


cdef inline size_t step(const UnitCursor* c, i64* weight) noexcept nogil:
    """The bytes of the character after the cursor, and its units."""
    cdef const i64* odd = c.odd + 3 * c.passed
    cdef int size = 1
    weight[0] = 1
    if c.unit != BYTES:
        utf8_at(c.p, c.at, c.n, &size)
        weight[0] += c.unit == UTF16 and size == 4
    if c.passed < c.n_odd and <size_t>odd[0] == c.at and is_odd(c, c.passed):
        if c.unit == BYTES:
            size, weight[0] = 3, odd[1]
        elif c.unit == CHARACTERS:
            weight[0] = odd[2]
    return size


cdef void seek_unit(UnitCursor* c, size_t place) noexcept nogil:
    """Go to the character that the byte at `place` is of."""
    cdef size_t size, before
    cdef i64 weight
    cdef u64 word
    while c.at > place:                 # back, as a rule not far
        before = c.at - 1 if c.unit == BYTES else utf8_before(c.p, 0, c.at, c.n)
        if c.passed and <size_t>c.odd[3 * c.passed - 3] + 2 >= before and is_odd(c, c.passed - 1):
            before = <size_t>c.odd[3 * c.passed - 3]
        if c.passed and <size_t>c.odd[3 * c.passed - 3] >= before:
            c.passed -= 1
        c.at = before
        step(c, &weight)
        c.units -= weight
    if c.is_valid and c.passed == c.n_odd and c.unit != BYTES and c.at < place:
        while c.at < place:             # eight bytes at a time
            size = place - c.at if place - c.at < 8 else 8
            word = 0
            memcpy(&word, c.p + c.at, 8 if c.at + 8 <= c.n else size)
            word <<= 64 - 8 * size      # what is after the place goes
            c.units += <i64>(size - bytes_marked(word & ~(word << 1)))      # 10xxxxxx
            if c.unit == UTF16:
                c.units += <i64>bytes_marked(word & word << 1 & word << 2 & word << 3)
            c.at += size
        if c.at < c.n and (c.p[c.at] & 0xC0) == 0x80:       # it is inside a character
            c.at = utf8_start(c.p, c.at)
            step(c, &weight)
            c.units -= weight
        return
    while c.at < place:
        size = step(c, &weight)
        if c.at + size > place:
            break
        while c.passed < c.n_odd and <size_t>c.odd[3 * c.passed] < c.at + size:
            c.passed += 1
        c.at += size
        c.units += weight


def spans_in(int unit, spans, bytes data not None, odd, i64 at=0, i64 base=0):
    """numpy.int64 [n, 2]: stretches of a text in another unit. A character counts from where it begins to
    where it ends, for everything that touches it.

    spans: int64 [n, 2], in bytes of the text. data: of these, from byte `at` on, before which there are
    `base` units; bytes that are not UTF-8 are characters. odd: int64 [k, 3], of each character that was
    something else: where it is, how many bytes and how many characters it was. Raises ValueError for what is
    not in the data.
    """
    cdef object result = np.array(spans, np.int64).reshape(-1, 2)
    cdef ArrayView known = read_array(np.array(odd, np.int64).reshape(-1), INT64, "odd")
    cdef i64* places = <i64*>array_memory(result.reshape(-1), INT64)
    cdef size_t i, n = len(result), stop, size
    cdef i64 weight
    cdef i32 why = 0
    cdef int length = 0
    cdef UnitCursor c
    cdef Watch watch
    watch.looked = 0
    memset(&c, 0, sizeof(UnitCursor))
    if unit not in (BYTES, CHARACTERS, UTF16):
        raise ValueError(f"{unit} is not a unit")
    c.p, c.n, c.unit = data, len(data), <Unit>unit
    c.odd, c.n_odd = <const i64*>known.data, known.size // 3
    for i in range(c.n_odd):
        if not (0 <= c.odd[3 * i] and c.odd[3 * i] + 3 <= <i64>c.n):
            raise ValueError("an odd character is not in the text")
    with nogil:
        valid_bytes(c.p, c.n, &why, &length)
        c.is_valid = why == 0
        for i in range(n):
            if i & LOOK_IDS == LOOK_IDS:
                look(&watch)
            if not at <= places[2 * i] <= places[2 * i + 1] <= at + <i64>c.n:
                with gil:
                    raise ValueError("a stretch is not in the text")
            stop = <size_t>(places[2 * i + 1] - at)
            if c.at != <size_t>(places[2 * i] - at):
                seek_unit(&c, <size_t>(places[2 * i] - at))
            places[2 * i] = c.units + base
            seek_unit(&c, stop)
            places[2 * i + 1] = c.units + base
            if c.at < stop:
                size = step(&c, &weight)
                places[2 * i + 1] += weight
    return result
