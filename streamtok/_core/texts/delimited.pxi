"""Encodes a block of bytes that holds many documents, each followed by a delimiter.

No Python object is made for a document, and the pre-tokens of many documents are looked up together. Marks
in the ids show where documents end: the delimiter gets an id that no document has, since no document
contains the delimiter. The marks are removed at the end.
"""

cdef struct Documents:
    const u8* data          # documents with their delimiters
    size_t size
    const u8* delimiter
    size_t width            # bytes of the delimiter
    u32 mark                # the id of the delimiter
    bint is_pretoken        # the delimiter is a pre-token with that id
    bint skip_empty


cdef struct Pretokens:      # pre-tokens that are looked up together
    size_t start            # start of the first
    size_t count
    i64[BATCH] ends


def find_documents(data, bytes delimiter not None, size_t start, size_t wanted):
    """(count, stop): the number of documents that end in data[start:], and the position after the last
    delimiter.

    Stops at the first delimiter that ends at start + wanted or later. Delimiters are found from left to
    right and do not overlap, as in `bytes.split`.
    """
    cdef Py_buffer view
    cdef const u8* p
    cdef const u8* found
    cdef const u8* stop
    cdef const u8* d = <const u8*>PyBytes_AS_STRING(delimiter)
    cdef size_t width = PyBytes_GET_SIZE(delimiter), count = 0, size
    if width == 0:
        raise ValueError("a delimiter has at least one byte")
    get_bytes(data, &view)
    try:
        size = view.len
        if start > size:
            raise ValueError(f"{start} is beyond the {size} bytes of the block")
        wanted = min(wanted, size - start)
        p = <const u8*>view.buf + start
        stop = <const u8*>view.buf + size
        with nogil:
            while <size_t>(p - <const u8*>view.buf) - start < wanted:
                found = next_delimiter(p, stop, d, width)
                if found == NULL:
                    break
                p = found + width
                count += 1
        return count, p - <const u8*>view.buf
    finally:
        PyBuffer_Release(&view)


