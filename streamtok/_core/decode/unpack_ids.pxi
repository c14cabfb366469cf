"""Turns the ids of lists, tuples and arrays into bytes, block by block."""

cdef object settled_ids(object ids):
    """The ids in a tuple or an array of our own, which nothing else changes and which can be read twice."""
    if type(ids) is tuple:
        return ids
    if isinstance(ids, (np.ndarray, memoryview)) or hasattr(ids, "__array_interface__"):
        ids = np.array(ids, order="C", subok=False)
        if ids.ndim != 1:
            raise TypeError(f"ids must have one dimension, not {ids.ndim}")
        return ids
    return tuple(ids)


cdef void set_entry(Entry* entry, const u8* p, size_t size, u8 far) noexcept nogil:
    cdef Far text
    if size <= NEAR and far != FAR_SPECIAL:
        memcpy(entry.bytes, p, size)
        entry.size = <u8>size
        return
    text.bytes, text.size = p, <u32>size
    memcpy(entry.bytes, &text, sizeof(const u8*) + sizeof(u32))
    entry.size = far


cdef bint unpack_ids(Decoder decoder, PyObject* row, st_reader reader, size_t stride, const char* p,
                     size_t n, bint skip_special, Watch* watch, ByteBuffer* buffer) except -1 nogil:
    """Append the bytes of n ids to the buffer. `reader` reads the ids from p on, with this stride. If it is
    NULL, they are the objects at p of `row`, a list or tuple; reading them needs the GIL. Returns False if
    an id is unknown or not an int, or if a signal handler has changed the list.
    """
    cdef u32 ids[BLOCK]
    cdef size_t begin = 0, count
    if n > BLOCK:
        ensure(buffer, 4 * n)
    while begin < n:
        count = min(n - begin, <size_t>BLOCK)
        if reader == NULL:
            if not st_read_ints(<PyObject**>p + begin, count, n - begin, ids, decoder.entries,
                                sizeof(Entry)):
                return False
        elif not reader(p + begin * stride, count, ids):
            return False
        if not unpack_block(decoder.entries, decoder.n_entries, ids, count, skip_special, buffer):
            return False
        begin += count
        if begin & LOOK_IDS == 0:
            look(watch)
            if row != NULL and not is_same_row(row, p, n):
                return False
    return True


cdef bint is_same_row(PyObject* row, const char* p, size_t n) noexcept nogil:
    """Whether a list still has n items at p. Takes the GIL."""
    with gil:
        return (<size_t>PySequence_Fast_GET_SIZE(<object>row) == n
                and <const char*>PySequence_Fast_ITEMS(<object>row) == p)


cdef bint unpack_block(const Entry* entries, u32 n_entries, const u32* ids, size_t count,
                       bint skip_special, ByteBuffer* buffer) except -1 nogil:
    cdef const Entry* entry
    cdef Far far
    cdef u8* out
    cdef size_t i
    ensure(buffer, (NEAR + 1) * count)
    out = buffer.bytes + buffer.used
    for i in range(count):
        if ids[i] >= n_entries:
            return False
        entry = &entries[ids[i]]
        if entry.size <= NEAR:
            memcpy(out, entry, sizeof(Entry))
            out += entry.size
            continue
        if entry.size == UNKNOWN:
            return False
        if entry.size == FAR_SPECIAL and skip_special:
            continue
        memcpy(&far, entry.bytes, sizeof(const u8*) + sizeof(u32))
        buffer.used = out - buffer.bytes
        ensure(buffer, far.size + (NEAR + 1) * (count - i))
        out = buffer.bytes + buffer.used
        memcpy(out, far.bytes, far.size)
        out += far.size
    buffer.used = out - buffer.bytes
    return True


cdef int ensure(ByteBuffer* buffer, size_t more) except -1 nogil:
    """Make room for `more` bytes."""
    cdef u8* larger
    if buffer.used + more <= buffer.size:
        return 0
    larger = <u8*>grown(NULL if buffer.is_lent else buffer.bytes, &buffer.size, buffer.used + more, 1, b"bytes of text")
    if buffer.is_lent:
        memcpy(larger, buffer.bytes, buffer.used)
    buffer.bytes, buffer.is_lent = larger, False
    return 0


cdef u64 checked_id(value, i) except? 0xFFFFFFFFFFFFFFFF:
    if not isinstance(value, int):
        try:
            value = value.__index__()
        except AttributeError:
            raise TypeError(
                f"{type(value).__name__!r} object cannot be interpreted as an integer (position {i})"
            ) from None
    if value < 0 or value > 0xFFFFFFFF:
        raise OverflowError(f"id {value} is not a uint32 (position {i})")
    return value


class UnknownId(KeyError):
    """An id that is not in the vocabulary. `position` is its index in the ids that were passed."""

    def __init__(self, id, position):
        super().__init__(f"Invalid token for decoding: {id} (position {position})")
        self.id = id
        self.position = position

    def __reduce__(self):
        return type(self), (self.id, self.position)
