"""What one encoding thread needs: its cache, its scratch memory and the ids that it produces."""

@cython.final
cdef class Workspace:
    """Scratch memory of one encoding thread, and its cache of pre-tokens."""

    cdef Work c

    def __cinit__(self, TokenTable table not None):
        cdef Work* w = &self.c
        cdef const Tokens* t = table.tokens()
        w.section = <u8*>memory_for(SECTION, 1, b"bytes of a pre-token")
        w.section_ids = <u32*>memory_for(SECTION, sizeof(u32), b"ids")
        w.waiting.bytes = <u8*>memory_for(MOST_UNITS * UNIT, 1, b"bytes of pre-tokens")
        w.waiting.tokens = <u32*>memory_for(MOST_UNITS * UNIT, sizeof(u32), b"tokens")
        cache_open(&w.cache, t)

    def __dealloc__(self):
        free(self.c.out)
        close_table(&self.c.cache)
        free(self.c.section)
        free(self.c.section_ids)
        free(self.c.waiting.bytes)
        free(self.c.waiting.tokens)
        st_free_block(self.c.buffer.bytes)
        merger_free(&self.c.merger)
        merger_free(&self.c.scratch)
        free(self.c.lattice.nodes)
        free(self.c.id_spans)
        free(self.c.staged.bytes)
        free(self.c.staged.origins)


cdef int reserve(Work* w, size_t more) except -1 nogil:
    """Make room for `more` ids, and for the four that are always copied from a cell."""
    cdef size_t wanted = w.count + more + CELL_NUMBERS
    if wanted > w.capacity:
        w.out = <u32*>grown(w.out, &w.capacity, wanted, sizeof(u32), b"ids")
    return 0


cdef int emit(const Tokens* t, Work* w, const u32* tokens, size_t count) except -1 nogil:
    cdef size_t i
    if t.byte_ids != NULL:
        return emit_bytes(t, w, tokens, count)
    reserve(w, count)
    for i in range(count):
        w.out[w.count + i] = t.ids[tokens[i]]
    w.count += count
    return 0


cdef int emit_bytes(const Tokens* t, Work* w, const u32* tokens, size_t count) except -1 nogil:
    """Like `emit`, for a table in which a token without an id is emitted as the ids of its bytes."""
    cdef size_t i, j, size
    cdef const u8* p
    for i in range(count):
        size = t.offsets[tokens[i] + 1] - t.offsets[tokens[i]]
        p = t.blob + t.offsets[tokens[i]]
        reserve(w, size)
        if t.ids[tokens[i]] != NONE:
            w.out[w.count] = t.ids[tokens[i]]
            w.count += 1
            continue
        for j in range(size):
            w.out[w.count + j] = t.byte_ids[p[j]]
        w.count += size
    return 0
