"""Documents that a counter counts one by one, and all of them without Python's lock."""

cdef struct Document:
    Text text               # of what is bytes-like, borrowed
    const u8* data          # UTF-8, or the characters of a str
    size_t size             # units of these
    int kind                # bytes of a unit; 0: UTF-8


cdef int count_documents(PretokenCounter counter, list documents, size_t start,
                         size_t stop) except -1:
    """See `PretokenCounter.count_documents`."""
    cdef size_t n = stop - start, opened = 0, i = 0
    cdef Document* texts
    cdef int room
    if not start <= stop <= <size_t>len(documents) or counter.size:
        raise ValueError(f"no documents {start}:{stop} in {len(documents)}, or bytes are pending")
    texts = <Document*>malloc((n + 1) * sizeof(Document))
    if texts == NULL:
        raise MemoryError("no memory for a list of documents")
    try:
        while opened < n:
            open_document(texts + opened, documents[start + opened], counter.errors)
            opened += 1
            if texts[opened - 1].kind == 0:
                counter.check(texts[opened - 1].data, texts[opened - 1].size, True, counter.offset)
        while True:
            with nogil:
                room = count_next(counter, texts, n, &i)
            if room != FITS or i == n:
                return raise_unless_fits(counter, room)
            # A surrogate. Not that many texts have one that more of it would be done above.
            encode_document(texts + i, documents[start + i], counter.errors)
    finally:
        for i in range(opened):
            text_close(&texts[i].text)
        free(texts)


cdef int count_next(PretokenCounter counter, const Document* texts, size_t n,
                    size_t* at) noexcept nogil:
    """Count the texts from at[0] on, which becomes that of a str with a surrogate, or n."""
    cdef const Document* document
    cdef const u8* data
    cdef size_t size, readable
    cdef Scan walk
    cdef int room
    while at[0] < n:
        document = texts + at[0]
        data, size = document.data, document.size
        readable = size
        if document.kind:
            # The most bytes of UTF-8, apart from the SLACK that may be written after them.
            room = grow_counter(counter, size * (4 if document.kind == 4 else document.kind + 1))
            if room != FITS:
                return room
            size = strategy.transcode(data, document.kind, size, counter.bytes)
            if size == <size_t>-1:
                return FITS
            data, readable = counter.bytes, size + SLACK
        scan_begin(&walk, 0)
        room = counter.count(data, readable, size, &walk, True, counter.offset)
        if room != FITS:
            return room
        counter.offset += size
        at[0] += 1
    return FITS


cdef int open_document(Document* document, object text, str errors) except -1:
    """Borrow a text until `text_close` of its `text`. Raises TypeError."""
    document.text.owner = NULL
    document.text.has_view = False
    document.kind = 0
    if PyUnicode_Check(text):
        document.data = <const u8*>PyUnicode_DATA(text)
        document.size = PyUnicode_GET_LENGTH(text)
        if not PyUnicode_IS_ASCII(text):
            document.kind = PyUnicode_KIND(text)
        return 0
    text_open(&document.text, NULL, text, errors)
    document.data, document.size = document.text.data, document.text.size
    return 0


cdef int encode_document(Document* document, object text, str errors) except -1:
    """The UTF-8 of a str with a surrogate, as `errors` says."""
    text_open(&document.text, NULL, text, errors)
    document.data, document.size, document.kind = document.text.data, document.text.size, 0
    return 0
