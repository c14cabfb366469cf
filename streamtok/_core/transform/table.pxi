"""What a normalizer makes of characters, learned from its steps as texts have them.

A character is *inert* if no step does anything about it, whatever stands beside it; nearly all are.
What is known of the others is learned from the slow steps the first time that a text has one:

- what it becomes by itself, if anything (CHANGED);
- whether it may be *joined* to the character before it, or *hold* the one behind it. Between two
  characters is a border unless one joins and the other holds, or one of them does so with any.

What stands between two borders is an *element*. Elements of one character are changed by the table;
longer ones, and the first and last one of a text, where steps do more, are asked for once, and kept.

Marks that a normalization form leaves as they are need not be asked for: that is so if combining
classes do not fall, and no mark composes with its starter. This is the quick check of UAX #15, with
"maybe" refined.
"""

cdef enum:
    CODE_POINTS = 0x110000
    SYLLABLES = 0xAC00      # of Hangul, in its order: first letters, vowels, last letters or none
    SYLLABLES_END = 0xD7A4
    LAST_LETTERS = 28
    LOOK_BACK = 32          # characters, for the starter of a mark

    # Of a code point:
    CLASS = 0xFF            # its combining class; and bits beyond it:
    UNASKED = 0x100
    CHANGED = 0x200
    COMPOSES = 0x400        # with some that open
    OPENS = 0x800
    HOLDS = 0x1000          # what joins,
    HOLDS_ANY = 0x2000      # or whatever is behind it
    JOINS = 0x4000          # to what holds,
    JOINS_ANY = 0x8000      # or to whatever is before it
    HAS_TO_DO = UNASKED | CHANGED | HOLDS_ANY | JOINS | JOINS_ANY

    ELEMENTS_KEPT = 1 << 14
    ELEMENT_BYTES = 1 << 22     # of all that are kept, with what they become
    ELEMENT_SLOTS = 1 << 15
    LONGEST_ELEMENT = 512       # bytes of one that is kept


cdef enum:                 # where an element stands
    AT_BEGIN = 1              # at the beginning of a stretch,
    AT_FIRST = 2            # and nothing was before that
    AT_END = 4
    WITHOUT_ROWS = 8        # it is not asked where its text is from


cdef struct Change:         # what an element becomes; behind it: the rows, the element, its text
    u64 hash
    size_t key_size
    size_t size
    size_t n_rows
    u8 where
    bint is_same            # nothing


cdef inline i64* rows_of(Change* change) noexcept nogil:
    """[n_rows * 3] (characters, bytes of each now, bytes of each before)."""
    return <i64*>(change + 1)


cdef inline u8* key_of(Change* change) noexcept nogil:
    return <u8*>(rows_of(change) + 3 * change.n_rows)


cdef inline u8* text_of(Change* change) noexcept nogil:
    return key_of(change) + change.key_size


cdef Change* make_change(bytes key, int where, bytes text, rows) except NULL:
    """rows: as in `rows_of`."""
    cdef size_t n_rows = len(rows), i, k
    cdef Change* change = <Change*>malloc(
        sizeof(Change) + 3 * n_rows * sizeof(i64) + len(key) + len(text)
    )
    if change == NULL:
        raise MemoryError("no memory for what characters become")
    change.key_size, change.size, change.n_rows = len(key), len(text), n_rows
    change.hash = st_hash_bytes(key, change.key_size)
    change.where = where
    change.is_same = key == text and n_rows == 1 and rows[0][1:] == (1, 1)
    try:
        for i in range(n_rows):
            for k in range(3):
                rows_of(change)[3 * i + k] = rows[i][k]
    except BaseException:
        free(change)
        raise
    memcpy(key_of(change), <const u8*>key, change.key_size)
    memcpy(text_of(change), <const u8*>text, change.size)
    return change


