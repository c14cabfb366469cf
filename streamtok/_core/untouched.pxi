"""Whether a text is one of the many that nothing needs to be done to before it is cut.

Code points are of five kinds. Those that a normalizer may change or drop *stop* a text. *Marks* may
be reordered, so their combining classes must not fall; some of them *compose* with a starter before
them that *opens*. All others are inert. This is the quick check of UAX #15, with "maybe" refined:
a mark that may compose does not if its starter composes with nothing. Most characters need not be
looked up: the first byte of their UTF-8 says that they are inert.
"""

cdef extern from "untouched.h" nogil:
    enum: ST_TOGETHER
    bint st_block_is_ascii(const u8* p)
    bint st_block_has(const u8* p, const u8* table)


cdef enum:
    CODE_POINTS = 0x110000
    LOOK_BACK = 32          # characters, for the starter of a mark
    CLASS = 0xFF            # the combining class; and bits beyond it:
    STOPS = 0x100
    MARK = 0x200
    COMPOSES = 0x400
    OPENS = 0x800


@cython.final
cdef class Untouched:
    """The check for some sets of code points. Immutable.

    stops, composes, opens: ranges (first, last). marks: (code point, combining class).
    """

    cdef u16* kinds             # of each code point
    cdef u8[256] leads          # of a byte: whether it begins, or is, one that stops, or a mark
    cdef bint leaves_ascii

    def __cinit__(self, stops, marks, composes, opens):
        self.kinds = <u16*>calloc(CODE_POINTS, sizeof(u16))
        if self.kinds == NULL:
            raise MemoryError("no memory for the kinds of characters")
        memset(self.leads, 0, 256)
        for low, high in stops:
            self.add(low, high, STOPS)
        for code, ccc in marks:
            self.add(code, code, MARK | <u16>(ccc & CLASS))
        for low, high in composes:
            self.add(low, high, COMPOSES)
        for low, high in opens:
            self.add(low, high, OPENS)
        self.leaves_ascii = not any(self.leads[:128])

    def __dealloc__(self):
        free(self.kinds)

    cdef int add(self, u32 low, u32 high, u16 kind) except -1:
        cdef u32 code
        if low > high or high >= CODE_POINTS:
            raise ValueError(f"U+{low:04X} to U+{high:04X} is no range of code points")
        for code in range(low, high + 1):
            self.kinds[code] |= kind
            if not kind & (STOPS | MARK):
                continue
            if code < 0x80:
                self.leads[code] = 1
            elif code < 0x800:
                self.leads[0xC0 | code >> 6] = 1
            elif code < 0x10000:
                self.leads[0xE0 | code >> 12] = 1
            else:
                self.leads[0xF0 | code >> 18] = 1
        return 0

    def is_all_of(self, text):
        """bool: whether a str or bytes is well-formed, and left as it is, wherever it stands."""
        return self.look_at(text, False) is not None

    def parts_of(self, text):
        """None, or (size, head, first, last, partial) of a chunk, all in bytes.

        head: the marks that it begins with, which nothing is said about. What follows is left as it
        is: first: its first character; last: its last character that is no mark, with the marks
        behind that. size: of all characters. partial: bytes behind them that may begin another one.
        """
        return self.look_at(text, True)

    cdef object look_at(self, object text, bint is_chunk):
        cdef Text utf8
        cdef Room room
        cdef size_t size, head = 0, first, last
        cdef i32 why = 0
        cdef int length = 0
        cdef bint is_left
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
            if is_chunk:
                while head < size and kind_at(self, utf8.data, head, &length) & MARK:
                    head += length
                if head == size:
                    return None
            if size - head >= RELEASE_FROM:
                with nogil:
                    is_left = leaves(self, utf8.data, head, size)
            else:
                is_left = leaves(self, utf8.data, head, size)
            if not is_left:
                return None
            if not is_chunk:
                return True
            kind_at(self, utf8.data, head, &length)
            first = length
            last = size
            while True:
                last = before(utf8.data, last)
                if not kind_at(self, utf8.data, last, &length) & MARK:
                    break
            return size, head, first, size - last, utf8.size - size
        finally:
            text_close(&utf8)
            st_free_block(room.bytes)


cdef inline u16 kind_at(Untouched self, const u8* p, size_t i, int* length) noexcept nogil:
    """The kind of the character at p[i], of well-formed UTF-8, and its bytes."""
    cdef u32 a = p[i]
    if a < 0x80:
        length[0] = 1
        return self.kinds[a]
    if a < 0xE0:
        length[0] = 2
        return self.kinds[((a & 0x1F) << 6) | (p[i + 1] & 0x3F)]
    if a < 0xF0:
        length[0] = 3
        return self.kinds[((a & 0x0F) << 12) | (<u32>(p[i + 1] & 0x3F) << 6) | (p[i + 2] & 0x3F)]
    length[0] = 4
    return self.kinds[((a & 0x07) << 18) | (<u32>(p[i + 1] & 0x3F) << 12)
                      | (<u32>(p[i + 2] & 0x3F) << 6) | (p[i + 3] & 0x3F)]


cdef inline size_t before(const u8* p, size_t i) noexcept nogil:
    """Where the character before i begins."""
    i -= 1
    while i > 0 and (p[i] & 0xC0) == 0x80:
        i -= 1
    return i


cdef bint leaves(Untouched self, const u8* p, size_t start, size_t n) noexcept nogil:
    """Whether UTF-8 p[start:n] is left as it is, if nothing before it matters."""
    cdef size_t i = start, j
    cdef int length = 0
    cdef u16 kind
    while i < n:
        if n - i >= ST_TOGETHER and ((self.leaves_ascii and st_block_is_ascii(p + i))
                                     or not st_block_has(p + i, self.leads)):
            i += ST_TOGETHER
            continue
        j = i + ST_TOGETHER if n - i > ST_TOGETHER else n
        while i < j:
            if (p[i] & 0xC0) == 0x80 or not self.leads[p[i]]:
                i += 1      # also the rest of a character whose beginning is in the block before
                continue
            kind = kind_at(self, p, i, &length)
            if kind & STOPS or (kind & MARK and not stays(self, p, start, i, kind)):
                return False
            i += length
    return True


cdef bint stays(Untouched self, const u8* p, size_t start, size_t i, u16 kind) noexcept nogil:
    """Whether the mark at i neither changes its place nor composes with its starter."""
    cdef u16 ccc = kind & CLASS, other
    cdef int length = 0, step
    if i == start:
        return True
    i = before(p, i)
    other = kind_at(self, p, i, &length)
    if ccc != 0 and (other & CLASS) > ccc:
        return False
    if ccc != 0 and not kind & COMPOSES:
        return True
    for step in range(LOOK_BACK):
        if not other & CLASS:
            return not other & OPENS
        if i == start:
            return True
        i = before(p, i)
        other = kind_at(self, p, i, &length)
    return False
