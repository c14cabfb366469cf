"""Counts documents one by one, without the GIL unless a document is ill-formed."""

cdef int count_documents(PretokenCounter counter, list documents, size_t start,
                         size_t stop) except -1:
    """See `PretokenCounter.count_documents`."""
    cdef size_t n = stop - start, opened = 0, i = 0
    cdef Source* sources
    cdef TextBuffer buffer
    if not start <= stop <= <size_t>len(documents) or counter.size:
        raise ValueError(f"no documents {start}:{stop} in {len(documents)}, or bytes are pending")
    sources = <Source*>memory_for(n, sizeof(Source), b"documents")
    buffer.bytes, buffer.size = NULL, 0
    try:
        while opened < n:
            if source_open(&sources[opened], documents[start + opened], counter.errors):
                opened += 1
            else:
                text_bytes(documents[start + opened], counter.errors)       # raises
        while True:
            with nogil:
                count_sources(counter, sources, n, &i, &buffer)
            if i == n:
                return 0
            # The text is ill-formed: it has a surrogate or is not UTF-8. This is too rare to be handled
            # without the GIL.
            data = text_bytes(documents[start + i], counter.errors)
            count_document(counter, data, len(data), len(data))
            i += 1
    finally:
        for i in range(opened):
            source_close(&sources[i])
        free(sources)
        st_free_block(buffer.bytes)


cdef int count_sources(PretokenCounter counter, const Source* sources, size_t n, size_t* at,
                       TextBuffer* buffer) except -1 nogil:
    """Count texts from at[0] on. Sets at[0] to the index of the first that must be repaired or refused, or
    to n.
    """
    cdef const u8* data
    cdef size_t size
    while at[0] < n:
        data = source_utf8(&sources[at[0]], buffer, 0, sources[at[0]].size, &size)
        if data == NULL:
            return 0
        count_document(counter, data, size, size + (SLACK if sources[at[0]].unit else 0))
        at[0] += 1
    return 0


cdef int count_document(PretokenCounter counter, const u8* data, size_t size, size_t readable) except -1 nogil:
    cdef Scan walk
    scan_begin(&walk, 0)
    counter.count(data, readable, size, &walk, True, counter.offset)
    counter.offset += size
    return 0