@cython.final
cdef class CharacterTable:
    """Steps of a normalizer as a table that fills itself. Shared by threads.

    learn: called with a code point; returns (flags, text, rows): how it is joined, and what it
    becomes by itself, if anything. resolve: called with an element and where it stands; returns
    (text, rows).
    """

    cdef u16* kinds             # of each code point
    cdef void** changes         # Change* of each that is CHANGED
    cdef u64* pairs             # of a starter and a mark that change together, in order
    cdef size_t n_pairs
    cdef st_leads leads         # bytes that begin, or are, a character that has to do with anything
    cdef bint asks_for_begin    # something is done at the beginning,
    cdef bint asks_for_end      # at the end
    cdef bint has_borders       # not every place is a border
    cdef bint joins_any         # a character may be joined to any
    cdef bint is_form           # what joins and holds is what `pairs` says, and combining classes
    cdef object learn, resolve
    cdef void** elements        # [ELEMENT_SLOTS] Change*
    cdef size_t n_elements, element_bytes
    cdef size_t n_calls         # that may look into `elements` now

    def __cinit__(self, changes, joins, holds, marks, pairs, bint asks_for_begin, bint asks_for_end,
                  bint joins_any, learn, resolve):
        """changes: ranges (first, last) of code points to learn about. joins: whether there is any
        place without a border; holds: ranges of those that hold what joins, and may do nothing else.

        marks: (code point, combining class) if what is joined is what a normalization form
        composes or reorders, and nothing else, or else None; pairs: (starter, mark) that change
        together. joins_any: a character may be joined to any.
        """
        cdef size_t i
        self.kinds = <u16*>calloc(CODE_POINTS, sizeof(u16))
        self.changes = <void**>calloc(CODE_POINTS, sizeof(void*))
        self.elements = <void**>calloc(ELEMENT_SLOTS, sizeof(void*))
        found = sorted(pairs)
        self.pairs = <u64*>calloc(len(found) + 1, sizeof(u64))
        if self.kinds == NULL or self.changes == NULL or self.elements == NULL or self.pairs == NULL:
            raise MemoryError("no memory for the kinds of characters")
        self.asks_for_begin, self.asks_for_end = asks_for_begin, asks_for_end
        self.has_borders = joins
        self.joins_any = joins_any
        self.learn, self.resolve = learn, resolve
        for low, high in changes:
            self.add(low, high, UNASKED)
        for low, high in holds:
            self.add(low, high, HOLDS)
        if marks is not None:
            self.is_form = True
            for code, ccc in marks:
                self.add(code, code, <u16>(ccc & CLASS))
            for first, last in [(0x1100, 0x1112), (SYLLABLES, SYLLABLES_END - 1)]:
                self.add(first, last, OPENS)
            for first, last in [(0x1161, 0x1175), (0x11A8, 0x11C2)]:
                self.add(first, last, COMPOSES)
            for i in range(<size_t>len(found)):
                first, last = found[i]
                self.add(first, first, OPENS)
                self.add(last, last, COMPOSES)
                self.pairs[i] = <u64>first << 32 | <u64>last
        self.n_pairs = len(found)
        self.leads.leaves_ascii = not any(self.leads.has[:128])

    def __dealloc__(self):
        cdef size_t i
        if self.changes != NULL:
            for i in range(CODE_POINTS):
                free(self.changes[i])
        if self.elements != NULL:
            for i in range(ELEMENT_SLOTS):
                free(self.elements[i])
        free(self.kinds)
        free(self.changes)
        free(self.elements)
        free(self.pairs)

    cdef int add(self, u32 low, u32 high, u16 kind) except -1:
        cdef u32 code
        if low > high or high >= CODE_POINTS:
            raise ValueError(f"U+{low:04X} to U+{high:04X} is no range of code points")
        for code in range(low, high + 1):
            self.kinds[code] |= kind
            if not kind & UNASKED:
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

    cdef int learn_about(self, u32 code) except -1:
        """Ask the steps what they do about a character."""
        cdef Change* change = NULL
        cdef u16 kind
        cdef bytes key
        flags, text, rows = self.learn(code)
        kind = flags & (HOLDS | HOLDS_ANY | JOINS | JOINS_ANY)
        if text is not None:
            key = chr(code).encode()
            change = make_change(key, 0, (<str?>text).encode(), rows)
            if change.is_same:
                free(change)
            else:
                kind |= CHANGED
                with cython.critical_section(self):
                    if self.changes[code] == NULL:
                        st_store_pointer(&self.changes[code], change)
                        change = NULL
                free(change)            # another thread was quicker
        # Whoever sees it sees the change, too.
        st_store_u16(&self.kinds[code], (self.kinds[code] & (CLASS | COMPOSES | OPENS)) | kind)
        return 0

    cdef Change* ask_about(self, const u8* p, size_t size, u8 where, bint wants_rows,
                           bint* is_kept) except NULL:
        """Ask the steps what an element becomes. is_kept: it must not be freed."""
        cdef bytes key = p[:size]
        cdef Change* change
        cdef size_t at
        cdef bint is_short = size <= LONGEST_ELEMENT
        text, rows = self.resolve(
            key.decode(), where if is_short or wants_rows else where | WITHOUT_ROWS
        )
        change = make_change(key, where, (<str?>text).encode(), rows)
        is_kept[0] = False
        if not is_short or change.size > ELEMENT_BYTES >> 4:
            return change
        with cython.critical_section(self):
            if self.is_full() and self.n_calls == 1:
                for at in range(ELEMENT_SLOTS):
                    free(self.elements[at])
                    self.elements[at] = NULL
                self.n_elements = self.element_bytes = 0
            if not self.is_full():
                self.element_bytes += sizeof(Change) + size + change.size + 24 * change.n_rows
                at = change.hash & (ELEMENT_SLOTS - 1)
                while self.elements[at] != NULL:
                    at = (at + 1) & (ELEMENT_SLOTS - 1)
                st_store_pointer(&self.elements[at], change)
                self.n_elements += 1
                is_kept[0] = True
        return change

    cdef bint is_full(self) noexcept:
        return self.n_elements >= ELEMENTS_KEPT or self.element_bytes >= ELEMENT_BYTES


