"""The int objects in lists of ids. They are made once in a process and shared by all vocabularies.

A list takes a reference to an int that exists, which costs a fraction of making one. They are
ordinary ints in a tuple; a larger vocabulary brings a longer tuple with the same ints in front.
"""

cdef enum:
    # Ids that are still to come when their int objects are fetched, and their places in the tuple:
    # without these, a list takes twice as long.
    INTS_AHEAD = 32
    PLACES_AHEAD = 96


cdef extern from "Python.h":
    PyObject** PySequence_Fast_ITEMS(object values)
    PyObject* new_int "PyLong_FromUnsignedLong"(unsigned long value) except NULL
    void add_reference "Py_INCREF"(PyObject* value)


cdef tuple longest_ints = ()


cdef tuple shared_ints(size_t count):
    """The ints 0, 1, …, at least `count` of them."""
    global longest_ints
    cdef tuple ints = longest_ints
    cdef size_t n = len(ints)
    if n < count:
        ints += tuple(range(n, max(count, 2 * n)))
        longest_ints = ints         # harmless if a racing call wins
    return ints


cdef list ids_to_list(TokenTable table, const u32* ids, size_t count):
    """list[int] of the ids."""
    cdef tuple shared = table.ints(count)
    cdef PyObject** ints = PySequence_Fast_ITEMS(shared)
    cdef size_t ready = len(shared), i
    cdef list result = PyList_New(count)
    cdef PyObject** items = PySequence_Fast_ITEMS(result)
    for i in range(count):
        if i + PLACES_AHEAD < count:
            ST_PREFETCH(ints + ids[i + PLACES_AHEAD])
        if i + INTS_AHEAD < count and ids[i + INTS_AHEAD] < ready:
            ST_PREFETCH(ints[ids[i + INTS_AHEAD]])
        if ids[i] < ready:
            items[i] = ints[ids[i]]
            add_reference(items[i])
        else:
            items[i] = new_int(ids[i])
    return result
