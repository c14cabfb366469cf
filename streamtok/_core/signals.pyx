"""Signals that come while something takes long: Ctrl-C ends it soon, not when all is done.

Python runs the handlers of signals between its own instructions, so not while the core works. What
may take long calls `look` every megabyte or so. Ten times a second that takes the GIL and lets
handlers run, which costs nothing to speak of; all other times it only asks for the time. What a
handler raises goes up like any other exception, so the call has failed and changed nothing.
"""

from cpython.exc cimport PyErr_CheckSignals

from streamtok._core.types cimport st_milliseconds, u64

cdef enum:
    PERIOD = 100

cdef u64 period = PERIOD


def use_every_look(bint wanted):
    """Whether handlers may run at every look from now on, whatever the time. For tests."""
    global period
    period = 0 if wanted else PERIOD


cdef int look(Watch* watch) except -1 nogil:
    cdef u64 now = st_milliseconds()
    if now - watch.looked < period:     # unsigned: a clock that was put back is looked at anew
        return 0
    watch.looked = now
    with gil:
        PyErr_CheckSignals()
    return 0
