"""Beginnings of texts in a tree of blocks: compared, and their ids put together, at memory's speed.

What `answers.prompt_cache` asks for each call is here, since a comparison of a long prompt takes
less time than a Python loop over its blocks. A text is never hashed where a comparison is enough:
the child that was used last is compared first, and a dictionary is made where texts part.
"""

cimport cython

from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.unicode cimport (
    PyUnicode_DATA,
    PyUnicode_GET_LENGTH,
    PyUnicode_KIND,
    PyUnicode_READ,
)
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcmp

ctypedef fused narrow_t:
    uint8_t
    uint16_t

ctypedef fused wide_t:
    uint16_t
    uint32_t

cdef extern from "Python.h":
    PyObject** PySequence_Fast_ITEMS(object values)

cdef extern from *:
    """
    /* A list of n items that are still to be set, each, before anything else is made: PyList_New
       fills it with zeros first, which takes a third of the time. */
    static PyObject *st_open_list(Py_ssize_t n) {
    #ifdef Py_GIL_DISABLED
        return PyList_New(n);
    #else
        PyListObject *made = (PyListObject *)PyList_New(0);
        if (made == NULL || n == 0)
            return (PyObject *)made;
        made->ob_item = PyMem_New(PyObject *, n);
        if (made->ob_item == NULL) {
            Py_DECREF(made);
            return PyErr_NoMemory();
        }
        made->allocated = n;
        Py_SET_SIZE(made, n);
        return (PyObject *)made;
    #endif
    }

    #include "base/native.h"

    /* Copy n items, and fetch the memory of those that are copied next. */
    static void st_copy_items(PyObject **items, PyObject **into, Py_ssize_t n, PyObject **next) {
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *one = items[i];
            if (i % 8 == 0)
                ST_PREFETCH(next + i);
            Py_INCREF(one);
            into[i] = one;
        }
    }
    """
    list st_open_list(Py_ssize_t n)
    void st_copy_items(PyObject** items, PyObject** into, Py_ssize_t n, PyObject** next)
    void ST_PREFETCH(void* at)

# Blocks lie anywhere, and where they are is known only from one to the next: while one is compared
# or copied, the memory of the next is fetched, or half of the time would be spent waiting for it.

cdef enum:
    _STRIDE = 64  # characters that are compared before a difference is looked for


cdef inline bint _same_units(const narrow_t* left, const wide_t* right, Py_ssize_t n) noexcept nogil:
    """Whether two texts of different widths have the same characters."""
    cdef uint32_t differs = 0
    cdef Py_ssize_t i = 0, stop
    while i < n:
        stop = min(i + _STRIDE, n)
        while i < stop:
            differs |= <uint32_t>left[i] ^ <uint32_t>right[i]
            i += 1
        if differs:
            return False
    return True


cdef bint _stands_at(str text, Py_ssize_t at, str block) except -1:
    """Whether `block` stands in `text` at a place where there is room for it."""
    cdef Py_ssize_t n = PyUnicode_GET_LENGTH(block)
    cdef int wide = PyUnicode_KIND(text), narrow = PyUnicode_KIND(block)
    cdef const uint8_t* found = <const uint8_t*>PyUnicode_DATA(text) + at * wide
    cdef const uint8_t* wanted = <const uint8_t*>PyUnicode_DATA(block)
    if wide == narrow:
        return memcmp(found, wanted, n * wide) == 0
    if narrow == 1 and wide == 2:
        return _same_units[uint8_t, uint16_t](wanted, <const uint16_t*>found, n)
    if narrow == 1 and wide == 4:
        return _same_units[uint8_t, uint32_t](wanted, <const uint32_t*>found, n)
    if narrow == 2 and wide == 4:
        return _same_units[uint16_t, uint32_t](<const uint16_t*>wanted, <const uint32_t*>found, n)
    return False  # the block has a character that is wider than all of the text


def shared_size(str left not None, str right not None):
    """int: with how many equal characters the two texts begin."""
    cdef Py_ssize_t n = min(PyUnicode_GET_LENGTH(left), PyUnicode_GET_LENGTH(right))
    cdef int kind = PyUnicode_KIND(left), other = PyUnicode_KIND(right)
    cdef const uint8_t* one = <const uint8_t*>PyUnicode_DATA(left)
    cdef const uint8_t* two = <const uint8_t*>PyUnicode_DATA(right)
    cdef Py_ssize_t at = 0, step = 1 << 14
    if kind == other:
        while step >= _STRIDE:
            while at + step <= n and memcmp(one + at * kind, two + at * kind, step * kind) == 0:
                at += step
            step >>= 4
    while at < n and PyUnicode_READ(kind, <void*>one, at) == PyUnicode_READ(other, <void*>two, at):
        at += 1
    return at


