"""Texts with their ids, in flat arrays, found by a hash table."""

cdef enum:
    AT_ONCE = 16            # look-ups that wait for memory together
    SLACK = 16              # bytes that can be read behind the last text

@cython.final
cdef class TextIds:
    """What a JSON object of integers holds: texts, in their order, and an id for each. Immutable.

    Made by `read_tables`; the texts are UTF-8, and no two are equal. Rows are numbered from 0.
    """

    cdef u8* blob               # all texts, end to end, and SLACK
    cdef u32* offsets           # [n + 1]
    cdef u32* ids               # [n]
    cdef u32 n
    cdef u64* slots             # fingerprint << 32 | row + 1; 0: empty
    cdef u64 mask

    def __cinit__(self):
        self.blob = <u8*>calloc(SLACK, 1)
        self.offsets = <u32*>calloc(1, sizeof(u32))
        self.ids = <u32*>calloc(1, sizeof(u32))
        if self.blob == NULL or self.offsets == NULL or self.ids == NULL or self.index() != 0:
            raise MemoryError("no memory for texts and ids")

    def __dealloc__(self):
        free(self.blob)
        free(self.offsets)
        free(self.ids)
        st_free_block(self.slots)

    def __len__(self):
        return self.n

    cdef u32 find(self, const u8* p, size_t n, u64 h) noexcept nogil:
        """The row of a text with this hash, or NONE."""
        cdef u64 at = h & self.mask, slot
        cdef u32 row
        while True:
            slot = self.slots[at]
            if slot == 0:
                return NONE
            if (slot ^ h) >> 32 == 0:
                row = <u32>slot - 1
                if (self.offsets[row + 1] - self.offsets[row] == n
                        and memcmp(self.blob + self.offsets[row], p, n) == 0):
                    return row
            at = (at + 1) & self.mask

    cdef int index(self) noexcept nogil:
        """Fill the slots: 0, or -1 if there is no memory, -2 if a text is there twice."""
        cdef u64 size = 16, at, slot, h
        cdef u64[AT_ONCE] hashes
        cdef u32 first, row, end = 0
        while size < 2 * <u64>self.n:
            size *= 2
        st_free_block(self.slots)
        self.slots = <u64*>st_new_block(size * sizeof(u64), 64)
        if self.slots == NULL:
            return -1
        memset(self.slots, 0, size * sizeof(u64))
        self.mask = size - 1
        while end < self.n:
            first = end
            end = first + AT_ONCE if self.n - first > AT_ONCE else self.n
            for row in range(first, end):
                h = st_hash_bytes(self.blob + self.offsets[row],
                              self.offsets[row + 1] - self.offsets[row])
                hashes[row - first] = h
                ST_PREFETCH(&self.slots[h & self.mask])
            for row in range(first, end):
                h = hashes[row - first]
                at = h & self.mask
                while self.slots[at] != 0:
                    slot = self.slots[at]
                    if (slot ^ h) >> 32 == 0 and self.same(<u32>slot - 1, row):
                        return -2
                    at = (at + 1) & self.mask
                self.slots[at] = (h & <u64>0xFFFFFFFF00000000) | (<u64>row + 1)
        return 0

    cdef bint same(self, u32 a, u32 b) noexcept nogil:
        cdef size_t size = self.offsets[a + 1] - self.offsets[a]
        return (self.offsets[b + 1] - self.offsets[b] == size
                and memcmp(self.blob + self.offsets[a], self.blob + self.offsets[b], size) == 0)

    def row(self, str text not None):
        """int: the row of this text, -1 if it is not there."""
        cdef bytes padded
        cdef Py_ssize_t size
        cdef u32 found
        try:
            padded = text.encode() + b"\0" * SLACK
        except UnicodeEncodeError:
            return -1
        size = PyBytes_GET_SIZE(padded) - SLACK
        found = self.find(<const u8*>PyBytes_AS_STRING(padded), size,
                          st_hash_bytes(<const u8*>PyBytes_AS_STRING(padded), size))
        return -1 if found == NONE else found

    def get(self, str text not None, default=None):
        """int: the id of this text; `default` if it is not there."""
        found = self.row(text)
        return default if found < 0 else self.ids[<size_t>found]

    def text(self, size_t row):
        """str: the text of a row."""
        if row >= self.n:
            raise IndexError(f"row {row} of {self.n}")
        return PyUnicode_DecodeUTF8(<const char*>self.blob + self.offsets[row],
                                    self.offsets[row + 1] - self.offsets[row], NULL)

    def to_dict(self):
        """dict[str, int]: the texts, in order, and their ids."""
        cdef dict found = {}
        cdef u32 row
        for row in range(self.n):
            found[PyUnicode_DecodeUTF8(<const char*>self.blob + self.offsets[row],
                                       self.offsets[row + 1] - self.offsets[row], NULL)] = self.ids[row]
        return found

    def arrays(self):
        """(bytes, uint32 [n + 1], uint32 [n]): all texts end to end, where they begin, the ids."""
        return (
            PyBytes_FromStringAndSize(<const char*>self.blob, self.offsets[self.n]),
            copied(self.offsets, self.n + 1),
            copied(self.ids, self.n),
        )

    def replaced(self, bytes old not None, bytes new not None):
        """(bytes, uint32 [n + 1]): the texts as in `arrays`, with `new` in each for `old`.

        old: some bytes, at least as many as `new` has.
        """
        cdef size_t old_size = PyBytes_GET_SIZE(old), new_size = PyBytes_GET_SIZE(new), at = 0, i, end
        cdef const u8* wanted = <const u8*>PyBytes_AS_STRING(old)
        cdef const u8* given = <const u8*>PyBytes_AS_STRING(new)
        cdef u32 row
        if old_size == 0 or new_size > old_size:
            raise ValueError(f"{old_size} bytes cannot be replaced by {new_size}")
        offsets = np.empty(self.n + 1, np.uint32)
        cdef u32* offset_view = <u32*>cnp.PyArray_DATA(offsets)
        cdef u8* blob = <u8*>malloc(<size_t>self.offsets[self.n] + SLACK)
        if blob == NULL:
            raise MemoryError("no memory for the tokens")
        try:
            with nogil:
                for row in range(self.n):
                    offset_view[row] = <u32>at
                    i = self.offsets[row]
                    end = self.offsets[row + 1]
                    while i < end:
                        if (self.blob[i] == wanted[0] and end - i >= old_size
                                and memcmp(self.blob + i, wanted, old_size) == 0):
                            memcpy(blob + at, given, new_size)
                            at += new_size
                            i += old_size
                        else:
                            blob[at] = self.blob[i]
                            at += 1
                            i += 1
                offset_view[self.n] = <u32>at
            return PyBytes_FromStringAndSize(<const char*>blob, at), offsets
        finally:
            free(blob)

    def in_bytes(self, bytes alphabet not None):
        """(bytes, uint32 [n + 1], bool [n]): the texts in a byte alphabet, and which are not in it.

        alphabet: 512 numbers of two bytes, the byte that each character stands for, 0xFFFF for
        none. A text with any other character stays its own UTF-8.
        """
        if PyBytes_GET_SIZE(alphabet) != 512 * sizeof(u16):
            raise ValueError(f"an alphabet has 512 characters of two bytes, not {len(alphabet)} bytes")
        cdef u16[512] table
        memcpy(table, PyBytes_AS_STRING(alphabet), 512 * sizeof(u16))
        cdef u32 total = self.offsets[self.n], row, at = 0
        outside = np.zeros(self.n, np.bool_)
        offsets = np.empty(self.n + 1, np.uint32)
        cdef u8* outside_view = <u8*>cnp.PyArray_DATA(outside)
        cdef u32* offset_view = <u32*>cnp.PyArray_DATA(offsets)
        cdef u8* blob = <u8*>malloc(<size_t>total + SLACK)
        cdef i64 size
        if blob == NULL:
            raise MemoryError("no memory for the tokens")
        try:
            with nogil:
                for row in range(self.n):
                    offset_view[row] = at
                    total = self.offsets[row + 1] - self.offsets[row]
                    size = to_alphabet(table, self.blob + self.offsets[row], total, blob + at)
                    if size < 0:
                        outside_view[row] = 1
                        memcpy(blob + at, self.blob + self.offsets[row], total)
                        size = total
                    at += <u32>size
                offset_view[self.n] = at
            return PyBytes_FromStringAndSize(<const char*>blob, at), offsets, outside
        finally:
            free(blob)


cdef i64 to_alphabet(const u16* table, const u8* p, size_t n, u8* out) noexcept nogil:
    """How many bytes p[:n], well-formed UTF-8, stands for; they go to `out`. -1: it is not in it."""
    cdef size_t i = 0
    cdef i64 count = 0
    cdef u32 code
    while i < n:
        code = p[i]
        if code < 0x80:
            i += 1
        elif code < 0xC8:           # up to U+01FF, in two bytes
            code = (code & 0x1F) << 6 | (p[i + 1] & 0x3F)
            i += 2
        else:
            return -1
        if table[code] > 0xFF:
            return -1
        out[count] = <u8>table[code]
        count += 1
    return count


cdef object copied(const u32* numbers, size_t n):
    """numpy.uint32 [n] of these numbers, read-only."""
    array = np.empty(n, np.uint32)
    memcpy(cnp.PyArray_DATA(array), numbers, n * sizeof(u32))
    array.flags.writeable = False
    return array
