"""Convert the texts of callers, str or bytes-like, to UTF-8 bytes, under one of three policies.

strict: bytes that are not UTF-8 raise UnicodeDecodeError. replace: they are replaced exactly as by
`bytes.decode("utf-8", "replace")`. surrogateescape: they are kept.

Only `repaired` deals with surrogates in a str: inside the core, all text is bytes.
"""

import re

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


cdef extern from "text/transcode.h":
    const char* st_ready_utf8(object text, Py_ssize_t* size)
    size_t st_transcode_capacity(object text)


cdef enum:
    BUFFER_KEPT = 1 << 23     # bytes: the most that a `TextBuffer` keeps between calls


cdef extern from "Python.h":
    bint PyMemoryView_Check(object value)
    PyObject* PyMemoryView_GET_BASE(object view)
    int PyUnicode_KIND(object text)
    void* PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    bint PyUnicode_IS_ASCII(object text)


POLICIES = ("strict", "replace", "surrogateescape")


def check_policy(errors):
    """Raise ValueError unless `errors` is one of the three policies."""
    if errors not in POLICIES:
        raise ValueError(f"errors must be one of {', '.join(POLICIES)}, not {errors!r}")


def bytes_of(data):
    """bytes: a copy of a bytes-like object. Raises TypeError for other objects, including numbers."""
    cdef Py_buffer view
    if PyUnicode_Check(data):
        raise TypeError("a bytes-like object is needed, not str")
    need_text(data)
    get_bytes(data, &view)
    try:
        return PyBytes_FromStringAndSize(<const char*>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


def unfinished_size(bytes data not None):
    """int: size of an incomplete character at the end, which later bytes may complete: 0 to 3."""
    return unfinished_at_end(<const u8*>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))


cdef extern from "text/utf8_size.h":
    size_t st_utf8_size(const void* text, int kind, size_t n, size_t* surrogates) noexcept nogil


def utf8_size(str text not None):
    """int: size of a str in UTF-8. A surrogate counts as one byte, as under "surrogateescape"."""
    cdef size_t surrogates = 0, size
    if PyUnicode_IS_ASCII(text):
        return PyUnicode_GET_LENGTH(text)
    size = st_utf8_size(PyUnicode_DATA(text), PyUnicode_KIND(text), PyUnicode_GET_LENGTH(text),
                        &surrogates)
    return size - 2 * surrogates


cdef inline size_t transcode_str(object text, u8* out):
    """Write the UTF-8 of a str to `out`, of `st_transcode_capacity` bytes.

    Returns the bytes written, or (size_t)-1 if there is a surrogate.
    """
    return strategy.transcode(PyUnicode_DATA(text), PyUnicode_KIND(text), PyUnicode_GET_LENGTH(text), out)


def has_surrogate(str text not None, size_t start, size_t stop):
    """bool: whether one of characters start:stop is a surrogate.

    Raises ValueError for a range that the text does not have.
    """
    cdef size_t surrogates = 0
    cdef int kind = PyUnicode_KIND(text)
    if not start <= stop <= <size_t>PyUnicode_GET_LENGTH(text):
        raise ValueError(f"no characters {start}:{stop} in {len(text)}")
    if kind > 1:
        st_utf8_size(<const u8*>PyUnicode_DATA(text) + start * kind, kind, stop - start, &surrogates)
    return surrogates > 0


_LONE = re.compile(r"[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udc7f\udd00-\udfff]")


def repaired(str text not None, str errors not None):
    """str: `text` as it is encoded. A surrogate pair becomes its character, and any other surrogate
    becomes U+FFFD, as in tiktoken. "surrogateescape" keeps U+DC80 to U+DCFF: each represents a byte.
    """
    if not has_surrogate(text, 0, len(text)):
        return text
    if errors != "surrogateescape":
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _LONE.sub(lambda found: repaired(found[0], "replace"), text)


def text_bytes(data, str errors not None):
    """bytes: a whole text, str or bytes-like, under the policy `errors`.

    Raises TypeError for other objects and, under "strict", UnicodeDecodeError for bytes that are not
    UTF-8.
    """
    cdef Source source
    cdef TextBuffer buffer
    cdef const u8* p
    cdef size_t size
    cdef i32 why = 0
    cdef int length = 0
    buffer.bytes, buffer.size = NULL, 0
    if source_open(&source, data, errors):
        try:
            p = source_utf8(&source, &buffer, 0, source.size, &size)
            if p != NULL:
                return PyBytes_FromStringAndSize(<const char*>p, size)
        finally:
            source_close(&source)
            st_free_block(buffer.bytes)
    if PyUnicode_Check(data):           # a subclass may override methods
        return repaired(str.__str__(data), errors).encode("utf-8", "surrogateescape")
    whole = bytes_of(data)
    p = <const u8*>PyBytes_AS_STRING(whole)
    size = valid_bytes(p, len(whole), &why, &length)
    if why == 0 or errors == "surrogateescape":
        return whole
    if errors == "strict":
        raise UnicodeDecodeError("utf-8", whole, size, size + length, explain(p[size], why))
    return whole.decode("utf-8", "replace").encode()


