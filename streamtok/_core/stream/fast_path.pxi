"""The fast path of streams: encode a small chunk. See `texts/fast_path.pxi`."""

cdef class FastStreamEncoder(OneCall):
    """The base class of `StreamEncoder`, with the calls that have a fast path. The only method of a derived
    class that it calls is `take`.
    """

    cdef readonly Tail _tail        # the state of the stream
    cdef readonly object _trace     # where the ids came from; None if not asked for
    cdef object _max_pending

    def _go_on(self, Tail tail not None, trace=None):
        """Continue from this state. Takes effect as a whole or not at all, even as seen by signal handlers.
        """
        with cython.critical_section(self):
            self._tail, self._trace = tail, trace

    @property
    def max_pending(self):
        """int: the number of bytes that may stay pending; a call that would leave more raises
        PendingLimitExceeded.
        """
        with cython.critical_section(self):
            return self._max_pending

    @max_pending.setter
    def max_pending(self, value):
        if type(value) is bool or not isinstance(value, int) or not 0 <= value < 1 << 63:
            raise ValueError(f"max_pending must be a number of bytes, not {value!r}")
        with cython.critical_section(self):
            self._max_pending = value

    def encode(self, chunk, final=False):
        """list[int]: the ids that `chunk` makes final; with `final`, all remaining ids.

        Raises ValueError for a disallowed special token, UnicodeDecodeError for bytes that are not UTF-8
        and for a str after bytes that end inside a character, and PendingLimitExceeded if more than
        `max_pending` bytes would stay pending, all with the offset in the stream. Takes O(len(chunk)) time.
        """
        return self.feed_fast(chunk, final, AS_LIST, None)

    def encode_to_numpy(self, chunk, final=False):
        """numpy.uint32 [n]: like `encode`, but without building a list."""
        return self.feed_fast(chunk, final, AS_ARRAY, None)

    def encode_into(self, chunk, out, final=False, *, Py_ssize_t start=0):
        """int: like `encode`, but writes the ids to `out`, from `start` on, and returns their number.

        out: a writable, contiguous uint16 or uint32 buffer; a NumPy array is fastest. Raises ValueError if
        it is too small and OverflowError if an id does not fit into uint16; the stream is then as before
        the call. With byte-level merges, n bytes yield at most n + pending ids, or 3 n + pending if the
        policy is "replace". An encoding that puts a space before its text may add one id, and a template
        adds its own ids. A tokenizer.json that cuts text and then puts a mark or a space before each piece
        may yield several ids per byte. This is the fastest way to feed small chunks: it creates no object.

        >>> import numpy
        >>> out = numpy.empty(100, dtype=numpy.uint32)
        >>> stream = enc.stream_encoder()
        >>> n = stream.encode_into("hello ", out)
        >>> n += stream.encode_into("world", out, final=True, start=n)
        >>> out[:n].tolist()
        [31373, 995]
        """
        if start == 0:
            return self.feed_fast(chunk, final, IN_BUFFER, out)
        if start < 0:
            raise ValueError(f"start must not be negative: {start}")
        return self.feed_fast(chunk, final, IN_BUFFER, output_into(out, start))

    def take(self, chunk, final, output):
        """Like `encode`, with the result in the form of `output`. A derived class implements it for streams
        with a trace and for chunks that are not text.
        """
        raise NotImplementedError

    cdef object feed_fast(self, object chunk, object final, Form form, object out):
        cdef object limit, trace
        cdef Tail tail
        with cython.critical_section(self):
            tail, trace, limit = self._tail, self._trace, self._max_pending
        if trace is None and (is_text_like(chunk) if tail.finder is None else not final):
            return tail.feed(chunk, final, form, out, limit)
        if form != IN_BUFFER:
            out = outputs[<int>form]
        elif type(out) is not Output:
            out = output_into(out, 0)
        return self.take(chunk, final, out)
