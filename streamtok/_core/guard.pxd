"""One call of an object at a time."""

cdef int refuse_use() except -1
cdef int enter(char* busy) except -1
