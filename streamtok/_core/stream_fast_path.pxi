"""The fast path of streams: `encode` of a small chunk. See `fast_path.pxi`."""

cdef class FastStreamEncoder:
    """The base class of `StreamEncoder`: its calls that have a fast path."""

    cdef Tail tail                 # None: there is no fast path
    cdef object _max_pending

    def _set_fast_path(self, Tail tail):
        """Let chunks take the fast path from now on; None: let none take it."""
        with cython.critical_section(self):
            self.tail = tail

    @property
    def max_pending(self):
        """int: bytes that may be left waiting; a call that would leave more raises."""
        with cython.critical_section(self):
            return self._max_pending

    @max_pending.setter
    def max_pending(self, value):
        with cython.critical_section(self):
            self._max_pending = value

    def encode(self, chunk, final=False):
        """list[int]: the ids that `chunk` makes certain; with `final`, all that are left.

        Raises ValueError at a disallowed special token and UnicodeDecodeError at bytes that are no
        UTF-8, both with the offset in the stream; UnicodeDecodeError for a str after bytes that
        end inside a character; PendingLimitExceeded. Costs O(len(chunk)).
        """
        return self.feed_fast(chunk, final, "list")

    def encode_to_numpy(self, chunk, final=False):
        """numpy.uint32 [n]: as `encode`."""
        return self.feed_fast(chunk, final, "array")

    cdef object feed_fast(self, object chunk, object final, str into):
        cdef object ids, limit
        cdef Tail tail
        with cython.critical_section(self):
            tail, limit = self.tail, self._max_pending
        # Where this gives no ids, it has not changed anything.
        if tail is not None and tail._note is None:
            try:
                ids = tail.feed(chunk, final, into, None, limit, None, None)
                if type(ids) is not tuple:
                    return ids
            except UnicodeEncodeError:
                pass
        return self._feed(chunk, final, into, None)
