"""Counts the pre-tokens of a text that arrives in chunks. A trainer does this before it merges.

As in streams, the scanner stops at the end of a chunk (`scan/scanner.pxi`). The bytes of the open pre-token
and the scanner's state are carried to the next chunk. Large texts are cut only at positions that the
pattern never looks across (`scan/cuts.pxi`), and several counters count the parts.
"""

@cython.final
cdef class PretokenCounter:
    """Counts the pre-tokens of texts. The caller must ensure that only one call runs at a time."""

    cdef Scanner scanner
    cdef readonly PretokenTable table
    cdef readonly str errors
    cdef u8* bytes              # the last bytes fed, including those of the open pre-token
    cdef size_t size
    cdef size_t capacity
    cdef size_t unfinished      # if errors are strict: bytes of an incomplete character at the end
    cdef Scan walk              # positions relative to `bytes`
    cdef u64 offset             # position of bytes[0] in the whole text

    def __cinit__(self, Scanner scanner not None, str errors not None):
        """errors: strict or surrogateescape."""
        self.scanner = scanner
        self.errors = errors
        self.table = PretokenTable()
        scan_begin(&self.walk, 0)

    def __dealloc__(self):
        free(self.bytes)

    @property
    def pending(self):
        """The number of bytes fed but not counted yet: those of the open pre-token."""
        return self.size - self.walk.start

    @property
    def is_in_character(self):
        """bool: whether errors are strict and the text so far ends inside a character."""
        return self.unfinished > 0

    @property
    def bytes_in(self):
        """The number of bytes fed."""
        return self.offset + self.size

    @property
    def nbytes(self):
        """The number of bytes of memory held."""
        return table_bytes(&self.table.c) + self.capacity

    def worker(self):
        """A new counter with the same settings, for a part of the text."""
        return PretokenCounter(self.scanner, self.errors)

    cdef PretokenCounter ended(self, bytes more):
        """A counter of what would be counted in addition if the text ended after `more`.

        This counter does not change. Raises UnicodeDecodeError as `feed` does with `final`.
        """
        cdef PretokenCounter rest = PretokenCounter(self.scanner, self.errors)
        cdef bytes text = self.bytes[self.walk.start:self.size] if self.size else b""
        cdef u64 base = self.bytes_in - len(text)
        cdef const u8* p
        cdef size_t size
        cdef Scan walk
        text += more
        p, size = <const u8*><const char*>text, len(text)
        rest.check(p, size, True, base)
        scan_begin(&walk, 0)
        with nogil:
            rest.count(p, size, size, &walk, True, base)
        return rest

    def part_end(self, chunk, size_t start, size_t size):
        """(int, int): the end of a part of `chunk` that begins at `start` and has about `size` bytes, and
        the size of `chunk`.

        The part does not end inside a character of well-formed text.
        """
        cdef Text text
        cdef size_t stop
        text_open(&text, NULL, chunk, self.errors)
        try:
            stop = text.size if text.size - start <= size else start + whole(text.data + start, size)
            return stop, text.size
        finally:
            text_close(&text)

    def feed(self, chunk, size_t start=0, stop=None, bint final=False, bint checked=False):
        """Count bytes start:stop of `chunk`. checked: whether `check_bytes` has already checked them.

        Raises UnicodeDecodeError before anything is counted. After a MemoryError, `bytes_in` tells how many
        bytes were fed. None of these are lost, and the next byte of a well-formed text begins a character.
        """
        cdef Text text
        cdef size_t end
        cdef u64 before = self.bytes_in
        text_open(&text, NULL, chunk, self.errors)
        try:
            end = text.size if stop is None else stop
            if not start <= end <= text.size:
                raise ValueError(f"no bytes {start}:{end} in {text.size}")
            if isinstance(chunk, str) and self.unfinished and start == 0 and end:
                raise UnicodeDecodeError(
                    "utf-8", self.bytes[self.size - self.unfinished:self.size],
                    self.bytes_in - self.unfinished, self.bytes_in,
                    "a str chunk follows bytes that end inside a character",
                )
            if not checked:
                self.check(text.data + start, end - start, final, self.bytes_in)
            try:
                with nogil:
                    count_slices(self, text.data + start, end - start, final)
            finally:
                if self.errors == "strict" and self.bytes_in > before:
                    self.unfinished = unfinished_at_end(self.bytes, self.size)
        finally:
            text_close(&text)

    def check_bytes(self, chunk, size_t start, size_t stop, bint final, u64 base):
        """Raise what `feed` would raise for bytes start:stop, without feeding them.

        base: position of chunk[0] in the whole text.
        """
        cdef Text text
        text_open(&text, NULL, chunk, self.errors)
        try:
            self.check(text.data + start, stop - start, final, base + start)
        finally:
            text_close(&text)

    def count_documents(self, list documents not None, size_t start, size_t stop):
        """Count the texts start:stop of a list, each by itself, as the next part of the whole text. Nothing
        may be pending, and the list must not change meanwhile.

        Raises UnicodeDecodeError or MemoryError; some of the texts may have been counted by then.
        """
        count_documents(self, documents, start, stop)

    def go_on(self, PretokenCounter other not None, bytes more not None=b""):
        """End the text after `more`. Then take over the counts and the state of `other`, which has counted
        the text that follows, beginning at offset 0.

        `other` does not change. A MemoryError or UnicodeDecodeError changes nothing.
        """
        cdef PretokenCounter rest = self.ended(more)
        cdef u64 end = self.bytes_in + <u64>len(more)
        with nogil:
            grow_counter(self, other.size)
            self.table.reserve(rest.table.c.cells_used + other.table.c.cells_used,
                               rest.table.c.arena_used + other.table.c.arena_used)
            self.table.take_over(rest.table, 0)
            self.table.take_over(other.table, end)
            if other.size:
                memcpy(self.bytes, other.bytes, other.size)
        self.size, self.walk, self.unfinished = other.size, other.walk, other.unfinished
        self.offset = end + other.offset

    def restart(self):
        """Forget everything and begin again at position 0. The memory is kept."""
        self.size = self.unfinished = self.offset = 0
        scan_begin(&self.walk, 0)
        with nogil:
            self.table.clear()

    def getstate(self):
        """(int, bytes): the number of bytes fed, and the pending bytes."""
        return self.bytes_in, self.bytes[self.walk.start:self.size] if self.size else b""

    def setstate(self, u64 bytes_in, bytes pending not None):
        """Continue from a state that `getstate` returned. The table must be loaded separately.

        Raises ValueError, and changes nothing, if this counter is not new or if `getstate` cannot return
        such a state.
        """
        cdef size_t size = len(pending)
        if size > bytes_in or self.size or self.offset:
            raise ValueError("not the state of a pre-token counter, or this counter is not new")
        self.check(<const u8*><const char*>pending, size, False, bytes_in - size)
        grow_counter(self, size)
        memcpy(self.bytes, <const u8*><const char*>pending, size)
        self.size = size
        if self.errors == "strict":
            self.unfinished = unfinished_at_end(self.bytes, size)
        self.offset = bytes_in - size

    cdef int count(self, const u8* text, size_t readable, size_t end, Scan* walk, bint final,
                   u64 base) except -1 nogil:
        """Count the closed pre-tokens of text[walk.start:end].

        After a MemoryError, `walk` is at the start of the first pre-token that is not counted.
        """
        cdef i64[BATCH] ends
        cdef size_t n
        cdef Marks marks
        cdef Scan next = walk[0]
        marks_begin(&marks, walk.start)
        while True:
            n = scan(self.scanner.tables(), &next, &marks, text, end, final, ends, BATCH, NULL)
            if n:
                self.table.reserve(n, words_for(next.start - walk.start))
                self.table.add(text, readable, walk.start, ends, n, base)
            walk[0] = next
            if n <= BATCH - 64:     # everything that can be decided is counted
                return 0

    cdef int check(self, const u8* text, size_t size, bint final, u64 offset) except -1:
        """Raise UnicodeDecodeError unless text[:size] is UTF-8.

        offset: position of text[0] in the whole text. If that is the next byte to be fed, the text
        continues the bytes of an unfinished character.
        """
        cdef u8[8] both
        cdef size_t waiting, skip = 0, valid, room
        cdef i32 why = 0
        cdef int length = 0
        if self.errors != "strict":
            return 0
        waiting = self.unfinished if offset == self.bytes_in else 0
        if waiting:
            room = size if size < 4 else 4
            memcpy(both, self.bytes + self.size - waiting, waiting)
            memcpy(both + waiting, text, room)
            why = decode_one(both, waiting + room, &length)
            if why == INVALID or (why == INCOMPLETE and (final or room == 4)):
                raise UnicodeDecodeError(
                    "utf-8", (<u8*>both)[:length], offset - waiting, offset - waiting + length,
                    explain(both[0], INVALID if why == INVALID else INCOMPLETE),
                )
            if why == INCOMPLETE:
                return 0
            skip = length - waiting
        with nogil:
            valid = skip + valid_bytes(text + skip, size - skip, &why, &length)
        if why == INVALID or (why == INCOMPLETE and final):
            raise UnicodeDecodeError(
                "utf-8", text[valid:valid + length], offset + valid, offset + valid + length,
                explain(text[valid], why),
            )
        return 0
