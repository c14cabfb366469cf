"""Clean cuts: offsets at which a text may be cut so that each part can be encoded by itself.

A cut is clean under two conditions. First, the pattern never looks across it: the characters before and
after it are a pair of `Pattern.clean_cut_pairs`. Second, no special token, allowed or not, crosses it.
"""

cdef enum:
    LOOK_OFFSETS = (1 << 20) - 1    # offsets between two checks for signals, less one


@cython.final
cdef class Cuts:
    """Finds clean cuts. Immutable. clean_cut_pairs: those of the pattern that `scanner` was made from."""

    cdef Scanner scanner
    cdef const u8* pairs
    cdef u32 columns
    cdef object _owner

    def __cinit__(self, Scanner scanner not None, clean_cut_pairs):
        pairs = np.ascontiguousarray(clean_cut_pairs, dtype=np.uint8)
        cdef ArrayView view = read_array(pairs, UINT8, "clean_cut_pairs", 2)
        cdef u32 classes = scanner.tables().n_classes
        if pairs.shape != (classes, classes):
            raise ValueError(f"not the pairs of this pattern: {pairs.shape}")
        self.scanner = scanner
        self.pairs = <const u8*>view.data
        self.columns = classes
        self._owner = view

    def find(self, text, SpecialMatcher matcher not None, size_t start, size_t stop,
             bint from_end=False):
        """int: the first clean cut of `text` in start:stop, or the last if `from_end`; -1 if none.

        Offsets count bytes, or characters of a str. 0 and len(text) are not cuts.
        """
        cdef Source s
        cdef Watch watch
        cdef size_t offset
        watch.looked = 0
        if not source_open(&s, text, "surrogateescape"):
            raise TypeError(f"text must be str or bytes-like, not {type(text).__name__}")
        if PyUnicode_Check(text) and s.size != <size_t>PyUnicode_GET_LENGTH(text):
            # The str has cached its UTF-8, whose offsets differ from those of the characters.
            s.data = <const u8*>PyUnicode_DATA(text)
            s.size = PyUnicode_GET_LENGTH(text)
            s.unit = PyUnicode_KIND(text)
        try:
            stop = stop if stop < s.size else s.size
            if start >= stop:
                return -1
            if from_end:
                offset = self.last(&s, matcher, &watch, start, stop)
                return -1 if offset < start or offset == 0 else offset
            offset = self.next(&s, matcher, &watch, start, stop)
            return -1 if offset >= stop else offset
        finally:
            source_close(&s)

    cdef size_t next(self, const Source* s, SpecialMatcher matcher, Watch* watch, size_t start,
                     size_t stop) except? 0 nogil:
        """The first cut in start:stop, or `stop`. stop <= s.size."""
        cdef size_t i = start if start else 1
        # Only offsets between two complete characters can be cuts: see `is_cut`.
        while i < stop:
            if self.is_cut(s, i) and not is_crossed(s, matcher, watch, i):
                return i
            i += 1
            if i & LOOK_OFFSETS == 0:
                look(watch)
        return stop

    cdef size_t last(self, const Source* s, SpecialMatcher matcher, Watch* watch, size_t start,
                     size_t stop) except? 0 nogil:
        """The last cut in start:stop, or 0. stop <= s.size."""
        cdef size_t i = stop
        while i > start and i > 1:
            i -= 1
            if self.is_cut(s, i) and not is_crossed(s, matcher, watch, i):
                return i
            if i & LOOK_OFFSETS == 0:
                look(watch)
        return 0

    cdef bint is_cut(self, const Source* s, size_t offset) noexcept nogil:
        """Whether s may be cut at 0 < offset < s.size, provided that no special token crosses the offset."""
        cdef i32 before, after
        cdef const ScanTables* t = self.scanner.tables()
        if s.unit == 0:
            if s.data[offset] & 0xC0 == 0x80:
                return False
            before = char_before(s.data, offset)
            after = char_at(s.data + offset, s.size - offset)
        else:
            before, after = unit_at(s, offset - 1), unit_at(s, offset)
        if before < 0 or after < 0:
            return False
        return self.pairs[class_of(t, before) * self.columns + class_of(t, after)]


cdef inline u32 class_of(const ScanTables* t, i32 code) noexcept nogil:
    return t.blocks[(<u32>t.pages[code >> 7] << 7) | (code & 127)]


cdef inline i32 char_at(const u8* p, size_t n) noexcept nogil:
    cdef int size
    return p[0] if p[0] < 0x80 else decode_one(p, n, &size)


cdef inline i32 char_before(const u8* p, size_t offset) noexcept nogil:
    """The character whose bytes end at `offset`, or a negative number."""
    cdef size_t start = offset - 1
    cdef int size
    cdef i32 code
    if p[start] < 0x80:
        return p[start]
    while start > 0 and offset - start < 4 and p[start] & 0xC0 == 0x80:
        start -= 1
    code = decode_one(p + start, offset - start, &size)
    return code if <size_t>size == offset - start else -1


cdef int is_crossed(const Source* s, SpecialMatcher matcher, Watch* watch, size_t offset) except -1 nogil:
    """Whether a special token crosses `offset`. True if that cannot be decided."""
    cdef size_t first = offset - matcher.longest if offset > matcher.longest else 0
    cdef size_t stop = offset + matcher.longest if s.size - offset > matcher.longest else s.size
    cdef size_t left, right
    cdef u8* bytes
    cdef bint crossed = True
    if matcher.longest < 2:
        return False
    look(watch)
    if s.unit == 0:
        return matcher.crosses(s.data, offset, s.size)
    bytes = <u8*>malloc(st_transcode_capacity_of(s.unit, stop - first))
    if bytes != NULL:
        left = transcode_units(s, first, offset, bytes)
        if left != <size_t>-1:
            right = transcode_units(s, offset, stop, bytes + left)
            if right != <size_t>-1:
                crossed = matcher.crosses(bytes, left, left + right)
    free(bytes)
    return crossed
