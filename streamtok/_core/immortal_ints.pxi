"""The int objects in lists of ids. They are made once in a process and shared by all vocabularies.

They are made immortal where Python allows it (`immortal.h`). Nobody counts references to immortal
objects, so a list of ids is filled by storing pointers, without the GIL.
"""

cdef extern from "immortal.h":
    int st_make_immortal(object value)


cdef list newest = []
cdef bint immortal = False
cdef object newest_lock = object()      # whoever holds it may replace `newest`


cdef list shared_ints(size_t count):
    """list[int]: 0, 1, …, at least `count` of them. It never changes; a longer one is another
    list.
    """
    global newest, immortal
    cdef list longer
    cdef bint all_immortal = True
    cdef size_t i
    with cython.critical_section(newest_lock):
        longer = newest
        if <size_t>len(longer) < count:
            longer = longer + list(range(len(longer), count))
            for i in range(len(newest), count):
                if not st_make_immortal(longer[i]):
                    all_immortal = False
                    break
            newest, immortal = longer, all_immortal
    return longer


cdef bint ints_are_immortal() noexcept nogil:
    """Whether references to what `shared_ints` gave need not be counted.

    Never in a free-threaded build. Elsewhere it is the same from the first list on.
    """
    return immortal
