"""UTF-8 in a stream: characters that chunks cut in two, and what is done with ill-formed bytes."""

cdef int append(Tail tail, Mark* m, const u8* p, size_t n, bint is_clean, bint final) except -1 nogil:
    """Put p[:n] behind the tail's bytes, well-formed as the policy wants it.

    The bytes of a character that is not complete are kept apart, in the mark.
    """
    cdef i32 why = 0
    cdef int length = 0
    cdef size_t raw = m.partial_size + n, fine
    cdef u8* to
    grow(tail, m.size + raw)
    to = tail.bytes + m.size
    if m.partial_size:
        memcpy(to, m.partial, m.partial_size)
    if n:
        memcpy(to + m.partial_size, p, n)
    m.partial_size = 0
    if is_clean or tail.policy == KEEP:
        m.size += raw
        return 0
    fine = valid_bytes(to, raw, &why, &length)
    if why != 0 and (why != INCOMPLETE or final):
        if tail.policy == REPAIR:
            return repair(tail, m, raw, final)
        with gil:
            raise UnicodeDecodeError(
                "utf-8", to[fine:fine + length], m.offset + m.size + fine,
                m.offset + m.size + fine + length, explain(to[fine], why),
            )
    m.size += fine
    hold(m, to + fine, raw - fine)
    return 0


cdef inline void hold(Mark* m, const u8* p, size_t n) noexcept nogil:
    memcpy(m.partial, p, n)
    m.partial_size = <u8>n


cdef int repair(Tail tail, Mark* m, size_t raw, bint final) except -1 nogil:
    """Replace bytes that are not UTF-8 by U+FFFD in the `raw` bytes after the tail's."""
    cdef size_t size = repaired_size(tail.bytes + m.size, raw, final), fine
    cdef i32 why = 0
    cdef int length = 0
    cdef const u8* p
    cdef u8* to
    grow(tail, m.size + size)
    # U+FFFD has three bytes, what it replaces one to three: read from the end of the room, what is
    # written never catches up with what is read.
    to = tail.bytes + m.size
    memmove(to + size - raw, to, raw)
    p = to + size - raw
    while True:
        fine = valid_bytes(p, raw, &why, &length)
        memmove(to, p, fine)
        to += fine
        p += fine
        raw -= fine
        if why == 0 or (why == INCOMPLETE and not final):
            break
        to[0] = 0xEF
        to[1] = 0xBF
        to[2] = 0xBD
        to += 3
        p += length
        raw -= length
    m.size = to - tail.bytes
    hold(m, p, raw)
    return 0


cdef size_t repaired_size(const u8* p, size_t n, bint final) noexcept nogil:
    cdef size_t fine, size = n
    cdef i32 why = 0
    cdef int length = 0
    while True:
        fine = valid_bytes(p, n, &why, &length)
        if why == 0 or (why == INCOMPLETE and not final):
            return size
        size += 3 - length
        p += fine + length
        n -= fine + length
