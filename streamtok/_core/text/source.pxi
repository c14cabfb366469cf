"""Borrow the text of a Python object, so that threads can read parts of it without the GIL.

`text/text.pxi` converts a whole text under the GIL. Here each thread transcodes or validates its own
part. Nothing is raised: text that is not well-formed is left to `Encoder.encode`, which repairs it or
raises.

Bytes that other code can write to are copied, and only the copy is read. Encoding reads a byte several
times, and a change in between could put wrong ids into the cache.
"""

def size_of(text):
    """int: characters of a str, bytes of a bytes-like object; 0 for any other object.

    Never runs methods of subclasses of str or bytes.
    """
    return source_size(text)


cdef size_t source_size(object text) except? 0:
    cdef Py_buffer view
    cdef size_t size
    if PyUnicode_Check(text):
        return PyUnicode_GET_LENGTH(text)
    if PyBytes_CheckExact(text):
        return PyBytes_GET_SIZE(text)
    if not PyObject_CheckBuffer(text):
        return 0
    try:
        get_bytes(text, &view)
    except Exception:       # raised again when the text is encoded
        return 0
    size = view.len
    PyBuffer_Release(&view)
    return size


cdef bint source_open(Source* s, object text, str errors):
    """Borrow `text` until `source_close`; the caller keeps a reference to it. Returns False on failure."""
    cdef Py_ssize_t size
    s.has_view = s.may_change = s.is_ascii = False
    s.unit = 0
    s.is_checked = True
    if PyUnicode_Check(text):
        s.data = <const u8*>st_ready_utf8(text, &size)
        if s.data != NULL:
            s.size = size
            s.is_ascii = size == PyUnicode_GET_LENGTH(text)
            return True
        s.data = <const u8*>PyUnicode_DATA(text)
        s.size = PyUnicode_GET_LENGTH(text)
        s.unit = PyUnicode_KIND(text)
        return True
    s.is_checked = errors == "surrogateescape"
    if PyBytes_CheckExact(text):
        s.data = <const u8*>PyBytes_AS_STRING(text)
        s.size = PyBytes_GET_SIZE(text)
        return True
    if not PyObject_CheckBuffer(text):
        return False
    try:
        get_bytes(text, &s.view)
    except Exception:       # raised again when the text is encoded
        return False
    s.has_view = True
    s.may_change = view_may_change(text, &s.view)
    s.data = <const u8*>s.view.buf
    s.size = s.view.len
    return True


cdef void source_close(Source* s) noexcept:
    if s.has_view:
        PyBuffer_Release(&s.view)
        s.has_view = False


cdef inline i32 unit_at(const Source* s, size_t i) noexcept nogil:
    """Code unit `i` of a str."""
    if s.unit == 1:
        return s.data[i]
    if s.unit == 2:
        return (<const uint16_t*>s.data)[i]
    return <i32>(<const uint32_t*>s.data)[i]


cdef size_t transcode_units(const Source* s, size_t start, size_t stop, u8* out) noexcept nogil:
    """Write the UTF-8 of code units start:stop to `out`, of `st_transcode_capacity_of` bytes.

    Returns the bytes written, or (size_t)-1 if there is a surrogate.
    """
    return strategy.transcode(s.data + start * s.unit, s.unit, stop - start, out)


cdef const u8* source_utf8(const Source* s, TextBuffer* buffer, size_t start, size_t stop,
                           size_t* size) except? NULL nogil:
    """The UTF-8 of start:stop, borrowed or written to `buffer`; sets `size` to its number of bytes.

    Returns NULL if the text is not well-formed UTF-8 or has a surrogate.
    """
    cdef i32 why = 0
    cdef int length = 0
    cdef const u8* p = s.data + start
    size[0] = stop - start
    if s.unit == 0:
        if s.may_change:
            buffer_ensure(buffer, stop - start)
            if stop > start:            # p may be NULL for an empty text
                memcpy(buffer.bytes, p, stop - start)
            p = buffer.bytes
        if not s.is_checked:
            valid_bytes(p, stop - start, &why, &length)
        if why:
            return NULL
        return p
    buffer_ensure(buffer, st_transcode_capacity_of(s.unit, stop - start))
    size[0] = transcode_units(s, start, stop, buffer.bytes)
    if size[0] == <size_t>-1:
        return NULL
    return buffer.bytes
