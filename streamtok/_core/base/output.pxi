"""Return ids as arrays, without a copy if they are many, or in the caller's buffers.

`base/shared_ints.pxi` makes lists.
"""

cdef enum:
    SPARE_BLOCKS = 16
    SPARE_LIMIT = 1 << 22   # largest block that is kept, in ids
    SPARE_TOTAL = 1 << 24   # all kept blocks together, in ids
    SPARE_WASTE = 4         # a reused block is at most this many times as large as wanted
    OWNED_FROM = 1 << 13    # from this many ids on, an array takes over the memory instead of copying it


cdef enum Form:             # how ids are returned
    AS_LIST
    AS_ARRAY
    AS_COUNT
    IN_BUFFER
    AS_ID_SPANS


@cython.final
@cython.freelist(4)
cdef class Output:
    """How a call returns ids: LIST, ARRAY (numpy.uint32), COUNT (their number), ID_SPANS ((array,
    int64 [n, 3]), see `Tail.encode`), or `Output.into`.
    """

    cdef Form form
    cdef object out             # of `into`
    cdef size_t start

    @staticmethod
    def into(out, size_t start=0):
        """Output: writes ids to a buffer of uint16 or uint32 from `start` on; calls return their number."""
        return output_into(out, start)

    def of(self, ids):
        """Convert ids (numpy.uint32) to this form."""
        if self.form == AS_LIST:
            return ids.tolist()
        if self.form == AS_COUNT:
            return len(ids)
        if self.form == IN_BUFFER:
            return fill(self, <const u32*>array_memory(ids, UINT32), len(ids))
        return ids


cdef Output output_of(Form form):
    cdef Output output = Output.__new__(Output)
    output.form = form
    return output


cdef Output output_into(object out, size_t start):
    cdef Output output = output_of(IN_BUFFER)
    output.out, output.start = out, start
    return output


LIST = output_of(AS_LIST)
ARRAY = output_of(AS_ARRAY)
COUNT = output_of(AS_COUNT)
ID_SPANS = output_of(AS_ID_SPANS)
cdef list outputs = [LIST, ARRAY, COUNT]    # by form


cnp.import_array()


@cython.final
cdef class Spares:
    """A few blocks to reuse, since fresh memory costs more than writing ids to it."""

    cdef u32* blocks[SPARE_BLOCKS]
    cdef size_t sizes[SPARE_BLOCKS]
    cdef size_t kept                # capacity of all blocks, in ids
    cdef char busy

    cdef u32* take(self, size_t wanted, size_t* size) noexcept:
        """Take the smallest block that has room for `wanted` ids, but not far too much; NULL if none."""
        cdef u32* block = NULL
        cdef size_t i, best = SPARE_BLOCKS, least = SPARE_WASTE * wanted
        if st_enter(&self.busy):
            return NULL
        for i in range(SPARE_BLOCKS):
            if self.blocks[i] != NULL and wanted <= self.sizes[i] <= least:
                best, least = i, self.sizes[i]
        if best < SPARE_BLOCKS:
            block = self.blocks[best]
            size[0] = least
            self.blocks[best] = NULL
            self.kept -= least
        st_leave(&self.busy)
        return block

    cdef void give(self, u32* block, size_t size) noexcept:
        """Keep a block or free it. If all slots are in use, it replaces the smallest block if it is larger."""
        cdef u32* dropped = block
        cdef size_t i, least = size, slot = SPARE_BLOCKS
        if size <= SPARE_LIMIT and not st_enter(&self.busy):
            for i in range(SPARE_BLOCKS):
                if self.blocks[i] == NULL:
                    slot, least = i, 0
                    break
                if self.sizes[i] < least:
                    slot, least = i, self.sizes[i]
            if slot < SPARE_BLOCKS and self.kept - least + size <= SPARE_TOTAL:
                dropped = self.blocks[slot]
                self.blocks[slot] = block
                self.sizes[slot] = size
                self.kept += size - least
            st_leave(&self.busy)
        free(dropped)

    cdef void clear(self) noexcept:
        """Free all blocks, unless another thread is using the list of blocks."""
        cdef size_t i
        if st_enter(&self.busy):
            return
        for i in range(SPARE_BLOCKS):
            free(self.blocks[i])
            self.blocks[i] = NULL
        self.kept = 0
        st_leave(&self.busy)

    cdef size_t total(self) noexcept:
        """Bytes of all kept blocks."""
        cdef size_t ids
        while st_enter(&self.busy):         # held briefly: spin
            pass
        ids = self.kept
        st_leave(&self.busy)
        return ids * sizeof(u32)

    def __dealloc__(self):
        cdef size_t i
        for i in range(SPARE_BLOCKS):
            free(self.blocks[i])


@cython.final
cdef class IdBlock:
    """Owns the memory of an array of ids, so that it need not be copied."""

    cdef u32* ids
    cdef size_t size
    cdef Spares spares

    def __dealloc__(self):
        if self.spares is None:         # cleared by the garbage collector
            free(self.ids)
        else:
            self.spares.give(self.ids, self.size)


