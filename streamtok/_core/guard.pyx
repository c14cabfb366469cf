"""One call of an object at a time: a second one, from whatever thread, raises and changes nothing."""

cimport cython

from streamtok._core.types cimport st_enter, st_leave

from streamtok.errors import StreamInUseError


cdef int enter(char* busy) except -1:
    """Set the flag, which `st_leave` takes back. StreamInUseError if it was set."""
    if st_enter(busy):
        raise StreamInUseError("this stream is being used by another thread; use one per thread")
    return 0


@cython.final
cdef class Guard:
    """`with guard:` raises StreamInUseError while another such block runs.

    In C, so that no handler of a signal can run after the flag is set and before the block begins.
    """

    cdef char busy

    def __enter__(self):
        enter(&self.busy)
        return self

    def __exit__(self, kind, value, traceback):
        st_leave(&self.busy)
        return False
