"""What callers may pass as text: str or bytes-like, as UTF-8 bytes, under one of three policies.

strict: what is no UTF-8 raises. replace: exactly `bytes.decode("utf-8", "replace")`.
surrogateescape: bytes that are no UTF-8 are kept as they are.
"""

from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject

from streamtok._core.types cimport st_free_block, st_new_block

POLICIES = ("strict", "replace", "surrogateescape")


def check_policy(errors):
    """ValueError unless `errors` is one of the three policies."""
    if errors not in POLICIES:
        raise ValueError(f"errors must be one of {', '.join(POLICIES)}, not {errors!r}")


def use_wide_transcode(bint wanted):
    """bool: whether this processor can transcode 16 characters at a time; used from now on if wanted.

    For tests.
    """
    return bool(st_use_wide_transcode(wanted))


def well_formed(const u8[::1] data not None):
    """int: how many bytes at the beginning of `data` are well-formed UTF-8. For tests."""
    cdef i32 why
    cdef int length
    return valid_bytes(&data[0], data.shape[0], &why, &length) if data.shape[0] else 0


cdef int hold_bytes(Text* text, object data) except -1:
    Py_INCREF(data)
    text.owner = <void*>data
    text.data = <const u8*>PyBytes_AS_STRING(data)
    text.size = PyBytes_GET_SIZE(data)
    return 0


cdef int transcode(Text* text, Room* room, object data) except -1:
    """The UTF-8 of a str in `room`, or, without one, kept with the str.

    UnicodeEncodeError for a lone surrogate.
    """
    cdef Py_ssize_t size
    cdef size_t wanted, written
    text.data = <const u8*>st_ready_utf8(data, &size)
    if text.data != NULL:
        text.size = size
        return 0
    if room == NULL:
        text.data = <const u8*>PyUnicode_AsUTF8AndSize(data, &size)
        text.size = size
        return 0
    wanted = st_transcode_room(data)
    if wanted > room.size:
        st_free_block(room.bytes)
        room.size = 0
        room.bytes = <u8*>st_new_block(wanted, 64)
        if room.bytes == NULL:
            raise MemoryError("no memory for the UTF-8 of a str")
        room.size = wanted
    written = st_transcode(data, room.bytes)
    if written == <size_t>-1:
        data.encode()           # raises
    text.data = room.bytes
    text.size = written
    return 0


cdef void room_trim(Room* room) noexcept:
    """Do not sit on the memory of one huge text."""
    if room.size > ROOM_KEPT:
        st_free_block(room.bytes)
        room.bytes = NULL
        room.size = 0


cdef int text_open(Text* text, Room* room, object data, str errors) except -1:
    """Borrow the UTF-8 bytes of `data` until `text_close`, or until the next use of `room` (or NULL).

    Raises TypeError, UnicodeEncodeError (lone surrogates in a str), UnicodeDecodeError (strict).
    """
    cdef i32 why
    cdef int length
    cdef size_t valid
    text.owner = NULL
    text.has_view = False
    if PyUnicode_Check(data):
        if errors == "surrogateescape":
            try:
                transcode(text, room, data)
            except UnicodeEncodeError:
                return hold_bytes(text, data.encode("utf-8", "surrogateescape"))
        else:
            transcode(text, room, data)
        return 0
    if not PyObject_CheckBuffer(data):
        raise TypeError(f"text must be str or bytes-like, not {type(data).__name__}")
    PyObject_GetBuffer(data, &text.view, PyBUF_SIMPLE)
    text.has_view = True
    text.data = <const u8*>text.view.buf
    text.size = text.view.len
    if errors == "surrogateescape":
        return 0
    with nogil:
        valid = valid_bytes(text.data, text.size, &why, &length)
    if why == 0:
        return 0
    try:
        if errors == "strict":
            raise UnicodeDecodeError(
                "utf-8", bytes(data), valid, valid + length, explain(text.data[valid], why)
            )
        return hold_bytes(text, bytes(data).decode("utf-8", "replace").encode())
    finally:
        PyBuffer_Release(&text.view)
        text.has_view = False


cdef void text_close(Text* text) noexcept:
    if text.has_view:
        PyBuffer_Release(&text.view)
        text.has_view = False
    Py_XDECREF(<PyObject*>text.owner)
    text.owner = NULL


cdef str explain(u8 byte, i32 why):
    """The words of Python's own decoder."""
    if why == INCOMPLETE:
        return "unexpected end of data"
    return "invalid start byte" if byte < 0xC2 or byte > 0xF4 else "invalid continuation byte"
