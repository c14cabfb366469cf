"""Decodes ids into bytes.

A table indexed by id holds the bytes of each token of up to 15 bytes. So such an id costs one cache line
and one copy of 16 bytes, whatever the length of the token. Unusual input (unknown ids, ids that are not
int, iterators, arrays of unusual types) is decoded by `decode_slowly`, which checks each id and raises for
the first that is wrong.
"""

cdef struct Entry:
    u8 bytes[15]                # bytes of the token, or a `Far`
    u8 size                     # size of the token, or FAR, FAR_SPECIAL or UNKNOWN


cdef extern from "Python.h":
    PyObject** PySequence_Fast_ITEMS(object row)
    Py_ssize_t PySequence_Fast_GET_SIZE(object row)


cdef enum:
    NEAR = 15               # longest token that is in its entry, in bytes
    FAR = 16                # the entry has a `Far`,
    FAR_SPECIAL = 17        # the same for a special token of any size, which may be skipped,
    UNKNOWN = 18            # no token has this id
    BLOCK = 512             # ids decoded at a time
    LOOK_IDS = (1 << 14) - 1    # ids between two checks for signals, less one
    ON_STACK = 4096         # bytes of output that need no allocation
    ALONE_FROM = 1 << 16    # ids of an array from which the GIL is released


cdef struct Far:
    const u8* bytes
    u32 size


cdef struct ByteBuffer:           # decoded bytes; the last token may write 16 bytes past its end
    u8* bytes
    size_t used
    size_t size
    bint is_lent                # on the stack: do not free


cdef object np_ndarray = np.ndarray


