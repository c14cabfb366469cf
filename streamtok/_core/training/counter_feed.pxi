"""Feeds text to a counter: slice by slice, after the bytes of the open pre-token."""

cdef enum:
    SLICE = 1 << 16         # bytes of a text that are counted at a time
    SLACK = 64              # readable bytes after the text


cdef int grow_counter(PretokenCounter counter, size_t size) except -1 nogil:
    """Make room for `size` bytes. Raises MemoryError for 4 GiB, too, since the size of a pre-token must fit
    into 32 bits.
    """
    if size > <size_t>0xFFFFFF00:
        no_memory(size, b"bytes of a pre-token")
    if size + SLACK > counter.capacity:
        counter.bytes = <u8*>grown(counter.bytes, &counter.capacity, size + SLACK, 1, b"bytes of a pre-token")
    return 0


cdef size_t whole(const u8* text, size_t size) noexcept nogil:
    """The last position up to `size` that is not inside a character if the text is well-formed. Reads
    text[size].
    """
    cdef size_t back = 0
    while back < 3 and back < size and text[size - back] & 0xC0 == 0x80:
        back += 1
    return size if text[size - back] & 0xC0 == 0x80 else size - back


cdef int count_slices(PretokenCounter counter, const u8* data, size_t size, bint final) except -1 nogil:
    """Count the complete pre-tokens of a text, in slices of whole characters. final: the text ends here.

    After a MemoryError, a part of the text has not been fed or not been counted.
    """
    cdef size_t step, gone
    while True:
        step = size if size <= SLICE else whole(data, SLICE)
        grow_counter(counter, counter.size + step)
        if step:                        # `data` may be NULL if it is empty
            memcpy(counter.bytes + counter.size, data, step)
        counter.size += step
        data += step
        size -= step
        counter.count(counter.bytes, counter.size + SLACK, counter.size, &counter.walk,
                      final and size == 0, counter.offset)
        gone = counter.walk.start
        # If a long open pre-token were moved to drop a few bytes, one-byte chunks would take quadratic
        # time.
        if gone >= counter.size - gone or gone >= SLICE:
            memmove(counter.bytes, counter.bytes + gone, counter.size - gone)
            counter.size -= gone
            counter.offset += gone
            counter.walk.start -= gone
            counter.walk.accept -= gone
            counter.walk.position -= gone
        if size == 0:
            if final:
                scan_begin(&counter.walk, 0)
            return 0
