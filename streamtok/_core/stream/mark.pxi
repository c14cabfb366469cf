"""The mark of a stream: its initial state, the checks of a saved mark, and commits."""

cdef void begin(Mark* m, u64 offset) noexcept nogil:
    """Set `m` to the start of a text at byte `offset` of the stream."""
    m.size = m.searched = 0
    m.partial_size = 0
    scan_begin(&m.scan, 0)
    scan_begin(&m.other, 0)
    m.has_other = False
    m.retry_at = SECTION
    m.fork_at = 2 * SECTION
    m.offset = m.bytes_in = offset
    m.tokens_out = 0


cdef inline size_t pending(const Mark* m) noexcept nogil:
    return m.size - m.scan.start + m.partial_size


cdef int check_mark(Tail tail, const Mark* m) except -1:
    """Raise StateError unless a call can continue from `m`. This is checked both when a state is saved and
    when it is loaded.
    """
    if (m.offset | m.bytes_in | m.tokens_out) >> 62:
        raise damaged("it counts more bytes or ids than any stream has")
    if not (fits(tail, &m.scan, m.searched) and m.searched <= m.size):
        raise damaged("positions are beyond its bytes, or not in order")
    if <u32>m.has_other > 1:
        raise damaged("it has neither one hypothesis nor two")
    if m.has_other and not (m.scan.committed and fits(tail, &m.other, m.scan.position)
                            and m.scan.start == m.scan.accept == m.other.start):
        raise damaged("its two hypotheses do not begin at the same position")
    if m.scan.score - m.scan.score + m.other.score - m.other.score != 0:    # true for infinities and NaN
        raise damaged("its score is not finite")
    if m.retry_at < SECTION or m.fork_at < SECTION:
        raise damaged("it would look for stable tokens too soon")
    if m.partial_size and (tail.policy == KEEP
                           or unfinished_at_end(m.partial, m.partial_size) != m.partial_size):
        raise damaged("it ends with bytes that do not begin a character")
    return 0


cdef bint may_be_held(Tail tail, const u8* p, size_t n, u64 offset):
    """Whether a tail may hold p[:n] at `offset` in the stream. Unless the policy is KEEP, these bytes must
    be UTF-8, except that the first bytes of the first character may be missing: their ids are already
    emitted.
    """
    cdef size_t first = 0
    cdef i32 why
    cdef int size
    if tail.policy == KEEP:
        return True
    while first < 3 and first < n and first < offset and p[first] & 0xC0 == 0x80:
        first += 1
    valid_bytes(p + first, n - first, &why, &size)
    return why == 0


cdef bint fits(Tail tail, const Scan* s, size_t end):
    return (s.start <= s.accept <= s.position <= end and <u32>s.committed <= 1
            and 0 < s.state < tail.encoder.scanner.n_states)


cdef int grow(Tail tail, size_t size) except -1 nogil:
    """Make room for `size` bytes, and for loads that reach a little beyond them."""
    if size + SLACK > tail.capacity:
        tail.bytes = <u8*>grown(tail.bytes, &tail.capacity, size + SLACK, 1, b"bytes of the stream")
    return 0


cdef void commit(Tail tail, Mark* draft, bint final) noexcept nogil:
    """Make `draft` the state of the stream. Drops the bytes and the memory that the draft does not need."""
    cdef u8* bytes
    if final:
        begin(draft, 0)
    else:
        drop(tail, draft, 0)
    tail.mark = draft[0]
    if tail.capacity > SHRINK_FROM and draft.size < tail.capacity // 8:
        bytes = <u8*>realloc(tail.bytes, draft.size + SHRINK_FROM // 4 + SLACK)
        if bytes != NULL:
            tail.bytes = bytes
            tail.capacity = draft.size + SHRINK_FROM // 4 + SLACK


cdef void drop(Tail tail, Mark* m, size_t floor) noexcept nogil:
    """Move the pending bytes down to `floor`, over bytes whose ids have been emitted."""
    cdef size_t gone, rest = m.size - m.scan.start
    if m.scan.start <= floor:
        return
    gone = m.scan.start - floor
    # If a long tail were moved to drop a few bytes, small chunks would take quadratic time.
    if rest > 4 * SECTION and gone < rest // 2:
        return
    memmove(tail.bytes + floor, tail.bytes + m.scan.start, rest)
    m.size -= gone
    m.searched -= gone
    m.offset += gone
    shift(&m.scan, gone)
    if m.has_other:
        shift(&m.other, gone)


cdef inline void shift(Scan* s, size_t gone) noexcept nogil:
    s.start -= gone
    s.accept -= gone
    s.position -= gone
