"""A table of what the elements of a text become, for any sequence of steps (`normalizers/elements.py`).

The table fills itself: it asks the steps about a character or an element when it first occurs in a text. A
character that no step changes or joins to another is *inert*: it is looked up only if the character after
it may join it.
"""

cdef enum:
    CODE_POINTS = 0x110000
    ELEMENTS_KEPT = 1 << 14
    ELEMENT_BYTES = 1 << 22     # all cached elements, with their results
    ELEMENT_SLOTS = 1 << 15
    LONGEST_ELEMENT = 512       # longest cached element, in bytes
    SHORT_TEXT = 16             # bytes copied in one go
    PAUSE_EVERY = 1 << 18       # bytes between two checks for signals

    PLACE_BEGIN = 1         # the element is at the start of a segment,
    PLACE_FIRST = 2         # of the first segment of its stream,
    PLACE_END = 4           # or at the end of a segment

    KIND_UNKNOWN = 1        # the steps have not been asked yet
    KIND_CHANGED = 2
    KIND_JOINS_ANY = 4      # joins anything before it
    KIND_HOLDS_ANY = 8      # holds anything after it
    KIND_EMPTY = 16         # empty at some step, at the start of a segment
    KIND_LATER = 32         # something before its text was removed
    KIND_GONE = 64          # empty at some step: its neighbours may interact across it


cdef u64 SAME = 0xFFFFFFFFFFFFFFFF  # as `before` of a row: each byte is unchanged


cdef union KindWord:        # a CharKind as one word, for atomic access
    CharKind kind
    u32 word


cdef inline Row* element_rows(Element* e) noexcept nogil:
    return <Row*>(e + 1)


cdef inline u8* element_key(Element* e) noexcept nogil:
    return <u8*>(element_rows(e) + e.n_rows)


cdef inline u8* element_text(Element* e) noexcept nogil:
    return element_key(e) + e.key_size


cdef Element* make_element(bytes key, u8 where, object answer) except NULL:
    """answer: an `Element` of `normalizers/elements.py`."""
    cdef bytes text
    cdef Element* e
    cdef size_t n_rows, i
    made, joins, holds, flags, rows = answer
    text = (<str?>made).encode("utf-8", "surrogateescape")
    n_rows = len(rows)
    e = <Element*>memory_for(sizeof(Element) + n_rows * sizeof(Row) + len(key) + len(text) + SHORT_TEXT, 1,
                             b"bytes that characters become")
    e.key_size, e.size, e.n_rows, e.where = <u32>len(key), <u32>len(text), <u32>n_rows, where
    e.hash = st_hash_bytes(key, len(key))
    e.is_same = key == text
    e.kind.joins, e.kind.holds, e.kind.flags = joins, holds, flags
    try:
        for i in range(n_rows):
            now, before_it = rows[i]
            element_rows(e)[i].now = now
            element_rows(e)[i].before = SAME if before_it < 0 else <u64>before_it
    except BaseException:
        free(e)
        raise
    memcpy(element_key(e), <const u8*>key, len(key))
    memcpy(element_text(e), <const u8*>text, len(text))
    return e


