"""Where a counter may cut text: at whole characters, and between pairs that no pre-token holds."""

cdef int open_text(Text* text, object chunk, str errors) except -1:
    """As text_open, but leave it to `check` whether bytes are UTF-8."""
    return text_open(text, NULL, chunk, "strict" if isinstance(chunk, str) and errors == "strict"
                     else "surrogateescape")


cdef inline size_t counter_room(size_t size) noexcept nogil:
    return size + size // 2 + 4 * SLACK


cdef int grow_counter(PretokenCounter counter, size_t size) noexcept nogil:
    """Make room for `size` bytes: FITS or NO_MEMORY, also for a pre-token of 4 GiB."""
    cdef size_t capacity
    cdef u8* bytes
    if size + SLACK <= counter.capacity:
        return FITS
    if size > <size_t>0xFFFFFF00:
        return NO_MEMORY
    capacity = counter_room(size)
    bytes = <u8*>realloc(counter.bytes, capacity)
    if bytes == NULL:
        return NO_MEMORY
    counter.bytes = bytes
    counter.capacity = capacity
    return FITS


cdef void exchange_bytes(PretokenCounter a, PretokenCounter b) noexcept:
    a.bytes, b.bytes = b.bytes, a.bytes
    a.capacity, b.capacity = b.capacity, a.capacity
    b.size = 0


cdef size_t whole(const u8* text, size_t size) noexcept nogil:
    """Bytes of text[:size + 1], at most `size`, that end with a character of well-formed text."""
    cdef size_t back = 0
    while back < 3 and back < size and text[size - back] & 0xC0 == 0x80:
        back += 1
    return size if text[size - back] & 0xC0 == 0x80 else size - back


cdef list cuts_between(const u8* pairs, const u8* text, int kind, size_t start, size_t stop,
                       size_t parts):
    """Up to parts + 1 places in start:stop where text may be cut; see `PretokenCounter.cuts`.

    kind: bytes of a unit of the text, which is UTF-8 or the characters of a str.
    """
    cdef size_t i, place, last = start
    cdef list found = []
    for i in range(parts):
        place = start + (stop - start) // parts * i
        place = next_cut(pairs, text, kind, place if place > last else last, stop)
        if place == stop:
            break
        found.append(place)
        last = place
    place = last_cut(pairs, text, kind, last, stop)
    if place:
        found.append(place)
    return found


cdef inline u32 unit(const u8* text, int kind, size_t i) noexcept nogil:
    if kind == 1:
        return text[i]
    return (<const u16*>text)[i] if kind == 2 else (<const u32*>text)[i]


cdef inline bint is_cut(const u8* pairs, const u8* text, int kind, size_t i) noexcept nogil:
    """Whether no pre-token holds both units i - 1 and i; both are ASCII then."""
    cdef u32 left = unit(text, kind, i - 1), right = unit(text, kind, i)
    return (left | right) < 0x80 and pairs[left << 7 | right]


cdef size_t next_cut(const u8* pairs, const u8* text, int kind, size_t start,
                     size_t end) noexcept nogil:
    """The first place after `start` where text[:end] may be cut, or `end`."""
    cdef size_t i
    for i in range(start + 1, end):
        if is_cut(pairs, text, kind, i):
            return i
    return end


cdef size_t last_cut(const u8* pairs, const u8* text, int kind, size_t start,
                     size_t end) noexcept nogil:
    """The last place after `start` where text[:end] may be cut, or 0."""
    cdef size_t i = end
    while i > start + 1:
        i -= 1
        if is_cut(pairs, text, kind, i):
            return i
    return 0