cdef inline void _fetch(Block block) noexcept:
    """Fetch the memory of a block's text, and the block behind it."""
    cdef Py_ssize_t at = 0
    if block is None:
        return
    cdef char* data = <char*><PyObject*>block.text
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(block.text) * PyUnicode_KIND(block.text)
    if block._recent is not None:
        ST_PREFETCH(<PyObject*>block._recent)
        ST_PREFETCH(<char*><PyObject*>block._recent + 64)
    while at < size:
        ST_PREFETCH(data + at)
        at += 64


@cython.final
cdef class Block:
    """A piece of a text behind other pieces: its ids, and where a stream stands behind it.

    first: how many ids are before it. stop: the place behind it, in characters. state: what a
    stream goes on from, or None where it would be too large. used: when it was found last.
    """

    cdef readonly str text
    cdef readonly list ids
    cdef readonly object state
    cdef readonly Block parent
    cdef readonly Py_ssize_t first
    cdef readonly Py_ssize_t stop
    cdef readonly Py_ssize_t size
    cdef public unsigned long long used
    cdef readonly bint is_kept  # whether it is in a tree
    cdef public bint is_queued
    cdef Block _recent
    cdef dict _others  # None while there is one child at most

    def __init__(
        self, Block parent, str text not None, list ids not None, object state, Py_ssize_t size
    ):
        """size: the bytes that it counts for."""
        self.parent = parent
        self.text = text
        self.ids = ids
        self.state = state
        self.size = size
        self.first = parent.end if parent is not None else 0
        self.stop = (parent.stop if parent is not None else 0) + len(text)
        self.used = 0
        self.is_kept = parent is None
        self.is_queued = False

    @property
    def end(self):
        """int: how many ids there are up to its end."""
        return self.first + PyList_GET_SIZE(self.ids)

    @property
    def is_leaf(self):
        """bool: whether no block goes on behind it."""
        return self._recent is None

    def add(self, Block child not None):
        """Go on with `child`, whose text no other child has."""
        if self._recent is not None:
            if self._others is None:
                self._others = {self._recent.text: self._recent}
            self._others[child.text] = child
        self._recent = child
        child.parent = self
        child.is_kept = True

    def remove(self, Block child not None):
        """Forget a child."""
        child.is_kept = False
        if self._others is not None:
            del self._others[child.text]
            if len(self._others) < 2:
                self._recent = next(iter(self._others.values()))
                self._others = None
                return
        if self._recent is child:
            self._recent = None if self._others is None else next(iter(self._others.values()))

    cpdef Block child(self, str text, Py_ssize_t size):
        """Block | None: the child that the text goes on with behind this block.

        size: the length of every child's text.
        """
        cdef Block found = self._recent
        if found is None or self.stop + size > PyUnicode_GET_LENGTH(text):
            return None
        _fetch(found._recent)
        if _stands_at(text, self.stop, found.text):
            return found
        if self._others is None:
            return None
        found = self._others.get(text[self.stop : self.stop + size])
        if found is not None:
            self._recent = found
        return found

    def walk(self, str text not None, Py_ssize_t size, unsigned long long now):
        """Block: the last of those that the text begins with, from this one on.

        All that are passed are `used` now. Costs a comparison of the text.
        """
        cdef Block block = self, further
        while True:
            block.used = now
            further = block.child(text, size)
            if further is None:
                return block
            block = further

    def up_to(self, Py_ssize_t stop):
        """Block: the last one from here to the beginning that ends at `stop` or before."""
        cdef Block block = self
        while block.stop > stop:
            block = block.parent
        return block

    def ids_behind(self, Block beginning, list more not None):
        """list[int]: the ids behind `beginning` up to the end of this block, and then `more`.

        beginning: this block or one before it; None: all ids.
        """
        cdef Py_ssize_t place = self.end - (0 if beginning is None else beginning.end)
        cdef Block block = self
        cdef list ids = more, before
        cdef list whole = st_open_list(place + PyList_GET_SIZE(more))
        cdef PyObject** into = PySequence_Fast_ITEMS(whole)
        while block is not beginning:
            ST_PREFETCH(<PyObject*>block.ids)
            block = block.parent
        block = self
        while True:
            before = ids if block is beginning else block.ids
            st_copy_items(
                PySequence_Fast_ITEMS(ids),
                into + place,
                PyList_GET_SIZE(ids),
                PySequence_Fast_ITEMS(before),
            )
            if block is beginning:
                return whole
            ids, block = before, block.parent
            place -= PyList_GET_SIZE(ids)
