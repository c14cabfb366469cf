"""What callers may pass as text: str or bytes-like, as UTF-8 bytes."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_Check

from streamtok._core.types cimport i32, u8
from streamtok._core.utf8 cimport INCOMPLETE, valid_bytes

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef extern from "transcode.h":
    const char* st_ready_utf8(object text, Py_ssize_t* size)
    size_t st_transcode_room(object text)
    int st_use_wide_transcode(int wanted) noexcept
    size_t st_transcode(object text, u8* out)

cdef enum:
    ROOM_KEPT = 1 << 23     # bytes: what a `Room` keeps between calls

cdef struct Text:
    const u8* data
    size_t size
    Py_buffer view
    bint has_view
    void* owner         # a bytes object that holds the data, or NULL

cdef struct Room:       # memory for the UTF-8 of one text after the other
    u8* bytes
    size_t size

cdef bint room_ensure(Room* room, size_t wanted) noexcept nogil
cdef bint view_may_change(object data, const Py_buffer* view)
cdef int text_open_whole(Text* text, Room* room, object data, str errors) except -1
cdef int text_open(Text* text, Room* room, object data, str errors) except -1
cdef void text_close(Text* text) noexcept
cdef void room_trim(Room* room) noexcept
cdef str explain(u8 byte, i32 why)
