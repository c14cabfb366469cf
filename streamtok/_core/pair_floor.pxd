"""From one floor to the next."""

from streamtok._core.pair_state cimport Merging

cdef int lower_floor(Merging* m) except -1 nogil
