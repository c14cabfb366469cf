"""int objects to put into lists of ids: made once in a process, and shared by all vocabularies.

Where Python lets them (`standing.h`), they live as long as the process and their references need
not be counted: a list of ids is then filled by storing pointers, without the GIL.
"""

from cpython.ref cimport PyObject

cdef extern from "standing.h":
    int st_make_standing(object value)

cdef list newest = []
cdef bint standing = False


cdef list known_ints(size_t count):
    """list[int]: 0, 1, …, at least `count` of them. It never changes; a longer one is another list."""
    global newest, standing
    cdef list longer
    cdef size_t i
    if <size_t>len(newest) < count:
        longer = newest + list(range(len(newest), count))
        standing = True
        for i in range(len(newest), count):
            if not st_make_standing(longer[i]):
                standing = False
                break
        newest = longer
    return newest


cdef bint ints_stand() noexcept nogil:
    """Whether references to what `known_ints` gave need not be counted."""
    return standing
