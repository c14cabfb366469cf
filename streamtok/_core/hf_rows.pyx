"""Puts the ids of many texts into rows of a matrix or into lists, in the form that transformers wants."""

from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint32_t

from streamtok._core.encode cimport TokenTable, ids_to_list

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
    """Write each text's ids into a row of `matrix`, between `before` and `after`, and pad the row with
    `filling`.

    ends: the position at which each text's ids end. most: how many ids of a text are kept: the first ones,
    or the last ones with cuts_left. mask: set to 0 for padding and to 1 elsewhere; may be None. Raises
    ValueError, without writing anything, if the rows do not fit the matrix.
    """
    cdef const int64_t[::1] head = _numbers(before), tail = _numbers(after)
    cdef Py_ssize_t n_head = len(before), n_tail = len(after), width = matrix.shape[1]
    cdef Py_ssize_t row, i, n, first, at, end, stop = 0
    _check(ends, ids.shape[0], most, n_head + n_tail, width)
    if matrix.shape[0] != ends.shape[0]:
        raise ValueError(f"{ends.shape[0]} texts, but the matrix has {matrix.shape[0]} rows")
    if mask is not None and (mask.shape[0] != matrix.shape[0] or mask.shape[1] != width):
        raise ValueError("the mask has another shape than the matrix")
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


cdef int _check(const int64_t[::1] ends, Py_ssize_t n_ids, Py_ssize_t most, Py_ssize_t n_around,
                Py_ssize_t width) except -1:
    """Raise ValueError if rows would be read or written outside the arrays.

    n_around: the number of ids put around those of a text. width: the number of columns; negative if rows
    have no fixed length.
    """
    cdef Py_ssize_t row, stop = 0, before
    if most < 0:
        raise ValueError(f"each text may keep {most} ids: expected 0 or more")
    for row in range(ends.shape[0]):
        before = stop
        stop = ends[row]
        if not before <= stop <= n_ids:
            raise ValueError(
                f"the ids of text {row} end at {stop}: expected a position from {before} to {n_ids}"
            )
        if 0 <= width < min(stop - before, most) + n_around:
            raise ValueError(
                f"row {row} has {min(stop - before, most) + n_around} ids, the matrix {width} "
                "columns"
            )
    return 0


cdef const int64_t[::1] _numbers(tuple values):
    from array import array

    return array("q", values or (0,))


def list_rows(
    TokenTable table not None,
    const uint32_t[::1] ids not None,
    const int64_t[::1] ends not None,
    tuple before not None,
    tuple after not None,
    Py_ssize_t most,
    bint cuts_left,
    Py_ssize_t width,
    bint pads_left,
    object filling,
):
    """list[list[int]]: each text's ids between `before` and `after`, padded to `width`.

    The other arguments are as for `fill_rows`. The garbage collector does not track the lists, since it
    need not look at numbers.
    """
    cdef Py_ssize_t n_rows = ends.shape[0], row, n, first, size, stop = 0
    cdef list result = PyList_New(n_rows), head = list(before), tail = list(after), made, fill
    _check(ends, ids.shape[0], most, 0, -1)
    for row in range(n_rows):
        first = stop
        stop = ends[row]
        n = min(stop - first, most)
        if cuts_left:
            first = stop - n
        made = ids_to_list(table, &ids[0] + first, n)
        size = len(head) + n + len(tail)
        if size > n or width > size:
            fill = [filling] * (width - size)
            made = fill + head + made + tail if pads_left else head + made + tail + fill
        PyObject_GC_UnTrack(<PyObject*>made)
        put(result, row, made)
    return result


cdef inline void put(list made, Py_ssize_t index, object value) noexcept:
    Py_INCREF(value)
    PyList_SET_ITEM(made, index, value)
