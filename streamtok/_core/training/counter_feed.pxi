"""How a counter takes text in: slice by slice, behind the bytes of the open pre-token."""

cdef enum:
    SLICE = 1 << 16         # bytes of a text that are taken in at a time
    SLACK = 64              # bytes beyond the text that may be read


cdef int append_bytes(PretokenCounter counter, const u8* data, size_t size) noexcept nogil:
    """Append bytes to the pending ones. If the result is not FITS, nothing has changed."""
    if grow_counter(counter, counter.size + size) != FITS:
        return NO_MEMORY
    if size:                        # `data` may be NULL where there is nothing
        memcpy(counter.bytes + counter.size, data, size)
    counter.size += size
    return FITS


cdef int count_slices(PretokenCounter counter, const u8* data, size_t size,
                      bint final) noexcept nogil:
    """Count the complete pre-tokens of a text, in slices of whole characters. final: the text ends.

    If the result is not FITS, a part of the text was not taken in, or not counted.
    """
    cdef size_t step, gone
    cdef int room
    while True:
        step = size if size <= SLICE else whole(data, SLICE)
        room = append_bytes(counter, data, step)
        if room != FITS:
            return room
        data += step
        size -= step
        room = counter.count(counter.bytes, counter.size + SLACK, counter.size, &counter.walk,
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
        if room != FITS:
            return room
        if size == 0:
            if final:
                scan_begin(&counter.walk, 0)
            return FITS


cdef int raise_unless_fits(PretokenCounter counter, int room) except -1:
    """Raise MemoryError if there is no memory."""
    if room == NO_MEMORY:
        raise MemoryError(
            f"no memory to count more than the first {counter.bytes_in} bytes, of which "
            f"{counter.pending} are in a pre-token that has not ended"
        )
    return 0
