"""The base class of `StreamDecoder`, which turns a stream of ids into text.

A call works on a copy of the stream's state. The copy replaces the state once nothing can fail any more, so
a call that raises has changed nothing. This would not be possible in Python, where signal handlers, which
may raise, can run between any two instructions.
"""

cdef struct Reached:        # state of a stream of ids
    u64 tokens_in
    u64 bytes_out
    bint is_begun           # text has begun: a format may change how it begins
    bint is_over            # set by a derived class: further ids yield no text
    u8 held[4]              # bytes of an unfinished character
    u8 n_held


cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8Stateful(const char* p, Py_ssize_t size, const char* errors,
                                        Py_ssize_t* used)


cdef Reached BEGIN          # all zero


cdef class FastStreamDecoder:
    """The base class of `StreamDecoder`. Only one call may run at a time.

    A derived class that `settles` has a method `_settle`. It is called with the last note, the text and
    `final` before anything has changed. It returns the text to emit, the new note, and whether the stream
    is over. Once it is over, nothing is emitted until the next stream begins.
    """

    cdef Decoder decoder
    cdef bint skips_special, drops_space, settles
    cdef bytes policy       # name of one of Python's error handlers
    cdef char busy
    cdef Reached reached
    cdef object note        # kept for a derived class along with `reached`, or None

    def _set_decoder(self, Decoder decoder not None, str errors not None, bint skips_special,
                     bint drops_space, bint settles):
        cdef bytes policy = errors.encode()
        enter(&self.busy)           # nothing that a call uses may change during it
        self.decoder = decoder
        self.policy = policy
        self.skips_special = skips_special
        self.drops_space = drops_space
        self.settles = settles
        st_leave(&self.busy)

    def decode(self, ids, final=False):
        """str: the characters that the ids complete. ids: an iterable of int, or an integer array.

        Raises KeyError for an unknown id and, under "strict", UnicodeDecodeError for bytes that are not
        UTF-8, both with the position in the stream. The stream is then as before the call.
        """
        cdef Reached after
        cdef Py_ssize_t used
        cdef bint is_last
        cdef bytes data
        enter(&self.busy)
        try:
            is_last = final
            if self.reached.is_over:
                if is_last:
                    self.commit(BEGIN, self.note)
                return ""
            data = self.read(ids, &after)
            if after.n_held:
                data = PyBytes_FromStringAndSize(<const char*>after.held, after.n_held) + data
            used = PyBytes_GET_SIZE(data)
            # `unfinished_at_end` is not enough: the policy may be any of Python's error handlers, and
            # "surrogatepass" also waits for the rest of a surrogate.
            try:
                text = PyUnicode_DecodeUTF8Stateful(PyBytes_AS_STRING(data), used, self.policy,
                                                    NULL if is_last else &used)
            except UnicodeDecodeError as error:
                shift = self.reached.bytes_out - after.n_held
                raise UnicodeDecodeError(
                    "utf-8", error.object, error.start + shift, error.end + shift, error.reason
                ) from None
            after.n_held = <u8>(PyBytes_GET_SIZE(data) - used)
            memcpy(after.held, PyBytes_AS_STRING(data) + used, after.n_held)
            note = None
            if self.settles:
                text, note, after.is_over = self._settle(self.note, text, is_last)
            self.commit(BEGIN if is_last else after, note)
            return text
        finally:
            st_leave(&self.busy)

    def decode_bytes(self, ids, final=False):
        """bytes: the bytes of the tokens, including those of incomplete characters.

        Raises KeyError as `decode` does, and ValueError if an unfinished character is pending.
        """
        cdef Reached after
        cdef bint is_last
        cdef bytes data
        enter(&self.busy)
        try:
            if self.reached.n_held:
                raise ValueError(
                    f"{self.reached.n_held} bytes of an unfinished character wait to be decoded "
                    "as text: use flush() or reset() before decode_bytes()"
                )
            is_last = final
            data = self.read(ids, &after)
            self.commit(BEGIN if is_last else after, None)
            return data
        finally:
            st_leave(&self.busy)

    cdef void commit(self, Reached reached, object note) noexcept:
        with cython.critical_section(self):
            self.reached, self.note = reached, note

    cdef Reached here(self) noexcept:
        """The committed state; another thread's call may be about to change it."""
        with cython.critical_section(self):
            return self.reached

    cdef bytes read(self, object ids, Reached* after):
        """The bytes of the ids. Sets `after` to the state of the stream after them."""
        cdef size_t count
        cdef bytes data
        cdef bint has_first
        if self.decoder is None:
            raise ValueError("this StreamDecoder was not made by its own __init__")
        has_first = not self.reached.is_begun and self.decoder.firsts is not None
        try:
            if has_first:
                ids = settled_ids(ids)
            data = self.decoder.decode_counted(ids, self.skips_special, &count)
        except KeyError as error:
            where = self.reached.tokens_in + getattr(error, "position", 0)
            error.args = (f"{error.args[0]}: token {where} of the stream",)
            raise
        after[0] = self.reached
        after.tokens_in += count
        if has_first:
            data = self.decoder.as_first(data, ids, self.skips_special, self.drops_space,
                                         &after.is_begun)
        elif data and not after.is_begun:
            after.is_begun = True
            if self.drops_space:
                data = data.removeprefix(b" ")
        after.bytes_out += PyBytes_GET_SIZE(data)
        return data

    @property
    def _note(self):
        """What a derived class keeps with the state."""
        with cython.critical_section(self):
            return self.note

    @property
    def pending(self):
        """int: the number of bytes of an unfinished character, 0 to 3."""
        return self.here().n_held

    @property
    def tokens_in(self):
        """int: the number of ids fed since the stream began."""
        return self.here().tokens_in

    @property
    def bytes_out(self):
        """int: the number of bytes of these ids, including those of an unfinished character."""
        return self.here().bytes_out

    def reset(self):
        """Begin a new stream. Drops an unfinished character."""
        self._set_reached(0, 0, False, b"")

    def _reached(self):
        """(tokens_in, bytes_out, whether text has begun, bytes of an unfinished character, note, whether
        the stream is over).
        """
        cdef Reached here
        cdef object note
        enter(&self.busy)
        here, note = self.reached, self.note
        st_leave(&self.busy)
        held = PyBytes_FromStringAndSize(<const char*>here.held, here.n_held)
        return here.tokens_in, here.bytes_out, here.is_begun, held, note, here.is_over

    def _set_reached(self, u64 tokens_in, u64 bytes_out, bint is_begun, bytes held not None,
                     note=None, bint is_over=False):
        """Continue from this state. Raises ValueError if `held` is not a prefix of a character."""
        cdef Reached here
        if (tokens_in | bytes_out) >> 62:
            raise ValueError(f"{tokens_in} ids and {bytes_out} bytes are more than any stream has")
        # Accept what the most permissive policy may hold, such as an unfinished surrogate.
        if len(held) > 3 or codecs.utf_8_decode(held, "surrogatepass", False)[1]:
            raise ValueError(f"{held!r} is not the beginning of a character")
        here.tokens_in, here.bytes_out = tokens_in, bytes_out
        here.is_begun, here.is_over = is_begun, is_over
        here.n_held = <u8>len(held)
        memcpy(here.held, PyBytes_AS_STRING(held), here.n_held)
        enter(&self.busy)
        self.commit(here, note)
        st_leave(&self.busy)
