"""Text as it lies in Python's objects, to be read without the GIL."""

from streamtok._core.text cimport Room
from streamtok._core.types cimport u8

cdef struct Source:
    const u8* data          # UTF-8, or the code units of a str
    size_t size             # bytes, or code units
    int unit                # bytes of a code unit; 0: the data is UTF-8
    bint is_checked         # that the UTF-8 is well-formed, or it need not be
    bint may_change         # others can write to the bytes while they are read
    bint has_view
    Py_buffer view

cdef size_t source_size(object text) except? 0
cdef bint source_open(Source* s, object text, str errors)
cdef void source_close(Source* s) noexcept
cdef const u8* source_utf8(const Source* s, Room* room, size_t start, size_t stop,
                           size_t* size) noexcept nogil
cdef size_t transcode_room(const Source* s, size_t n) noexcept nogil
cdef size_t transcode_units(const Source* s, size_t start, size_t stop, u8* out) noexcept nogil
