"""How a counter takes text in: slice by slice, behind the bytes of the open pre-token."""

cdef enum:
    SLICE = 1 << 16         # bytes of a text that are taken in at a time
    SLACK = 64              # bytes beyond the text that may be read


cdef struct Units:          # of a text that are still to be taken in
    const u8* data
    size_t size
    int kind                # bytes of each, a character of a str; 0: UTF-8


cdef inline size_t utf8_room(int kind, size_t units) noexcept nogil:
    """Bytes of UTF-8, at the most, but for the SLACK that may be written behind them."""
    if kind == 0:
        return units
    return units * (4 if kind == 4 else kind + 1)


cdef int append_units(PretokenCounter counter, Units* units) noexcept nogil:
    """Put a slice of the units behind the bytes that are pending: whole characters of well-formed
    text. Unless it FITS, nothing has changed.
    """
    cdef size_t step, room
    if units.kind == 0:
        step = units.size if units.size <= SLICE else whole(units.data, SLICE)
    else:
        step = min(units.size, <size_t>SLICE // units.kind)
    room = counter.size + utf8_room(units.kind, step)
    if grow_counter(counter, room) != FITS:
        return NO_MEMORY
    if units.kind == 0:
        if step:                        # `data` may be NULL where there is nothing
            memcpy(counter.bytes + counter.size, units.data, step)
        counter.size += step
        units.data += step
    else:
        counter.size += strategy.transcode(units.data, units.kind, step,
                                           counter.bytes + counter.size)
        units.data += step * units.kind
    units.size -= step
    return FITS


cdef int count_units(PretokenCounter counter, Units* units, bint final) noexcept nogil:
    """Count what closes of the units. final: the text ends behind them.

    Unless it FITS, part of them is not taken in, or not all that is closed is counted.
    """
    cdef size_t gone
    cdef int room
    while True:
        room = append_units(counter, units)
        if room != FITS:
            return room
        room = counter.count(counter.bytes, counter.size + SLACK, counter.size, &counter.walk,
                             final and units.size == 0, counter.offset)
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
        if units.size == 0:
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