def encode_delimited(Encoder encoder not None, ChangeRules rules not None, data,
                     bytes delimiter not None, size_t count, str errors not None, i64 prepend, i64 append,
                     bint skip_empty):
    """(numpy.uint32 [n], numpy.int64 [documents]): the ids of the `count` documents in `data`, each of
    which a delimiter follows, and the positions in the ids where documents end.

    prepend, append: ids to put around those of each document, or -1 for none. skip_empty: documents without
    text get neither ids nor an end. Raises ValueError if the documents must be encoded one by one because
    some are not UTF-8, a special token is refused, or their number is not `count`.
    """
    cdef Documents b
    cdef Py_buffer view
    cdef Workspace workspace
    cdef Work* w
    cdef size_t documents = 0
    cdef bint is_refused
    ends = np.empty(count + 1, np.int64)
    cdef i64* end_array = <i64*>array_memory(ends, INT64)
    b.delimiter = <const u8*>PyBytes_AS_STRING(delimiter)
    b.width = PyBytes_GET_SIZE(delimiter)
    b.skip_empty = skip_empty
    choose_mark(&b, encoder, rules)
    workspace = encoder.take()
    w = &workspace.c
    try:
        get_bytes(data, &view)
        try:
            b.data = <const u8*>view.buf
            b.size = view.len
            foresee(encoder._spares, w, b.size // 3 + count)
            is_refused = errors != "surrogateescape"
            enter_rules(rules)
            try:
                with nogil:
                    is_refused = is_refused and not is_utf8(&b)
                    is_refused = is_refused or not encode_all(&b, encoder, w, rules, count)
                    if not is_refused:
                        documents = take_marks(w, b.mark, end_array, count)
                        is_refused = documents > count
                    if not is_refused:
                        frame(w, documents, end_array, prepend, append)
            finally:
                leave_rules(rules)
        finally:
            PyBuffer_Release(&view)
        if is_refused:
            raise ValueError(f"expected {count} documents of UTF-8, each with a delimiter after it")
        return ids_to_array(encoder._spares, w), ends[:documents]
    finally:
        encoder.give(workspace)


cdef inline const u8* next_delimiter(const u8* p, const u8* stop, const u8* d,
                                     size_t width) noexcept nogil:
    """The first delimiter between p and `stop`, or NULL."""
    while <size_t>(stop - p) >= width:
        p = <const u8*>memchr(p, d[0], <size_t>(stop - p) - (width - 1))
        if p == NULL or width == 1 or memcmp(p + 1, d + 1, width - 1) == 0:
            return p
        p += 1
    return NULL


cdef int choose_mark(Documents* b, Encoder encoder, ChangeRules rules) except -1:
    """Choose the mark: the id of the delimiter if that is a token and nothing else has its id, otherwise
    NONE. It is NONE, too, if rules change the text, since other text may then have the id.
    """
    cdef const Tokens* t = encoder.table.tokens()
    cdef SpecialMatcher matcher = rules.first_tokens.matcher
    cdef u32 token = NONE
    cdef size_t i
    b.mark = NONE
    b.is_pretoken = False
    if rules.is_plain and t.byte_ids == NULL and 0 < b.width <= SHORT_PRETOKEN:
        token = find_token(t, b.delimiter, b.width)
    if token == NONE or t.ids[token] == NONE:
        return 0
    for i in range(<size_t>len(matcher.specials)):
        if matcher.ids[i] == t.ids[token]:
            return 0
    b.mark = t.ids[token]
    b.is_pretoken = True
    return 0


cdef bint is_utf8(const Documents* b) noexcept nogil:
    """Whether every document is UTF-8. A delimiter that is UTF-8 never cuts a character."""
    cdef i32 why
    cdef int size
    valid_bytes(b.delimiter, b.width, &why, &size)
    if why == 0:
        valid_bytes(b.data, b.size, &why, &size)
    return why == 0


cdef int flush(const Documents* b, Encoder encoder, Work* w, Pretokens* pretokens) except -1 nogil:
    if pretokens.count:
        encode_pretokens(encoder.table, w, b.data, b.size, pretokens.start, pretokens.ends, pretokens.count,
                         NULL)
        pretokens.start = <size_t>(pretokens.ends[pretokens.count - 1] if pretokens.ends[pretokens.count - 1] >= 0
                                else -pretokens.ends[pretokens.count - 1])
        pretokens.count = 0
    return 0


cdef bint encode_all(const Documents* b, Encoder encoder, Work* w, ChangeRules rules, size_t count) except -1 nogil:
    """Put the ids of all documents into w.out, each followed by the mark. Returns False if that is not
    possible.
    """
    cdef const ScanTables* tables = encoder.scanner.tables()
    cdef const u8* p = b.data
    cdef const u8* found
    cdef size_t at = 0, stop, i, total, more
    cdef Pretokens pretokens
    cdef Scan s
    cdef Marks marks
    cdef Found special
    cdef size_t looked = 0
    pretokens.start = pretokens.count = 0
    for i in range(count):
        if at - looked > LOOK_BYTES:
            looked = at
            look(&w.watch)
        found = next_delimiter(p + at, p + b.size, b.delimiter, b.width)
        if found == NULL:
            return False
        stop = found - p
        if rules.is_plain:
            rules.first_tokens.matcher.search(&w.watch, p, at, stop, True, &special)
        if not rules.is_plain or special.start < stop:
            flush(b, encoder, w, &pretokens)
            encode_whole(encoder, w, rules, p + at, stop - at, b.size - at, False, False, &total)
            pretokens.start = stop
        elif stop > at:
            scan_begin(&s, at)
            marks_begin(&marks, at)
            while s.start < stop:
                if BATCH - pretokens.count < 65:
                    flush(b, encoder, w, &pretokens)
                more = scan(tables, &s, &marks, p, stop, True, pretokens.ends + pretokens.count,
                            BATCH - pretokens.count, &w.watch)
                if more == 0:
                    return False
                pretokens.count += more
        if pretokens.count == BATCH:
            flush(b, encoder, w, &pretokens)
        if b.skip_empty and stop == at:
            pretokens.ends[pretokens.count] = -<i64>(stop + b.width)
            pretokens.count += 1
        elif b.is_pretoken:
            pretokens.ends[pretokens.count] = <i64>(stop + b.width)
            pretokens.count += 1
        else:
            flush(b, encoder, w, &pretokens)
            reserve(w, 1)
            w.out[w.count] = b.mark
            w.count += 1
            pretokens.start = stop + b.width
        at = stop + b.width
    flush(b, encoder, w, &pretokens)
    settle(encoder.table, w)
    return at == b.size


cdef size_t take_marks(Work* w, u32 mark, i64* ends, size_t most) noexcept nogil:
    """Remove the marks from the ids, and store their positions in `ends`, which has capacity for most + 1.
    Returns the number of marks. If that is more than `most`, the ids are unusable.
    """
    cdef size_t i, to = 0, n = 0
    cdef u32 one
    for i in range(w.count):        # without a branch, which would be unpredictable
        one = w.out[i]
        w.out[to] = one
        ends[n] = <i64>to
        n += one == mark
        to += one != mark
        if n > most:
            return n
    w.count = to
    return n


cdef int frame(Work* w, size_t documents, i64* ends, i64 prepend, i64 append) except -1 nogil:
    """Put `prepend` and `append` around the ids of each document, beginning with the last document."""
    cdef size_t i, to, begin, size
    cdef size_t more = (prepend >= 0) + (append >= 0)
    if more == 0:
        return 0
    reserve(w, documents * more)
    to = w.count + documents * more
    w.count = to
    for i in range(documents, 0, -1):
        begin = <size_t>ends[i - 2] if i > 1 else 0
        size = <size_t>ends[i - 1] - begin
        ends[i - 1] = <i64>to
        if append >= 0:
            to -= 1
            w.out[to] = <u32>append
        to -= size
        memmove(w.out + to, w.out + begin, size * sizeof(u32))
        if prepend >= 0:
            to -= 1
            w.out[to] = <u32>prepend
    return 0
