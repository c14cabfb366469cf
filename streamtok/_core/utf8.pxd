"""UTF-8, byte by byte, in a header so that it is inlined everywhere."""

from streamtok._core.types cimport i32, st_load64, u8, u32, u64

cdef extern from "text/valid_utf8.h" nogil:
    size_t st_valid_utf8(const u8* p, size_t n) noexcept
    size_t st_whole_characters(const u8* p, size_t n) noexcept

cdef enum:
    INVALID = -1        # no character begins here
    INCOMPLETE = -2     # the bytes end inside what may be a character


cdef inline i32 decode_one(const u8* p, size_t n, int* size) noexcept nogil:
    """The code point at the start of p[:n], n >= 1, and its size in bytes; or else INVALID or INCOMPLETE.

    With INVALID and INCOMPLETE, `size` is that of the ill-formed part: the longest prefix of a well-formed
    sequence, or else one byte. Python's decoder replaces that part with one U+FFFD (Unicode 16, 3.9,
    "substitution of maximal subparts").
    """
    cdef u32 a = p[0], b, c, d
    cdef u32 low = 0x80, high = 0xBF
    size[0] = 1
    if a < 0x80:
        return <i32>a
    if a < 0xC2 or a > 0xF4:
        return INVALID
    if n < 2:
        return INCOMPLETE
    b = p[1]
    if a < 0xE0:
        if b & 0xC0 != 0x80:
            return INVALID
        size[0] = 2
        return <i32>(((a & 0x1F) << 6) | (b & 0x3F))
    if a == 0xE0:
        low = 0xA0
    elif a == 0xED:
        high = 0x9F         # no surrogates
    elif a == 0xF0:
        low = 0x90
    elif a == 0xF4:
        high = 0x8F         # nothing above U+10FFFF
    if b < low or b > high:
        return INVALID
    size[0] = 2
    if n < 3:
        return INCOMPLETE
    c = p[2]
    if c & 0xC0 != 0x80:
        return INVALID
    size[0] = 3
    if a < 0xF0:
        return <i32>(((a & 0x0F) << 12) | ((b & 0x3F) << 6) | (c & 0x3F))
    if n < 4:
        return INCOMPLETE
    d = p[3]
    if d & 0xC0 != 0x80:
        return INVALID
    size[0] = 4
    return <i32>(((a & 0x07) << 18) | ((b & 0x3F) << 12) | ((c & 0x3F) << 6) | (d & 0x3F))


cdef inline i32 decode_common(const u8* p, size_t n, int* size) noexcept nogil:
    """Like `decode_one`, but only for well-formed characters of two or three bytes, and with few branches.

    Returns -1 for anything else, and leaves `size` unchanged.
    """
    cdef u32 a = p[0], b, c, code
    if n < 3 or a >= 0xF0:
        return -1
    b = p[1] ^ 0x80
    if a < 0xE0:
        if a < 0xC2 or b >= 0x40:
            return -1
        size[0] = 2
        return <i32>(((a & 0x1F) << 6) | b)
    c = p[2] ^ 0x80
    code = ((a & 0x0F) << 12) | (b << 6) | c
    if (b | c) >= 0x40 or code < 0x800 or (code & 0xF800) == 0xD800:
        return -1
    size[0] = 3
    return <i32>code


cdef inline size_t valid_bytes(const u8* p, size_t n, i32* why, int* size) noexcept nogil:
    """How many bytes at the start of p[:n] are well-formed. Sets `why` to 0, INVALID or INCOMPLETE.

    In the last two cases, sets `size` to that of the ill-formed part that follows.
    """
    cdef size_t i = st_valid_utf8(p, n)
    cdef i32 code
    why[0] = 0
    while i < n:
        while i + 8 <= n and st_load64(p + i) & <u64>0x8080808080808080 == 0:
            i += 8
        if i == n:
            break
        if p[i] < 0x80:
            i += 1
            continue
        code = decode_one(p + i, n - i, size)
        if code < 0:
            why[0] = code
            return i
        i += size[0]
    return n


cdef inline size_t unfinished_at_end(const u8* p, size_t n) noexcept nogil:
    """The size of an incomplete character at the end of p[:n], 0 to 3 bytes. A stream keeps it pending."""
    cdef size_t back = 1
    cdef int length = 0
    while back <= 3 and back <= n:
        if p[n - back] & 0xC0 != 0x80:
            return back if decode_one(p + n - back, back, &length) == INCOMPLETE else 0
        back += 1
    return 0
