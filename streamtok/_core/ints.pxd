"""int objects to put into lists of ids."""

cdef list known_ints(size_t count)
cdef bint ints_stand() noexcept nogil
