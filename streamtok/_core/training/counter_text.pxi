"""The text that a counter takes in: room for it, and whole characters of it."""

cdef int grow_counter(PretokenCounter counter, size_t size) noexcept nogil:
    """Make room for `size` bytes: FITS or NO_MEMORY, also for a pre-token of 4 GiB."""
    cdef size_t capacity
    cdef u8* bytes
    if size + SLACK <= counter.capacity:
        return FITS
    if size > <size_t>0xFFFFFF00:
        return NO_MEMORY
    capacity = size + size // 2 + 4 * SLACK
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
