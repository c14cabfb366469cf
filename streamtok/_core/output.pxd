"""Ids as Python objects."""

cimport cython

from cpython.ref cimport PyObject

from streamtok._core.cells cimport Work
from streamtok._core.types cimport u32
from streamtok._core.vocab cimport TokenTable

cdef enum:
    SPARE_BLOCKS = 4

@cython.final
cdef class Spares:          # blocks of ids that arrays have given back
    cdef u32* blocks[SPARE_BLOCKS]
    cdef size_t sizes[SPARE_BLOCKS]
    cdef char busy
    cdef u32* take(self, size_t wanted, size_t* size) noexcept
    cdef void give(self, u32* block, size_t size) noexcept
    cdef void clear(self) noexcept
    cdef size_t total(self) noexcept

@cython.final
cdef class IdBlock:         # the memory of an array of ids
    cdef u32* ids
    cdef size_t size
    cdef Spares spares

cdef enum:
    SPARE_LIMIT = 1 << 22   # ids of the largest block that is kept

cdef int foresee(Spares spares, Work* w, size_t count) except -1
cdef int fill_items(PyObject** items, list ready, const u32* ids, size_t count) except -1 nogil
cdef PyObject** list_items(list values) noexcept
cdef object ids_to_list(TokenTable table, const u32* ids, size_t count)
cdef object ids_to_array(Spares spares, Work* w)
