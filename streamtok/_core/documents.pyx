"""Many small documents at once: one array of ids, and where each document ends in it.

The same ids as one call of `Encoder.encode` for each, without its cost, which is that of some
hundred bytes of text: a line of a log has fewer.
"""

from cpython.bytes cimport PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM
from cpython.ref cimport PyObject

from streamtok._core.cells cimport Work, Workspace, reserve
from streamtok._core.encoder cimport Encoder, encode_whole
from streamtok._core.output cimport foresee, ids_to_array
from streamtok._core.special cimport DISALLOWED, PARTIAL, Found, SpecialMatcher
from streamtok._core.text cimport Text, text_close, text_open
from streamtok._core.types cimport i64, u32

cdef enum:
    OPEN = 128              # texts that are borrowed at a time


cdef int encode_texts(Encoder encoder, Work* w, SpecialMatcher matcher, const Text* texts,
                      size_t n, i64 before, i64 after, size_t* ends) except -1 nogil:
    """Encode n documents; ends[i] is where the ids of texts[i] end. 1 at a refused special token."""
    cdef Found refused
    cdef size_t i, total
    refused.kind = PARTIAL
    for i in range(n):
        if before >= 0:
            reserve(w, 1)
            w.out[w.count] = <u32>before
            w.count += 1
        encode_whole(encoder, w, matcher, texts[i].data, texts[i].size, False, &total, &refused)
        if refused.kind == DISALLOWED:
            return 1
        if after >= 0:
            reserve(w, 1)
            w.out[w.count] = <u32>after
            w.count += 1
        ends[i] = w.count
    return 0


def encode_documents(Encoder encoder not None, list texts, SpecialMatcher matcher not None,
                     str errors, i64 before, i64 after):
    """(numpy.uint32 [n], list[int]): the ids of all texts, and where those of each end.

    before, after: the id that each document begins or ends with, or -1. Raises what
    `Encoder.encode` raises; None where a disallowed special token stands.
    """
    cdef Text[OPEN] opened
    cdef size_t[OPEN] ends
    cdef size_t n = len(texts), done = 0, count, ready, size = 0, i
    cdef bint is_refused = False
    cdef list places = []
    cdef Workspace workspace
    for i in range(n):
        if PyBytes_CheckExact(<object>PyList_GET_ITEM(texts, i)):
            size += PyBytes_GET_SIZE(<object>PyList_GET_ITEM(texts, i))
        else:
            size += len(texts[i])
    workspace = encoder.take()
    try:
        foresee(encoder._spares, &workspace.c, size // 3 + 2 * n)
        while done < n and not is_refused:
            count = n - done if n - done < OPEN else OPEN
            ready = 0
            try:
                while ready < count:
                    # Without a room: a str keeps its UTF-8, for several are open at a time.
                    text_open(&opened[ready], NULL, texts[done + ready], errors)
                    ready += 1
                with nogil:
                    is_refused = encode_texts(encoder, &workspace.c, matcher, opened, count,
                                              before, after, ends)
            finally:
                for i in range(ready):
                    text_close(&opened[i])
            if not is_refused:
                for i in range(count):
                    places.append(ends[i])
            done += count
        return None if is_refused else (ids_to_array(encoder._spares, &workspace.c), places)
    finally:
        encoder.give(workspace)
