"""How a counter takes text in: slice by slice, after the bytes of the open pre-token."""

cdef enum:
    SLICE = 1 << 16         # bytes of a text that are taken in at a time
    SLACK = 64              # bytes beyond the text that may be read


cdef int grow_counter(PretokenCounter counter, size_t size) except -1 nogil:
    """Room for `size` bytes. MemoryError also for a pre-token of 4 GiB."""
    if size > <size_t>0xFFFFFF00:
        no_memory(size, b"bytes of a pre-token")
    if size + SLACK > counter.capacity:
        counter.bytes = <u8*>grown(counter.bytes, &counter.capacity, size + SLACK, 1, b"bytes of a pre-token")
    return 0


cdef size_t whole(const u8* text, size_t size) noexcept nogil:
    """Bytes of text[:size + 1], at most `size`, that end with a character of well-formed text."""
    cdef size_t back = 0
    while back < 3 and back < size and text[size - back] & 0xC0 == 0x80:
        back += 1
    return size if text[size - back] & 0xC0 == 0x80 else size - back


cdef int count_slices(PretokenCounter counter, const u8* data, size_t size, bint final) except -1 nogil:
    """Count the complete pre-tokens of a text, in slices of whole characters. final: the text ends.

    After a MemoryError, a part of the text was not taken in, or not counted.
    """
    cdef size_t step, gone
    while True:
        step = size if size <= SLICE else whole(data, SLICE)
        grow_counter(counter, counter.size + step)
        if step:                        # `data` may be NULL where there is nothing
            memcpy(counter.bytes + counter.size, data, step)
        counter.size += step
        data += step
        size -= step
        counter.count(counter.bytes, counter.size + SLACK, counter.size, &counter.walk,
                      final and size == 0, counter.offset)
        gone = counter.walk.start
        # Moving a long open pre-token for a few bytes would make one-byte chunks quadratic.
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