cdef int foresee(Spares spares, Work* w, size_t count) except -1:
    """Reserve capacity for the expected number of ids, so that `w.out` need not grow, unless it has ids."""
    if w.capacity >= count or count < OWNED_FROM or w.count:
        return 0
    free(w.out)
    w.capacity = 0
    w.out = spares.take(count, &w.capacity)
    if w.out == NULL:
        w.out = <u32*>st_new_growable(count * sizeof(u32))
        if w.out == NULL:
            no_memory(count, b"ids")
        w.capacity = count
    return 0


cdef object ids_to_array(Spares spares, Work* w):
    """numpy.uint32: the ids in `w.out`. Few ids are copied; for many, the array takes their memory from `w`."""
    cdef IdBlock block
    cdef cnp.ndarray array
    cdef cnp.npy_intp count = w.count
    if w.count < OWNED_FROM:
        array = cnp.PyArray_SimpleNew(1, &count, cnp.NPY_UINT32)
        if count:
            memcpy(cnp.PyArray_DATA(array), w.out, count * sizeof(u32))
        return array
    block = IdBlock.__new__(IdBlock)
    block.spares = spares
    block.ids = w.out
    block.size = w.capacity
    w.out = NULL
    w.capacity = 0
    if block.size > SPARE_LIMIT and block.size > w.count + w.count // 4:
        w.out = <u32*>realloc(block.ids, w.count * sizeof(u32))
        if w.out != NULL:           # otherwise the block stays larger than necessary
            block.ids = w.out
            block.size = w.count
            w.out = NULL
    array = cnp.PyArray_SimpleNewFromData(1, &count, cnp.NPY_UINT32, block.ids)
    cnp.set_array_base(array, block)
    return array


cdef object fill(object out, const u32* ids, size_t count):
    """Copy the ids to a buffer of uint16 or uint32, or to an `Output.into`; return their number."""
    cdef cnp.ndarray array
    cdef Py_buffer view
    cdef bytes format
    cdef size_t start = 0
    if type(out) is Output:
        start, out = (<Output>out).start, (<Output>out).out
    if cnp.PyArray_CheckExact(out):         # directly: NumPy's buffer protocol is slow
        array = out
        if (cnp.PyArray_NDIM(array) == 1 and cnp.PyArray_ISCARRAY(array)
                and cnp.PyArray_TYPE(array) in (cnp.NPY_UINT32, cnp.NPY_UINT16)):
            return fill_memory(cnp.PyArray_DATA(array), cnp.PyArray_ITEMSIZE(array),
                               cnp.PyArray_DIM(array, 0), start, ids, count)
    try:
        PyObject_GetBuffer(out, &view, PyBUF_WRITABLE | PyBUF_FORMAT | PyBUF_STRIDES)
    except (BufferError, ValueError):
        raise ValueError("out must be writable") from None
    try:
        format = view.format if view.format != NULL else b"B"
        if view.itemsize not in (2, 4) or format.lstrip(b"@=<") not in (b"H", b"I", b"L"):
            raise ValueError(f"out must hold uint16 or uint32, not {format.decode()!r}")
        if view.ndim != 1 or not PyBuffer_IsContiguous(&view, b"C"):
            raise ValueError("out must be one contiguous row")
        return fill_memory(view.buf, view.itemsize, view.shape[0], start, ids, count)
    finally:
        PyBuffer_Release(&view)


cdef object fill_memory(void* memory, size_t item_size, size_t size, size_t start, const u32* ids,
                        size_t count):
    """Copy the ids to memory[start:size], whose items have 2 or 4 bytes; return their number."""
    cdef size_t i, begin = min(start, size), capacity = size - begin
    cdef u8* out = <u8*>memory + begin * item_size
    if capacity < count:
        raise ValueError(f"out has room for {capacity} ids, {count} are ready")
    if item_size == sizeof(u32):
        if count:
            memcpy(out, ids, count * sizeof(u32))
        return count
    for i in range(count):
        if ids[i] > 0xFFFF:
            raise OverflowError(f"id {ids[i]} does not fit into uint16")
    for i in range(count):
        (<u16*>out)[i] = <u16>ids[i]
    return count


cdef object ids_with_spans(Spares spares, Work* w):
    """(ids, int64 [n, 3]: index, start and end of each id whose span is known)."""
    id_spans = np.empty(3 * w.n_id_spans, np.int64)
    if w.n_id_spans:
        memcpy(array_memory(id_spans, INT64), w.id_spans, w.n_id_spans * sizeof(IdSpan))
    return ids_to_array(spares, w), id_spans.reshape(-1, 3)


cdef object ids_as(Form form, TokenTable table, Spares spares, Work* w, object out):
    """The ids in `w.out` in the given form. out: for IN_BUFFER, a buffer or an `Output.into`."""
    if form == AS_LIST:
        return ids_to_list(table, w.out, w.count)
    if form == AS_COUNT:
        return w.count
    if form == IN_BUFFER:
        return fill(out, w.out, w.count)
    if form == AS_ID_SPANS:
        return ids_with_spans(spares, w)
    return ids_to_array(spares, w)
