"""UTF-8 in a stream: characters that chunks cut in two, and what is done with ill-formed bytes."""

cdef int complete(Door* d, Text* text, Room* joined, bint is_text, str errors, bint is_last) except -1:
    """Make of a chunk the characters that it completes, as the policy wants them.

    is_text: the chunk is a str. joined: for the chunk with the bytes before it. is_last: no bytes follow it,
    which may complete a character.
    """
    cdef bint is_clean = is_text and text.owner == NULL and d.n_partial == 0
    cdef size_t size, fine
    cdef i32 why = 0
    cdef int length = 0
    if is_text and d.n_partial and text.size and errors != "surrogateescape":
        raise UnicodeDecodeError(
            "utf-8", d.partial[:d.n_partial], d.bytes_in - d.n_partial, d.bytes_in,
            "a str chunk follows bytes that end inside a character",
        )
    d.bytes_in += text.size
    if d.n_partial:
        room_ensure(joined, d.n_partial + text.size + SLACK)
        memcpy(joined.bytes, d.partial, d.n_partial)
        if text.size:
            memcpy(joined.bytes + d.n_partial, text.data, text.size)
        text.data, text.size = joined.bytes, text.size + d.n_partial
    size = fine = text.size
    if is_clean:
        return 0
    if size >= RELEASE_FROM:
        with nogil:
            fine = valid_bytes(text.data, size, &why, &length)
    else:
        fine = valid_bytes(text.data, size, &why, &length)
    if why == 0 or (why == INCOMPLETE and not is_last):
        why = 0
    elif errors == "strict":
        raise UnicodeDecodeError(
            "utf-8", text.data[fine:fine + length], d.bytes_in - size + fine,
            d.bytes_in - size + fine + length, explain(text.data[fine], why),
        )
    else:
        fine = size if is_last else size - unfinished_at_end(text.data, size)
    hold_partial(d, text.data + fine, size - fine)
    text.size = fine
    if why and errors == "replace":         # of bytes, so that nothing else owns the text
        repaired_text = text.data[:fine].decode("utf-8", "replace").encode()
        d.grown += <u64>len(repaired_text) - fine
        own_bytes(text, repaired_text)
    return 0


cdef void hold_partial(Door* d, const u8* p, size_t n) noexcept:
    memcpy(d.partial, p, n)
    d.n_partial = <u8>n
