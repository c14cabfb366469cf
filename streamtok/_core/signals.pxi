"""Signals that come while something takes long: Ctrl-C ends it soon, not when all is done.

Python runs the handlers of signals between its own instructions, so not while the core works. What
may take long calls `look` every megabyte or so. Ten times a second that takes the GIL and lets
handlers run, which costs nothing to speak of; all other times it only asks for the time. What a
handler raises goes up like any other exception, so the call has failed and changed nothing.
"""

cdef struct Watch:
    u64 looked              # when, in milliseconds


cdef enum:
    PERIOD = 100


cdef int look(Watch* watch) except -1 nogil:
    cdef u64 now = st_milliseconds()
    if now - watch.looked < strategy.look_period:     # unsigned: a clock that was put back is looked at anew
        return 0
    watch.looked = now
    with gil:
        PyErr_CheckSignals()
    return 0
