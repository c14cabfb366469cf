"""Whether a text is one of the many that nothing needs to be done to before it is cut.

Code points are of five kinds. Those that a normalizer may change or drop *stop* a text. *Marks* may
be reordered, so their combining classes must not fall; some of them *compose* with some starters
before them. All others are inert. This is the quick check of UAX #15, with "maybe" refined: a mark
that may compose is looked up with its starter. Most characters need not be looked up: the first
byte of their UTF-8 says that they are inert.
"""

cdef enum:
    CODE_POINTS = 0x110000
    SYLLABLES = 0xAC00      # of Hangul, in its order: first letters, vowels, last letters or none
    SYLLABLES_END = 0xD7A4
    LAST_LETTERS = 28
    LOOK_BACK = 32          # characters, for the starter of a mark
    CLASS = 0xFF            # the combining class; and bits beyond it:
    STOPS = 0x100
    MARK = 0x200
    COMPOSES = 0x400        # with some that open
    OPENS = 0x800


@cython.final
cdef class Untouched:
    """The check for some sets of code points. Immutable.

    stops: ranges (first, last). marks: (code point, combining class). pairs: of a starter and a
    mark, two that change together; those of Hangul are known.
    """

    cdef u16* kinds             # of each code point
    cdef u64* pairs             # in order
    cdef size_t n_pairs
    cdef st_leads leads         # bytes that begin, or are, one that stops, or a mark

    def __cinit__(self, stops, marks, pairs):
        cdef size_t i
        self.kinds = <u16*>calloc(CODE_POINTS, sizeof(u16))
        found = sorted(pairs)
        self.pairs = <u64*>calloc(len(found) + 1, sizeof(u64))
        if self.kinds == NULL or self.pairs == NULL:
            raise MemoryError("no memory for the kinds of characters")
        memset(&self.leads, 0, sizeof(st_leads))
        for low, high in stops:
            self.add(low, high, STOPS)
        for code, ccc in marks:
            self.add(code, code, MARK | <u16>(ccc & CLASS))
        for first, second in [(0x1100, 0x1112), (SYLLABLES, SYLLABLES_END - 1)]:
            self.add(first, second, OPENS)
        for first, second in [(0x1161, 0x1175), (0x11A8, 0x11C2)]:
            self.add(first, second, COMPOSES)
        for i in range(<size_t>len(found)):
            first, second = found[i]
            self.add(first, first, OPENS)
            self.add(second, second, COMPOSES)
            self.pairs[i] = <u64>first << 32 | <u64>second
        self.n_pairs = len(found)
        self.leads.leaves_ascii = not any(self.leads.has[:128])

    def __dealloc__(self):
        free(self.kinds)
        free(self.pairs)

    cdef int add(self, u32 low, u32 high, u16 kind) except -1:
        cdef u32 code
        if low > high or high >= CODE_POINTS:
            raise ValueError(f"U+{low:04X} to U+{high:04X} is no range of code points")
        for code in range(low, high + 1):
            self.kinds[code] |= kind
            if not kind & (STOPS | MARK):
                continue
            if code < 0x80:
                st_leads_add(&self.leads, <u8>code)
            elif code < 0x800:
                st_leads_add(&self.leads, <u8>(0xC0 | code >> 6))
            elif code < 0x10000:
                st_leads_add(&self.leads, <u8>(0xE0 | code >> 12))
            else:
                st_leads_add(&self.leads, <u8>(0xF0 | code >> 18))
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
        cdef size_t size, head = 0
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
            return size, head, length, last_of(self, utf8.data, size), utf8.size - size
        finally:
            text_close(&utf8)
            st_free_block(room.bytes)


cdef inline u32 character_at(const u8* p, size_t i, int* length) noexcept nogil:
    """The character at p[i], of well-formed UTF-8, and its bytes."""
    cdef u32 a = p[i]
    if a < 0x80:
        length[0] = 1
        return a
    if a < 0xE0:
        length[0] = 2
        return ((a & 0x1F) << 6) | (p[i + 1] & 0x3F)
    if a < 0xF0:
        length[0] = 3
        return ((a & 0x0F) << 12) | (<u32>(p[i + 1] & 0x3F) << 6) | (p[i + 2] & 0x3F)
    length[0] = 4
    return (((a & 0x07) << 18) | (<u32>(p[i + 1] & 0x3F) << 12)
            | (<u32>(p[i + 2] & 0x3F) << 6) | (p[i + 3] & 0x3F))


cdef inline u16 kind_at(Untouched self, const u8* p, size_t i, int* length) noexcept nogil:
    """The kind of the character at p[i]; the rest is as for `character_at`."""
    return self.kinds[character_at(p, i, length)]


cdef inline size_t before(const u8* p, size_t i) noexcept nogil:
    """Where the character before i begins."""
    i -= 1
    while i > 0 and (p[i] & 0xC0) == 0x80:
        i -= 1
    return i


cdef size_t last_of(Untouched self, const u8* p, size_t size) noexcept:
    """The bytes of the last character that is no mark, and of the marks behind it; all of them, if
    there are only marks.
    """
    cdef size_t last = size
    cdef int length = 0
    while last > 0:
        last = before(p, last)
        if not kind_at(self, p, last, &length) & MARK:
            break
    return size - last


cdef bint leaves(Untouched self, const u8* p, size_t start, size_t n) noexcept nogil:
    """Whether UTF-8 p[start:n] is left as it is, if nothing before it matters."""
    cdef size_t i = start, at
    cdef u64 found
    while n - i >= ST_TOGETHER:
        found = strategy.leads(&self.leads, p + i)
        while found != 0:
            at = i + <size_t>st_lowest(found)
            if changes(self, p, start, at):
                return False
            found &= found - 1
        i += ST_TOGETHER
    while i < n:
        if self.leads.has[p[i]] and changes(self, p, start, i):
            return False
        i += 1
    return True


cdef bint changes(Untouched self, const u8* p, size_t start, size_t i) noexcept nogil:
    """Whether the character at i stops the text, or is a mark that changes something."""
    cdef int length = 0
    cdef u32 mark = character_at(p, i, &length), other
    cdef u16 kind = self.kinds[mark], before_it
    cdef u16 ccc = kind & CLASS
    cdef int step
    if not kind & (STOPS | MARK):
        return False
    if kind & STOPS:
        return True
    if i == start:
        return False
    i = before(p, i)
    other = character_at(p, i, &length)
    before_it = self.kinds[other]
    if ccc != 0 and (before_it & CLASS) > ccc:
        return True
    if ccc != 0 and (not kind & COMPOSES or (before_it & CLASS) == ccc):
        return False            # one of its class stands between it and the starter
    for step in range(LOOK_BACK):
        if not before_it & CLASS:
            return before_it & OPENS and kind & COMPOSES and change_together(self, other, mark)
        if i == start:
            return False
        i = before(p, i)
        other = character_at(p, i, &length)
        before_it = self.kinds[other]
    return True


cdef bint change_together(Untouched self, u32 starter, u32 mark) noexcept nogil:
    """Whether a starter that opens changes with a mark behind it that composes."""
    cdef u64 wanted = <u64>starter << 32 | mark
    cdef size_t low = 0, high = self.n_pairs, middle
    if 0x1161 <= mark <= 0x1175 and 0x1100 <= starter <= 0x1112:
        return True
    if 0x11A8 <= mark <= 0x11C2 and SYLLABLES <= starter < SYLLABLES_END:
        return (starter - SYLLABLES) % LAST_LETTERS == 0
    while low < high:
        middle = (low + high) // 2
        if self.pairs[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low < self.n_pairs and self.pairs[low] == wanted
