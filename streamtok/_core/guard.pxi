"""An object that takes one call at a time: a second call raises StreamInUseError, changes nothing."""

cdef int refuse_use() except -1:
    raise StreamInUseError("this stream is being used by another thread; use one per thread")


cdef int enter(char* busy) except -1:
    """Set the flag, which `st_leave` takes back. StreamInUseError if it was set."""
    if st_enter(busy):
        refuse_use()
    return 0
