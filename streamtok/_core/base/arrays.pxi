"""Arrays of numbers that Python passes to the core: checked once, then plain pointers.

Anything with the buffer protocol will do: numpy arrays, bytes, memoryviews. Cython's typed
memoryviews would do the same, but would add thousands of lines of C to each module that uses one.
"""

cdef str NAMES = "uint8 uint16 uint32 uint64 int64 float64"


@cython.final
cdef class ArrayView:
    """Borrowed memory of an array; its owner neither moves nor frees it while this object lives."""

    def __dealloc__(self):
        PyBuffer_Release(&self.buffer)      # does nothing if there is no buffer


cdef ArrayView read_array(object array, Kind kind, str name, int dimensions=1):
    """Borrow the memory of a C-contiguous array of `kind`.

    name: the array's name in messages.

    Raises TypeError if it is not a buffer, and ValueError if it has the wrong item type, order or
    number of dimensions.
    """
    return view_of(array, kind, name, dimensions, PyBUF_ND | PyBUF_FORMAT)


cdef void* array_memory(object array, Kind kind) except? NULL:
    """Pointer to the numbers of a writable one-dimensional array that the caller keeps alive."""
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
    """Whether a format of the `struct` module is of this kind.

    Several formats are, because C has several integer types of 8 bytes.
    """
    if format[0] in b"@=<":             # all supported machines are little-endian
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