@cython.final
cdef class Decoder:
    """Immutable: the bytes of each id, including special tokens and `decode_only`.

    If an id is in several of them, the special token wins, then `decode_only`. For a model whose tokens are
    not text, `decode_only` has the texts of all ids.
    """

    cdef TokenTable table
    cdef dict specials          # id -> bytes
    cdef dict decode_only       # id -> bytes
    cdef dict firsts            # id -> bytes at the start of a text; None: the same as elsewhere
    cdef bint begins_with_text  # an id after ids without text still begins the text
    cdef Entry* entries         # [n_entries] by id; NULL until needed
    cdef u32 n_entries
    cdef dict beyond            # id -> bytes, for larger ids, which are few or sparse
    cdef list kept              # keeps alive the bytes that entries point to

    def __cinit__(self, TokenTable table not None, dict specials not None, dict decode_only=None,
                  dict firsts=None, bint begins_with_text=False):
        cdef u64 most = 2 * (<u64>table.tokens().n + len(decode_only or ())) + (1 << 16)
        self.table = table
        self.specials = specials
        self.decode_only = decode_only or {}
        self.firsts = firsts or ({} if begins_with_text else None)
        self.begins_with_text = begins_with_text
        self.kept = []
        cdef u64 largest = max(id for id in (table.max_id, *specials, *self.decode_only))
        self.n_entries = <u32>min(most, 1 + largest)

    def __dealloc__(self):
        st_free_block(self.entries)

    def token_bytes(self, id):
        """bytes: one token. Raises KeyError if the id is unknown."""
        cdef u64 number = checked_id(id, 0)
        cdef const Entry* entry
        cdef Far far
        if number in self.specials:
            return self.specials[number]
        if number in self.decode_only:
            return self.decode_only[number]
        if st_load_pointer(<void**>&self.entries) == NULL:
            self.make_entries()
        if number >= self.n_entries:
            if number in self.beyond:
                return self.beyond[number]
            raise KeyError(str(id))
        entry = &self.entries[number]
        if entry.size == UNKNOWN:
            raise KeyError(str(id))
        if entry.size <= NEAR:
            return entry.bytes[:entry.size]
        memcpy(&far, entry.bytes, sizeof(const u8*) + sizeof(u32))
        return far.bytes[:far.size]

    def decode(self, ids, bint skip_special=False):
        """bytes: the tokens, concatenated.

        ids: iterable of int, or an integer array. Raises UnknownId (a KeyError) for the first id that is in
        no table, and OverflowError for one that is not a uint32.
        """
        found = self.unpack(ids, skip_special, NULL)
        return self.decode_slowly(ids, skip_special) if found is None else found

    cdef bytes decode_counted(self, object ids, bint skip_special, size_t* count):
        """Like `decode`, and count the ids, even those of an iterator."""
        if type(ids) is np_ndarray:
            ids = ids[...]              # a view, whose shape nothing else can set
        elif not PyList_CheckExact(ids) or not ST_LISTS_HOLD_STILL:
            ids = settled_ids(ids)
        found = self.unpack(ids, skip_special, NULL)    # None if a list was changed
        if found is None:
            ids = settled_ids(ids)
            found = self.decode_slowly(ids, skip_special)
        count[0] = len(ids)
        return found

    cdef bytes as_first(self, bytes data, object ids, bint skip_special, bint drops_space,
                        bint* is_begun):
        """Return the bytes of these settled ids as they are at the start of a text; `data` has them as they
        are elsewhere. Sets is_begun if text has begun.

        drops_space: an id that is not in `firsts` loses a leading space.
        """
        cdef size_t at = 0
        is_begun[0] = False
        for value in ids:
            id = checked_id(value, 0)   # the tables' keys are ints, not other objects with __index__
            if skip_special and id in self.specials:
                continue
            own = self.token_bytes(id)
            first = self.firsts.get(id)
            if first is None:
                first = own.removeprefix(b" ") if drops_space else own
            at += len(own)
            if first or not self.begins_with_text:
                is_begun[0] = True
                return first + data[at:]
        return data[at:]

    cdef object unpack(self, object ids, bint skip_special, const char* errors):
        """bytes, or str if `errors` is not NULL; None if anything about the ids is unusual.

        Runs no Python code except signal handlers. If they change the length of a list or move its items,
        the result is None. Reads each id only once, since other threads may write to an array meanwhile.
        """
        cdef u8 small[ON_STACK]
        cdef ByteBuffer buffer
        cdef Watch watch
        cdef Py_buffer view
        cdef st_reader reader
        cdef Py_ssize_t n = 0
        cdef bint done = False, has_view = False
        if st_load_pointer(<void**>&self.entries) == NULL:
            self.make_entries()
        watch.looked = 0
        buffer.bytes, buffer.used, buffer.size, buffer.is_lent = small, 0, ON_STACK, True
        try:
            if PyList_CheckExact(ids) or PyTuple_CheckExact(ids):
                if not ST_LISTS_HOLD_STILL:
                    ids = tuple(ids)
                n = PySequence_Fast_GET_SIZE(ids)
                done = unpack_ids(self, <PyObject*>ids, NULL, 0,
                                  <const char*>PySequence_Fast_ITEMS(ids), n, skip_special, &watch, &buffer)
            elif type(ids) is np_ndarray:
                try:
                    PyObject_GetBuffer(ids, &view, PyBUF_ND | PyBUF_FORMAT)
                    has_view = True
                except (BufferError, ValueError):
                    has_view = False    # no `return` here: it crashes if there is no memory for a traceback
                reader = st_reader_for(view.format, view.itemsize) if has_view else NULL
                if reader != NULL and view.ndim == 1:
                    n = view.shape[0]
                    if n >= ALONE_FROM:
                        with nogil:
                            done = unpack_ids(self, NULL, reader, view.itemsize, <const char*>view.buf, n,
                                              skip_special, &watch, &buffer)
                    else:
                        done = unpack_ids(self, NULL, reader, view.itemsize, <const char*>view.buf, n,
                                          skip_special, &watch, &buffer)
            if not done:
                return None
            if errors == NULL:
                return PyBytes_FromStringAndSize(<const char*>buffer.bytes, buffer.used)
            return PyUnicode_DecodeUTF8(<const char*>buffer.bytes, buffer.used, errors)
        finally:
            if has_view:
                PyBuffer_Release(&view)
            if not buffer.is_lent:
                free(buffer.bytes)

    cdef int make_entries(self) except -1:
        """Make `entries` and `beyond`, unless another thread has already done so."""
        cdef const Tokens* t = self.table.tokens()
        cdef size_t i
        cdef Entry* entries
        cdef bytes part
        with cython.critical_section(self):
            if self.entries != NULL:
                return 0
            # Steps that may fail come first. If one fails and a later call succeeds, some bytes are kept
            # twice, which does no harm.
            self.kept.extend(part for id, part in self.decode_only.items() if id < self.n_entries)
            self.kept.extend(part for id, part in self.specials.items() if id < self.n_entries)
            decode_only, specials = list(self.decode_only.items()), list(self.specials.items())
            self.beyond = {
                t.ids[i]: t.blob[t.offsets[i]:t.offsets[i + 1]]
                for i in range(t.n) if t.ids[i] != NONE and t.ids[i] >= self.n_entries
            } if self.table.max_id >= self.n_entries else {}
            entries = <Entry*>st_new_block(self.n_entries * sizeof(Entry), 64)
            if entries == NULL:
                no_memory(self.n_entries, b"ids")
            for i in range(self.n_entries):
                entries[i].size = UNKNOWN
            for i in range(t.n):
                if t.ids[i] < self.n_entries:
                    set_entry(&entries[t.ids[i]], t.blob + t.offsets[i],
                              t.offsets[i + 1] - t.offsets[i], FAR)
            for id, part in decode_only:
                if id < self.n_entries:
                    set_entry(&entries[<size_t>id], <const u8*>PyBytes_AS_STRING(part), len(part),
                              FAR)
            for id, part in specials:
                if id < self.n_entries:
                    set_entry(&entries[<size_t>id], <const u8*>PyBytes_AS_STRING(part), len(part),
                              FAR_SPECIAL)
            st_store_pointer(<void**>&self.entries, entries)
        return 0

    cdef bytes decode_slowly(self, object ids, bint skip_special):
        cdef list parts = []
        ids = settled_ids(ids)
        found = self.unpack(ids, skip_special, NULL)    # an iterator is decoded here, as a tuple
        if found is not None:
            return found
        if type(ids) is np_ndarray:
            if ids.size and ids.dtype.kind not in "iu":
                raise TypeError(f"ids must be integers, not {ids.dtype}")
            ids = ids.tolist()
        for i, value in enumerate(ids):
            id = checked_id(value, i)
            if skip_special and id in self.specials:
                continue
            try:
                parts.append(self.token_bytes(id))
            except KeyError:
                raise UnknownId(id, i) from None
        return b"".join(parts)
