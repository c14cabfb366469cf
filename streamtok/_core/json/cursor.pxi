"""A place in the bytes of a JSON text, and steps over what stands there.

The text is well-formed UTF-8 and ends with a zero byte, which no value may hold. So each step stops
there, if nothing else stops it, and looks one byte ahead without asking. A step returns False at
anything that is not as it should be, and reads nothing beyond the zero.
"""

cdef struct Cursor:
    const u8* p
    size_t at


cdef inline u8 skip_space(Cursor* c) noexcept nogil:
    """The first byte that is no space."""
    cdef u8 byte = c.p[c.at]
    while byte == 0x20 or byte == 0x0A or byte == 0x0D or byte == 0x09:
        c.at += 1
        byte = c.p[c.at]
    return byte


cdef inline bint step_over(Cursor* c, u8 byte) noexcept nogil:
    """Whether this byte is next, and then spaces; they are behind now."""
    if skip_space(c) != byte:
        return False
    c.at += 1
    skip_space(c)
    return True


cdef bint skip_string(Cursor* c, size_t* begin, size_t* end) noexcept nogil:
    """Step over a string; what is between its quotes is p[begin:end]."""
    cdef u8 byte
    if c.p[c.at] != 0x22:
        return False
    c.at += 1
    begin[0] = c.at
    while True:
        byte = c.p[c.at]
        if byte == 0x22:
            end[0] = c.at
            c.at += 1
            return True
        if byte == 0x5C:
            c.at += 1
            byte = c.p[c.at]
        if byte < 0x20:
            return False
        c.at += 1


cdef bint skip_value(Cursor* c) noexcept nogil:
    """Step over a value, whose parts are not checked: another parser reads it, too."""
    cdef size_t depth = 0, begin, end
    cdef u8 byte
    while True:
        byte = c.p[c.at]
        if byte == 0x22:
            if not skip_string(c, &begin, &end):
                return False
        elif byte == 0x7B or byte == 0x5B:
            depth += 1
            c.at += 1
        elif byte == 0x7D or byte == 0x5D:
            if depth == 0:
                return True
            depth -= 1
            c.at += 1
        elif byte == 0:
            return False
        elif byte == 0x2C and depth == 0:
            return True
        else:
            c.at += 1
            continue
        if depth == 0:
            return True


cdef inline i32 hex_digit(u8 byte) noexcept nogil:
    if 0x30 <= byte <= 0x39:
        return byte - 0x30
    byte |= 0x20
    return byte - 0x61 + 10 if 0x61 <= byte <= 0x66 else -1


cdef i32 code_unit(Cursor* c) noexcept nogil:
    """The number in the four digits of a \\u escape, which are behind now; -1 if they are none."""
    cdef i32 value = 0, digit
    cdef int i
    for i in range(4):
        digit = hex_digit(c.p[c.at])
        if digit < 0:
            return -1
        value = value << 4 | digit
        c.at += 1
    return value


cdef i64 read_string(Cursor* c, u8* out) noexcept nogil:
    """The size of a string's UTF-8, which goes to `out`: no more bytes than it has here. Or -1.

    -1 also for half of a surrogate pair, which has no UTF-8.
    """
    cdef const u8* p = c.p
    cdef i64 n = 0
    cdef u8 byte
    cdef i32 code, low
    if p[c.at] != 0x22:
        return -1
    c.at += 1
    while True:
        byte = p[c.at]
        if byte >= 0x20 and byte != 0x22 and byte != 0x5C:
            out[n] = byte
            n += 1
            c.at += 1
            continue
        c.at += 1
        if byte == 0x22:
            return n
        if byte != 0x5C:
            return -1
        byte = p[c.at]
        if byte == 0:
            return -1
        c.at += 1
        if byte == 0x75:                # \u
            code = code_unit(c)
            if code < 0 or 0xDC00 <= code <= 0xDFFF:
                return -1
            if code >= 0xD800 and code < 0xDC00:
                if p[c.at] != 0x5C or p[c.at + 1] != 0x75:
                    return -1
                c.at += 2
                low = code_unit(c)
                if low < 0xDC00 or low > 0xDFFF:
                    return -1
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            n += put_utf8(<u32>code, out + n)
            continue
        if byte == 0x6E:
            byte = 0x0A
        elif byte == 0x74:
            byte = 0x09
        elif byte == 0x72:
            byte = 0x0D
        elif byte == 0x62:
            byte = 0x08
        elif byte == 0x66:
            byte = 0x0C
        elif byte != 0x22 and byte != 0x5C and byte != 0x2F:
            return -1
        out[n] = byte
        n += 1


cdef inline int put_utf8(u32 code, u8* out) noexcept nogil:
    """How many bytes a code point has; they go to `out`."""
    if code < 0x80:
        out[0] = <u8>code
        return 1
    if code < 0x800:
        out[0] = <u8>(0xC0 | code >> 6)
        out[1] = <u8>(0x80 | (code & 0x3F))
        return 2
    if code < 0x10000:
        out[0] = <u8>(0xE0 | code >> 12)
        out[1] = <u8>(0x80 | (code >> 6 & 0x3F))
        out[2] = <u8>(0x80 | (code & 0x3F))
        return 3
    out[0] = <u8>(0xF0 | code >> 18)
    out[1] = <u8>(0x80 | (code >> 12 & 0x3F))
    out[2] = <u8>(0x80 | (code >> 6 & 0x3F))
    out[3] = <u8>(0x80 | (code & 0x3F))
    return 4


cdef bint read_id(Cursor* c, u32* id) noexcept nogil:
    """Step over an integer that is an id: digits without a zero before them, and below 2^32 - 1."""
    cdef u64 value = 0
    cdef size_t begin = c.at
    while 0x30 <= c.p[c.at] <= 0x39:
        value = value * 10 + (c.p[c.at] - 0x30)
        c.at += 1
        if c.at - begin > 10:
            return False
    if c.at == begin or (c.p[begin] == 0x30 and c.at - begin > 1) or value >= NONE:
        return False
    id[0] = <u32>value
    return True
