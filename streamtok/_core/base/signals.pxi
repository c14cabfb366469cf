"""Run signal handlers during long calls, so that Ctrl-C ends a call within a tenth of a second.

Python runs signal handlers only between bytecode instructions, so never while the core works. Long
loops call `look` about once a megabyte. At most ten times a second, `look` takes the GIL and runs
the handlers; otherwise it only reads the clock. An exception from a handler propagates like any
other: the call fails and has changed nothing.
"""

cdef enum:
    PERIOD = 100            # milliseconds


cdef int look(Watch* watch) except -1 nogil:
    """Run signal handlers if they are due. Raises what they raise."""
    cdef u64 now = st_milliseconds()
    if now - watch.looked < strategy.look_period:   # unsigned: a clock set back makes it huge
        return 0
    watch.looked = now
    with gil:
        PyErr_CheckSignals()
    return 0
