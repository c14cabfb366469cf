"""One call of an object at a time."""

cdef int enter(char* busy) except -1
