"""What callers may pass as text: str or bytes-like, as UTF-8 bytes."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_Check

from streamtok._core.types cimport i32, u8
from streamtok._core.utf8 cimport INCOMPLETE, valid_bytes

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef struct Text:
    const u8* data
    size_t size
    Py_buffer view
    bint has_view
    void* owner         # a bytes object that holds the data, or NULL

cdef int text_open(Text* text, object data, str errors) except -1
cdef void text_close(Text* text) noexcept
cdef str explain(u8 byte, i32 why)