@cython.final
cdef class ElementTable:
    """The results of a sequence of normalizer steps, filled in as texts need them. Shared by threads.

    elements: the `Elements` of `normalizers/elements.py` that asks the steps.
    """

    cdef u32* kinds             # [CODE_POINTS] KindWord
    cdef void** changes         # [CODE_POINTS] Element*, if KIND_CHANGED
    cdef st_leads leads         # first bytes of characters that are not inert, and bytes that are not UTF-8
    cdef readonly object elements
    cdef readonly bint asks_for_begin
    cdef readonly bint asks_for_end
    cdef readonly bint joins_any
    cdef readonly int n_caring  # number of steps that look at neighbours
    cdef void** kept            # [ELEMENT_SLOTS] Element*, a hash table
    cdef size_t n_kept, kept_bytes
    cdef size_t n_calls         # running calls, which may read `kept`

    def __cinit__(self, elements):
        self.elements = elements
        self.kinds = <u32*>zeros_for(CODE_POINTS, sizeof(u32), b"characters")
        self.changes = <void**>zeros_for(CODE_POINTS, sizeof(void*), b"characters")
        self.kept = <void**>zeros_for(ELEMENT_SLOTS, sizeof(void*), b"elements")
        self.asks_for_begin = elements.asks_for_begin
        self.asks_for_end = elements.asks_for_end
        self.joins_any = elements.joins_any
        self.n_caring = elements.n_caring
        for bit, ranges in enumerate(elements.holds):
            for low, high in ranges:
                self.add(low, high, <u8>(1 << bit), 0)
        for low, high in elements.learned:
            self.add(low, high, 0, KIND_UNKNOWN)
        self.leads.leaves_ascii = not any(self.leads.has[:128])

    def __dealloc__(self):
        cdef size_t i
        if self.changes != NULL:
            for i in range(CODE_POINTS):
                free(self.changes[i])
        if self.kept != NULL:
            for i in range(ELEMENT_SLOTS):
                free(self.kept[i])
        free(self.kinds)
        free(self.changes)
        free(self.kept)

    cdef bint keeps_ascii(self):
        """Whether no ASCII text is changed."""
        return self.leads.leaves_ascii and not self.asks_for_begin and not self.asks_for_end

    cdef int add(self, u32 low, u32 high, u8 holds, u8 flags) except -1:
        cdef u32 code
        cdef KindWord k
        if low > high or high >= CODE_POINTS:
            raise ValueError(f"U+{low:04X} to U+{high:04X} is not a range of code points")
        for code in range(low, high + 1):
            k.word = self.kinds[code]
            k.kind.holds |= holds
            k.kind.flags |= flags
            self.kinds[code] = k.word
            if not flags:
                continue
            if code < 0x80:
                st_leads_add(&self.leads, <u8>code)
            elif code < 0x800:
                st_leads_add(&self.leads, <u8>(0xC0 | code >> 6))
            elif code < 0x10000:
                st_leads_add(&self.leads, <u8>(0xE0 | code >> 12))
                if 0xDC80 <= code <= 0xDCFF:            # a byte that is not UTF-8
                    st_leads_add(&self.leads, <u8>(code & 0xFF))
            else:
                st_leads_add(&self.leads, <u8>(0xF0 | code >> 18))
        return 0

    cdef int learn(self, u32 code) except -1 nogil:
        """Ask the steps about a character in the middle of a segment."""
        cdef KindWord k
        cdef Element* e
        with gil:
            key = chr(code).encode("utf-8", "surrogateescape")
            e = make_element(key, 0, self.elements.ask(chr(code), 0))
            k.word = 0
            k.kind = e.kind
            if e.is_same:
                free(e)
            else:
                k.kind.flags |= KIND_CHANGED
                with cython.critical_section(self):
                    if self.changes[code] == NULL:
                        st_store_pointer(&self.changes[code], e)
                        e = NULL
                free(e)                 # NULL, unless another thread came first
            # The kind is stored after the change, so a thread that sees the kind also sees the change.
            st_store_u32(&self.kinds[code], k.word)
        return 0

    cdef Element* ask(self, const u8* p, size_t size, u8 where, bint may_forget,
                      bint* is_kept) except NULL nogil:
        """Ask the steps about an element that is not cached. is_kept: set if the table now caches, and
        owns, the result. may_forget: the caller holds no other element, so the cache may be cleared.
        """
        cdef Element* e
        cdef size_t at
        is_kept[0] = False
        with gil:
            key = p[:size]
            e = make_element(key, where, self.elements.ask(key.decode("utf-8", "surrogateescape"), where))
            if size > LONGEST_ELEMENT or e.size > ELEMENT_BYTES >> 4:
                return e
            with cython.critical_section(self):
                if may_forget and self.is_full() and self.n_calls == 1:
                    for at in range(ELEMENT_SLOTS):
                        free(self.kept[at])
                        self.kept[at] = NULL
                    self.n_kept = self.kept_bytes = 0
                if not self.is_full():
                    self.kept_bytes += sizeof(Element) + size + e.size + e.n_rows * sizeof(Row)
                    at = e.hash & (ELEMENT_SLOTS - 1)
                    while self.kept[at] != NULL:
                        at = (at + 1) & (ELEMENT_SLOTS - 1)
                    st_store_pointer(&self.kept[at], e)
                    self.n_kept += 1
                    is_kept[0] = True
        return e

    cdef bint is_full(self) noexcept:
        return self.n_kept >= ELEMENTS_KEPT or self.kept_bytes >= ELEMENT_BYTES


