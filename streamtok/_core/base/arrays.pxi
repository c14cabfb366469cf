"""Arrays of numbers that Python passes to the core: checked once, then plain pointers.

Anything with the buffer protocol will do: numpy arrays, bytes, memoryviews. Typed memoryviews of
Cython would do the same, for some thousand lines of C in each module that has one.
"""

cdef str NAMES = "uint8 uint16 uint32 uint64 int64 float64"


@cython.final
cdef class ArrayView:
    """The memory of an array, which its owner keeps where it is as long as this lives."""

    def __dealloc__(self):
        PyBuffer_Release(&self.buffer)      # of nothing, if there is none


cdef ArrayView read_array(object array, Kind kind, str name, int dimensions=1):
    """The memory of a C-contiguous array of these numbers.

    Raises TypeError for what is not a buffer, ValueError for any other type, order or number of
    dimensions; `name` is what the message calls it.
    """
    return view_of(array, kind, name, dimensions, PyBUF_ND | PyBUF_FORMAT)


cdef void* array_memory(object array, Kind kind) except? NULL:
    """Where the numbers of an array of one dimension are that the caller made, and keeps."""
    return view_of(array, kind, "the array", 1, PyBUF_ND | PyBUF_FORMAT | PyBUF_WRITABLE).data


cdef ArrayView view_of(object array, Kind kind, str name, int dimensions, int flags):
    cdef ArrayView view = ArrayView.__new__(ArrayView)
    cdef const char* format
    cdef int i
    PyObject_GetBuffer(array, &view.buffer, flags)
    format = view.buffer.format
    if format == NULL:
        format = b"B"
    if not is_kind(format, view.buffer.itemsize, kind):
        raise ValueError(
            f"{name} must be an array of {NAMES.split()[<int>kind]}, not of {format.decode()!r}"
        )
    if view.buffer.ndim != dimensions:
        raise ValueError(f"{name} must have {dimensions} dimensions, not {view.buffer.ndim}")
    view.data = view.buffer.buf
    view.size = 1
    for i in range(dimensions):
        view.columns = <size_t>view.buffer.shape[i]
        view.size *= view.columns
    return view


cdef bint is_kind(const char* format, Py_ssize_t width, Kind kind) noexcept:
    """Whether a format of the `struct` module is this type; C has two names for one of 8 bytes."""
    if format[0] in b"@=<":             # all machines that this runs on are little-endian
        format += 1
    if format[0] == 0 or format[1] != 0:
        return False
    if kind == INT64:
        return width == 8 and format[0] in b"lqn"
    if kind == FLOAT64:
        return format[0] == b"d"
    if width != (1 if kind == UINT8 else 2 if kind == UINT16 else 4 if kind == UINT32 else 8):
        return False
    return format[0] in b"?BHILQN"
