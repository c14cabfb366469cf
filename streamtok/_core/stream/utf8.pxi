"""UTF-8 in a stream: characters that are split between chunks, and ill-formed bytes."""

cdef int append(Tail tail, Mark* m, const u8* p, size_t n, bint is_clean, bint final) except -1 nogil:
    """Append p[:n] to the tail's bytes, made well-formed as the policy says.

    The bytes of an incomplete character are kept in the mark instead.
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
            with gil:
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


cdef int repair(Tail tail, Mark* m, size_t raw, bint final) except -1:
    """Replace ill-formed UTF-8 with U+FFFD in the `raw` bytes after the tail's."""
    cdef const u8* p = tail.bytes + m.size
    cdef size_t held = 0 if final else unfinished_at_end(p, raw)
    cdef bytes text = p[:raw - held].decode("utf-8", "replace").encode()
    hold(m, p + raw - held, held)
    grow(tail, m.size + <size_t>len(text))
    memcpy(tail.bytes + m.size, PyBytes_AS_STRING(text), len(text))
    m.size += <size_t>len(text)
    return 0