cdef inline void enter_table(ElementTable t):
    """Keep cached elements alive until `leave_table`. Only the caller's own `ask` may free them."""
    with cython.critical_section(t):
        t.n_calls += 1


cdef inline void leave_table(ElementTable t):
    with cython.critical_section(t):
        t.n_calls -= 1


cdef Element* find_kept(ElementTable t, const u8* p, size_t size, u8 where) noexcept nogil:
    """The cached result for an element, or NULL."""
    cdef u64 hash
    cdef size_t at
    cdef Element* e
    if size > LONGEST_ELEMENT:
        return NULL
    hash = st_hash_bytes(p, size)
    at = hash & (ELEMENT_SLOTS - 1)
    while True:
        e = <Element*>st_load_pointer(&t.kept[at])
        if e == NULL:
            return NULL
        if (e.hash == hash and e.where == where and e.key_size == size
                and memcmp(element_key(e), p, size) == 0):
            return e
        at = (at + 1) & (ELEMENT_SLOTS - 1)


cdef inline CharKind kind_at(ElementTable t, u32 code) noexcept nogil:
    cdef KindWord k
    k.word = st_load_u32(&t.kinds[code])
    return k.kind


cdef inline u32 utf8_at(const u8* p, size_t i, size_t n, int* size) noexcept nogil:
    """The character at p[i]; U+DC80 to U+DCFF for a byte that is not UTF-8."""
    cdef i32 code
    if p[i] < 0x80:
        size[0] = 1
        return p[i]
    code = decode_one(p + i, n - i, size)
    if code < 0:
        size[0] = 1
        return 0xDC00 + p[i]
    return <u32>code


cdef inline size_t utf8_before(const u8* p, size_t low, size_t i, size_t n) noexcept nogil:
    """The start of the character before i, but not before `low`."""
    cdef size_t start = i - 1
    cdef int size
    while start > low and i - start < 4 and (p[start] & 0xC0) == 0x80:
        start -= 1
    if p[start] < 0x80:
        return i - 1
    if decode_one(p + start, n - start, &size) >= 0 and start + <size_t>size == i:
        return start
    return i - 1


cdef inline bint is_joined(CharKind one, CharKind next) noexcept nogil:
    """Whether there is no border between `one` and `next`."""
    return is_pulled(one, next) or one.flags & (KIND_HOLDS_ANY | KIND_EMPTY) != 0


cdef inline bint is_pulled(CharKind one, CharKind next) noexcept nogil:
    """Whether `next` joins `one`, so that there is no border between them."""
    return (one.holds & next.joins or next.flags & KIND_JOINS_ANY) != 0


cdef inline CharKind kind_of_both(CharKind one, CharKind next) noexcept nogil:
    """The likely kind of two joined elements, guessed from their outer ends. The guess is wrong only if
    they change each other.
    """
    cdef CharKind both
    both.joins, both.holds = one.joins, next.holds
    both.flags = (one.flags & KIND_JOINS_ANY) | (next.flags & KIND_HOLDS_ANY) | (one.flags & next.flags & KIND_GONE)
    if next.flags & KIND_GONE:
        both.holds |= one.holds & next.joins
        both.flags |= one.flags & (KIND_HOLDS_ANY | KIND_EMPTY)
    return both