cdef bint transcode(Text* text, TextBuffer* buffer, object data) except -1:
    """Write the UTF-8 of a str to `buffer`; if this is NULL, the str caches it.

    Returns False if the str has surrogates.
    """
    cdef Py_ssize_t size
    cdef size_t written
    text.data = <const u8*>st_ready_utf8(data, &size)
    if text.data != NULL:
        text.size = size
        return True
    if buffer == NULL:
        try:
            text.data = <const u8*>PyUnicode_AsUTF8AndSize(data, &size)
        except UnicodeEncodeError:
            text.data = NULL        # no `return` here: it crashes if there is no memory for a traceback
        text.size = size
        return text.data != NULL
    buffer_ensure(buffer, st_transcode_capacity(data))
    written = transcode_str(data, buffer.bytes)
    text.data = buffer.bytes
    text.size = written
    return written != <size_t>-1


cdef int buffer_ensure(TextBuffer* buffer, size_t wanted) except -1 nogil:
    """Make room for `wanted` bytes. The contents are lost."""
    if wanted <= buffer.size:
        return 0
    wanted = st_block_size(wanted)      # use the whole block: it may fit a longer text, too
    st_free_block(buffer.bytes)
    buffer.size = 0
    buffer.bytes = <u8*>st_new_block(wanted, 64)
    if buffer.bytes == NULL:
        no_memory(wanted, b"bytes of a text")
    buffer.size = wanted
    return 0


cdef void buffer_trim(TextBuffer* buffer) noexcept:
    """Free the buffer if a huge text has enlarged it."""
    if buffer.size > BUFFER_KEPT:
        st_free_block(buffer.bytes)
        buffer.bytes = NULL
        buffer.size = 0


cdef bint view_may_change(object data, const Py_buffer* view):
    """Whether other code may write to the bytes of `data`, which a read-only view does not prevent."""
    cdef PyObject* base = <PyObject*>view.obj
    if PyMemoryView_Check(data):
        base = PyMemoryView_GET_BASE(data)
    return base == NULL or not PyBytes_CheckExact(<object>base)


cdef int get_bytes(object data, Py_buffer* view) except -1:
    """Borrow the memory of `data` until `PyBuffer_Release`.

    Raises TypeError unless it is a flat buffer of bytes: an array of wider numbers or a matrix is
    hardly meant as text.
    """
    cdef const char* format
    PyObject_GetBuffer(data, view, PyBUF_ND | PyBUF_FORMAT)
    format = view.format
    if format == NULL:
        format = b"B"
    if format[0] in b"@=<>!":
        format += 1
    if view.ndim <= 1 and view.itemsize == 1 and format[0] in b"Bbc" and format[1] == 0:
        return 0
    found = f"{view.ndim}-dimensional, with items of the format {format.decode()!r}"
    PyBuffer_Release(view)
    raise TypeError(f"text must be str or a flat buffer of bytes; this {type(data).__name__} is {found}")


cdef inline bint is_text_like(object data):
    """Whether this is str or bytes-like."""
    return PyUnicode_Check(data) or PyObject_CheckBuffer(data)


cdef int need_text(object data) except -1:
    """Raise TypeError for an object that is neither str nor bytes-like."""
    if not is_text_like(data):
        raise TypeError(f"text must be str or bytes-like, not {type(data).__name__}")
    return 0


cdef int text_open(Text* text, TextBuffer* buffer, object data, str errors) except -1:
    """Borrow the bytes of `data` until `text_close`, or until the next use of `buffer`, which may be NULL.

    A str becomes UTF-8; under "surrogateescape", surrogates that represent bytes become these bytes.
    `text.owner` is set if the str had surrogates. The bytes of other objects are not validated, and
    other threads may write to them. Raises TypeError if `data` is neither str nor bytes-like.
    """
    text.owner = NULL
    text.has_view = False
    if PyUnicode_Check(data):
        if not transcode(text, buffer, data):     # a subclass may override methods
            data = repaired(str.__str__(data), errors).encode("utf-8", "surrogateescape")
            Py_INCREF(data)
            text.owner = <void*>data
            text.data, text.size = <const u8*>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data)
        return 0
    need_text(data)
    get_bytes(data, &text.view)
    text.has_view = True
    text.data = <const u8*>text.view.buf
    text.size = text.view.len
    return 0


cdef void text_close(Text* text) noexcept:
    if text.has_view:
        PyBuffer_Release(&text.view)
        text.has_view = False
    Py_XDECREF(<PyObject*>text.owner)
    text.owner = NULL


cdef str explain(u8 byte, i32 why):
    """The reason for an error, in the words of Python's own decoder."""
    if why == INCOMPLETE:
        return "unexpected end of data"
    return "invalid start byte" if byte < 0xC2 or byte > 0xF4 else "invalid continuation byte"
