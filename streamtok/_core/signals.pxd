"""Signals that come while something takes long."""

from streamtok._core.types cimport u64

cdef struct Watch:
    u64 looked              # when, in milliseconds

cdef int look(Watch* watch) except -1 nogil
