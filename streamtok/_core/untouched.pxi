"""Whether a text is one of the many that nothing needs to be done to before it is cut.

A set of code points says what a normalizer may change, drop, or join to a neighbour. Most texts have
none of them. The set is a bitmap; a table of first bytes of UTF-8 says which need not be looked up.
"""

cdef enum:
    CODE_POINTS = 0x110000
    TOGETHER = 64            # bytes that are looked at together


@cython.final
cdef class Untouched:
    """Text without any of some code points. Immutable.

    ranges: (first, last) of them. matcher: special tokens that must not be in the text either, as
    far as `accepts` is asked.
    """

    cdef SpecialMatcher matcher
    cdef u8* bits
    cdef u8[256] leads          # of a byte: whether it begins, or is, a code point of the set

    def __cinit__(self, ranges, SpecialMatcher matcher not None):
        cdef u32 code, low, high
        cdef int lead
        self.matcher = matcher
        self.bits = <u8*>calloc(CODE_POINTS // 8, 1)
        if self.bits == NULL:
            raise MemoryError("no memory for a set of characters")
        memset(self.leads, 0, 256)
        for low, high in ranges:
            if low > high or high >= CODE_POINTS:
                raise ValueError(f"U+{low:04X} to U+{high:04X} is no range of code points")
            for code in range(low, high + 1):
                self.bits[code >> 3] |= 1 << (code & 7)
                if code < 0x80:
                    lead = code
                elif code < 0x800:
                    lead = 0xC0 | code >> 6
                elif code < 0x10000:
                    lead = 0xE0 | code >> 12
                else:
                    lead = 0xF0 | code >> 18
                self.leads[lead] = 1

    def __dealloc__(self):
        free(self.bits)

    def is_all_of(self, text):
        """bool: whether a str or bytes is well-formed, and has none of the code points."""
        return self.look_at(text, False) is not None

    def accepts(self, text):
        """None, or (size, first, last, partial) of a str or bytes that also has no special token.

        The bytes of all its characters, of the first one, of the last one, and those at the end
        that may begin another one, which are not looked at.
        """
        return self.look_at(text, True)

    cdef object look_at(self, object text, bint is_chunk):
        cdef Text utf8
        cdef Room room
        cdef size_t size
        cdef i32 why = 0
        cdef int length = 0, first = 1, last = 1
        room.bytes = NULL
        room.size = 0
        try:
            text_open(&utf8, &room, text, "strict")
        except UnicodeEncodeError:
            return None
        try:
            size = utf8.size
            if not PyUnicode_Check(text):
                size = valid_bytes(utf8.data, utf8.size, &why, &length)
                if why != 0 and (why != INCOMPLETE or not is_chunk):
                    return None
            if size == 0 or not self.passes(utf8.data, size, is_chunk):
                return None
            while <size_t>first < size and (utf8.data[first] & 0xC0) == 0x80:
                first += 1
            while (utf8.data[size - last] & 0xC0) == 0x80:
                last += 1
            return size, first, last, utf8.size - size
        finally:
            text_close(&utf8)
            st_free_block(room.bytes)

    cdef bint passes(self, const u8* p, size_t n, bint is_chunk):
        cdef bint passed
        if n < RELEASE_FROM:
            return has_none(self, p, n) and (
                not is_chunk or self.matcher.find(p, 0, n, False).kind == NOTHING)
        with nogil:
            passed = has_none(self, p, n)
            if passed and is_chunk:
                passed = self.matcher.find(p, 0, n, False).kind == NOTHING
        return passed


cdef bint has_none(Untouched self, const u8* p, size_t n) noexcept nogil:
    """Whether no code point in UTF-8 p[:n] is in the set."""
    cdef size_t i = 0, j
    cdef int length = 0
    cdef u8 seen
    cdef u32 code
    while i < n:
        if n - i >= TOGETHER:
            seen = 0
            for j in range(i, i + TOGETHER):
                seen |= self.leads[p[j]]
            if not seen:
                i += TOGETHER
                continue
        j = i + TOGETHER if n - i > TOGETHER else n
        while i < j:
            if (p[i] & 0xC0) == 0x80 or not self.leads[p[i]]:
                i += 1      # also the rest of a character whose beginning is in the block before
                continue
            code = <u32>decode_one(p + i, n - i, &length)
            if self.bits[code >> 3] >> (code & 7) & 1:
                return False
            i += length
    return True
