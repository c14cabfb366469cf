"""Arrays of numbers that Python passes to the core."""

cimport cython

cdef enum Kind:
    UINT8
    UINT16
    UINT32
    UINT64
    INT64

@cython.final
cdef class ArrayView:
    cdef Py_buffer buffer
    cdef void* data
    cdef size_t size            # numbers in all
    cdef size_t columns         # of the last dimension

cdef ArrayView read_array(object array, Kind kind, str name, int dimensions=*)
cdef void* array_memory(object array, Kind kind) except? NULL
