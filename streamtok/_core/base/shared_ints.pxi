"""The int objects in lists of ids. Each is made once in a process and shared by all vocabularies.

A reference to an existing int costs a fraction of a new object. The ints are ordinary objects; each is
made when its id is first needed in a list. So the ints of a text are close together in memory, and the
first list does not have to wait for ints that it does not hold.
"""

cdef enum:
    # How many ids ahead to prefetch the int objects, and their slots in `shared_ints`.
    # Without prefetching, a list takes twice as long.
    INTS_AHEAD = 32
    SLOTS_AHEAD = 96
    LISTED = 1 << 20            # ids between two checks for signals


cdef extern from "Python.h":
    PyObject** PySequence_Fast_ITEMS(object values)
    PyObject* new_int "PyLong_FromUnsignedLong"(unsigned long value) except NULL
    void add_reference "Py_INCREF"(PyObject* value)
    void PyObject_GC_Track(object value)
    void PyObject_GC_UnTrack(object value)


cdef PyObject** shared_ints = NULL      # [shared_count] the ints 0, 1, …; NULL: not made yet
cdef size_t shared_count = 0


cdef int share_ints(size_t count) except -1:
    """Make room for the ints 0, 1, …, at least `count` of them.

    Shares no ints on free-threaded CPython, where threads would contend for their reference counts.
    """
    global shared_ints, shared_count
    cdef PyObject** more
    if count > shared_count and ST_LISTS_HOLD_STILL:
        more = <PyObject**>zeros_for(count, sizeof(PyObject*), b"ids")
        if shared_count:
            memcpy(more, shared_ints, shared_count * sizeof(PyObject*))
        free(shared_ints)
        shared_ints = more
        shared_count = count
    return 0


cdef list ids_to_list(TokenTable table, const u32* ids, size_t count):
    """list[int] of the ids."""
    cdef list result = PyList_New(count)
    cdef PyObject** items = PySequence_Fast_ITEMS(result)
    cdef PyObject** ints
    cdef size_t shared, i = 0, stop
    if table.max_id < MAX_TOKENS:       # otherwise ids are so sparse that memory would be wasted
        share_ints(<size_t>table.max_id + 1 + SPECIAL_IDS)
    if count > LISTED:          # a signal handler must not find a list with missing items
        PyObject_GC_UnTrack(result)
    while True:
        ints = shared_ints      # a signal handler may have reallocated it
        shared = shared_count
        stop = min(count, i + LISTED)
        for i in range(i, stop):
            if i + SLOTS_AHEAD < count:
                ST_PREFETCH(ints + ids[i + SLOTS_AHEAD])
            if i + INTS_AHEAD < count and ids[i + INTS_AHEAD] < shared:
                ST_PREFETCH(ints[ids[i + INTS_AHEAD]])
            if ids[i] >= shared:
                items[i] = new_int(ids[i])
                continue
            if ints[ids[i]] == NULL:
                ints[ids[i]] = new_int(ids[i])
            items[i] = ints[ids[i]]
            add_reference(items[i])
        i = stop
        if i == count:
            break
        PyErr_CheckSignals()
    if count > LISTED:
        PyObject_GC_Track(result)
    return result