cdef Change* find_element(CharacterTable t, const u8* p, size_t size, u8 where) noexcept nogil:
    """What is known of an element; NULL: nothing."""
    cdef u64 hash
    cdef size_t at
    cdef Change* change
    if size > LONGEST_ELEMENT:
        return NULL
    hash = st_hash_bytes(p, size)
    at = hash & (ELEMENT_SLOTS - 1)
    while True:
        change = <Change*>st_load_pointer(&t.elements[at])
        if change == NULL:
            return NULL
        if (change.hash == hash and change.where == where and change.key_size == size
                and memcmp(key_of(change), p, size) == 0):
            return change
        at = (at + 1) & (ELEMENT_SLOTS - 1)


cdef inline u16 kind_of(CharacterTable t, u32 code) noexcept nogil:
    return st_load_u16(&t.kinds[code])


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


cdef inline size_t before(const u8* p, size_t i) noexcept nogil:
    """Where the character before i begins."""
    i -= 1
    while i > 0 and (p[i] & 0xC0) == 0x80:
        i -= 1
    return i


cdef inline bint are_joined(u16 one, u16 next) noexcept nogil:
    """Whether there is no border between characters of these kinds."""
    return (one & HOLDS_ANY) | (next & JOINS_ANY) or (one & HOLDS and next & JOINS)


cdef bint compose(CharacterTable t, const u8* p, size_t start, size_t i) noexcept nogil:
    """Whether a normalization form may change the mark at i, which it leaves by itself, or what is
    between `start` and it.
    """
    cdef int length = 0
    cdef u32 mark = character_at(p, i, &length), other
    cdef u16 kind = kind_of(t, mark), before_it
    cdef u16 ccc = kind & CLASS
    cdef int step
    if i == start:
        return False
    i = before(p, i)
    other = character_at(p, i, &length)
    before_it = kind_of(t, other)
    if ccc != 0 and (before_it & CLASS) > ccc:
        return True
    if ccc != 0 and (not kind & COMPOSES or (before_it & CLASS) == ccc):
        return False            # one of its class stands between it and the starter
    for step in range(LOOK_BACK):
        if not before_it & CLASS:
            return before_it & OPENS and kind & COMPOSES and are_pair(t, other, mark)
        if i == start:
            return False
        i = before(p, i)
        other = character_at(p, i, &length)
        before_it = kind_of(t, other)
    return True


cdef bint are_pair(CharacterTable t, u32 starter, u32 mark) noexcept nogil:
    """Whether a starter that opens changes with a mark behind it that composes."""
    cdef u64 wanted = <u64>starter << 32 | mark
    cdef size_t low = 0, high = t.n_pairs, middle
    if 0x1161 <= mark <= 0x1175 and 0x1100 <= starter <= 0x1112:
        return True
    if 0x11A8 <= mark <= 0x11C2 and SYLLABLES <= starter < SYLLABLES_END:
        return (starter - SYLLABLES) % LAST_LETTERS == 0
    while low < high:
        middle = (low + high) // 2
        if t.pairs[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low < t.n_pairs and t.pairs[low] == wanted
