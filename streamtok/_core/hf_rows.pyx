"""Ids of many texts as rows of a matrix, and spans as pairs: what transformers asks for at once."""

from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int64_t, uint32_t

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(void* object)


def fill_rows(
    const uint32_t[::1] ids not None,
    const int64_t[::1] ends not None,
    int64_t[:, ::1] matrix not None,
    int64_t[:, ::1] mask,
    tuple before not None,
    tuple after not None,
    Py_ssize_t most,
    bint cuts_left,
    bint pads_left,
    int64_t filling,
):
    """Write each text's ids into a row, between `before` and `after`, and fill the row.

    ends: where each text's ids end. most: ids of a text that are kept, for which there is room in a
    row; cuts_left: the last ones. mask: 0 for padding and 1 for all else, or None.
    """
    cdef const int64_t[::1] head = _numbers(before), tail = _numbers(after)
    cdef Py_ssize_t n_head = len(before), n_tail = len(after), width = matrix.shape[1]
    cdef Py_ssize_t row, i, n, first, at, end, stop = 0
    with nogil:
        for row in range(matrix.shape[0]):
            first = stop
            stop = ends[row]
            n = min(stop - first, most)
            if cuts_left:
                first = stop - n
            end = n_head + n + n_tail
            at = width - end if pads_left else 0
            end += at
            for i in range(at):
                matrix[row, i] = filling
            for i in range(end, width):
                matrix[row, i] = filling
            if mask is not None:
                for i in range(width):
                    mask[row, i] = at <= i < end
            for i in range(n_head):
                matrix[row, at + i] = head[i]
            at += n_head
            for i in range(n):
                matrix[row, at + i] = ids[first + i]
            at += n
            for i in range(n_tail):
                matrix[row, at + i] = tail[i]


cdef const int64_t[::1] _numbers(tuple values):
    from array import array

    return array("q", values or (0,))


def pairs(const int64_t[:, ::1] spans not None):
    """list[tuple[int, int]]: the rows. The collector need not look at what has numbers only."""
    cdef Py_ssize_t n = spans.shape[0], i
    cdef list made = PyList_New(n)
    cdef object start, stop = 0
    cdef int64_t known = 0
    cdef tuple pair
    PyObject_GC_UnTrack(<PyObject*>made)
    for i in range(n):
        start = stop if spans[i, 0] == known else spans[i, 0]
        known = spans[i, 1]
        stop = known
        pair = PyTuple_New(2)
        PyObject_GC_UnTrack(<PyObject*>pair)
        Py_INCREF(start)
        PyTuple_SET_ITEM(pair, 0, start)
        Py_INCREF(stop)
        PyTuple_SET_ITEM(pair, 1, stop)
        Py_INCREF(pair)
        PyList_SET_ITEM(made, i, pair)
    return made
