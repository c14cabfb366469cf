"""Finds and reads `model.vocab` and `model.merges`."""

cdef struct Merge:          # of which the texts are known, but not yet the rows
    size_t begin            # in the buffer
    u32 left                # bytes of the left part
    u32 size
    u64[3] hashes           # of the left part, the right one and both together


cdef struct Places:         # p[begin:end] is the value, if `end` is not 0
    size_t vocab
    size_t vocab_end
    size_t merges
    size_t merges_end


cdef inline bint is_key(const Cursor* c, size_t begin, size_t end, const char* key,
                        size_t n) noexcept nogil:
    return end - begin == n and memcmp(c.p + begin, key, n) == 0


cdef bint read_ids(Cursor* c, size_t end, TextIds into) noexcept nogil:
    """Read an object of integers into a new `TextIds`; False also if there is no memory."""
    cdef size_t room = 1 << 12, total = 0
    cdef void* more
    cdef i64 size
    more = realloc(into.blob, end - c.at + SLACK)       # untouched memory costs nothing
    if more == NULL:
        return False
    into.blob = <u8*>more
    more = realloc(into.offsets, (room + 1) * sizeof(u32))
    if more == NULL:
        return False
    into.offsets = <u32*>more
    more = realloc(into.ids, room * sizeof(u32))
    if more == NULL:
        return False
    into.ids = <u32*>more
    if not step_over(c, 0x7B):
        return False
    if c.p[c.at] == 0x7D:
        c.at += 1
        memset(into.blob, 0, SLACK)
        return into.index() == 0
    while True:
        if into.n == room:
            room *= 2
            more = realloc(into.offsets, (room + 1) * sizeof(u32))
            if more == NULL:
                return False
            into.offsets = <u32*>more
            more = realloc(into.ids, room * sizeof(u32))
            if more == NULL:
                return False
            into.ids = <u32*>more
        size = read_string(c, into.blob + total)
        if size < 0 or not step_over(c, 0x3A) or not read_id(c, &into.ids[into.n]):
            return False
        total += <size_t>size
        into.n += 1
        into.offsets[into.n] = <u32>total
        if skip_space(c) == 0x7D:
            c.at += 1
            break
        if not step_over(c, 0x2C):
            return False
    more = realloc(into.blob, total + SLACK)
    if more == NULL:
        return False
    into.blob = <u8*>more
    memset(into.blob + total, 0, SLACK)
    return into.index() == 0


cdef bint read_merge(Cursor* c, u8* out, Merge* m) noexcept nogil:
    """Read "left right" or ["left", "right"]; both parts go to `out`, with nothing between them."""
    cdef i64 left, right
    cdef u8* blank
    if c.p[c.at] == 0x22:
        right = read_string(c, out)
        if right < 0:
            return False
        blank = <u8*>memchr(out, 0x20, <size_t>right)
        if blank == NULL:
            return False
        left = blank - out
        right -= left + 1
        if memchr(blank + 1, 0x20, <size_t>right) != NULL:
            return False
        memmove(blank, blank + 1, <size_t>right)
    else:
        if not step_over(c, 0x5B):
            return False
        left = read_string(c, out)
        if left < 0 or not step_over(c, 0x2C):
            return False
        right = read_string(c, out + left)
        if right < 0 or skip_space(c) != 0x5D:
            return False
        c.at += 1
    m.left = <u32>left
    m.size = <u32>(left + right)
    return True


cdef bint read_merges(Cursor* c, size_t end, TextIds ids, u32** rows, size_t* count) noexcept nogil:
    """Read an array of merges into rows of three: the left part, the right one, what they make."""
    cdef size_t room = 1 << 12, used, i
    cdef int waiting
    cdef u8* buffer = <u8*>malloc(end - c.at + (AT_ONCE + 1) * SLACK)
    cdef void* more
    cdef Merge[AT_ONCE] merges
    cdef Merge* m
    cdef u8* p
    cdef bint at_end = False, done = False
    rows[0] = <u32*>malloc(room * 3 * sizeof(u32))
    count[0] = 0
    if buffer != NULL and rows[0] != NULL and step_over(c, 0x5B):
        done = True
        if c.p[c.at] == 0x5D:
            c.at += 1
            at_end = True
    while done and not at_end:
        used = 0
        waiting = 0
        while waiting < AT_ONCE:
            m = &merges[waiting]
            m.begin = used
            if not read_merge(c, buffer + used, m):
                done = False
                break
            p = buffer + used
            m.hashes[0] = st_hash_bytes(p, m.left)
            m.hashes[1] = st_hash_bytes(p + m.left, m.size - m.left)
            m.hashes[2] = st_hash_bytes(p, m.size)
            for i in range(3):
                ST_PREFETCH(&ids.slots[m.hashes[i] & ids.mask])
            used += m.size
            waiting += 1
            if skip_space(c) == 0x5D:
                c.at += 1
                at_end = True
                break
            if not step_over(c, 0x2C):
                done = False
                break
        if not done:
            break
        if count[0] + AT_ONCE > room:
            room *= 2
            more = realloc(rows[0], room * 3 * sizeof(u32))
            if more == NULL:
                done = False
                break
            rows[0] = <u32*>more
        if not find_rows(ids, buffer, merges, waiting, rows[0] + 3 * count[0]):
            done = False
            break
        count[0] += waiting
    free(buffer)
    return done


cdef bint find_rows(TextIds ids, const u8* buffer, const Merge* merges, int waiting,
                    u32* rows) noexcept nogil:
    cdef const u8* p
    cdef int i
    for i in range(waiting):
        p = buffer + merges[i].begin
        rows[0] = ids.find(p, merges[i].left, merges[i].hashes[0])
        rows[1] = ids.find(p + merges[i].left, merges[i].size - merges[i].left, merges[i].hashes[1])
        rows[2] = ids.find(p, merges[i].size, merges[i].hashes[2])
        if rows[0] == NONE or rows[1] == NONE or rows[2] == NONE:
            return False
        rows += 3
    return True


cdef bint find_places(Cursor* c, size_t end, TextIds ids, Places* at) noexcept nogil:
    """Where the two tables of the object `model` are; the ids are read on the way."""
    cdef size_t begin, stop
    if not step_over(c, 0x7B):
        return False
    while c.p[c.at] == 0x22:
        if not skip_string(c, &begin, &stop) or memchr(c.p + begin, 0x5C, stop - begin) != NULL:
            return False
        if not step_over(c, 0x3A):
            return False
        if is_key(c, begin, stop, b"vocab", 5):
            if at.vocab_end:
                return False
            at.vocab = c.at
            if not read_ids(c, end, ids):
                return False
            at.vocab_end = c.at
        else:
            if is_key(c, begin, stop, b"merges", 6):
                if at.merges_end:
                    return False
                at.merges = c.at
                # They are read when all ids are known. Stepping over them costs little.
            if not skip_value(c):
                return False
            if is_key(c, begin, stop, b"merges", 6):
                at.merges_end = c.at
        if skip_space(c) != 0x2C:
            break
        c.at += 1
        skip_space(c)
    if skip_space(c) != 0x7D:
        return False
    c.at += 1
    return at.vocab_end != 0 and at.merges_end != 0


cdef bint find_model(Cursor* c, size_t end, TextIds ids, Places* at) noexcept nogil:
    """The same for a whole text."""
    cdef size_t begin, stop
    cdef bint found = False
    if not step_over(c, 0x7B):
        return False
    while c.p[c.at] == 0x22:
        if not skip_string(c, &begin, &stop) or memchr(c.p + begin, 0x5C, stop - begin) != NULL:
            return False
        if not step_over(c, 0x3A):
            return False
        if is_key(c, begin, stop, b"model", 5):
            if found or not find_places(c, end, ids, at):
                return False
            found = True
        elif not skip_value(c):
            return False
        if skip_space(c) != 0x2C:
            break
        c.at += 1
        skip_space(c)
    if skip_space(c) != 0x7D:
        return False
    c.at += 1
    skip_space(c)
    return found and c.at == end


cdef size_t most_values(const u8* p, size_t n) noexcept nogil:
    """How many values a JSON text can have at most: its commas and brackets, those in strings too."""
    cdef size_t count = 0, i
    for i in range(n):
        count += (p[i] == 0x2C) + (p[i] == 0x5B) + (p[i] == 0x7B)
    return count


def read_tables(bytes data not None, size_t limit):
    """The ids and the merges of a tokenizer.json, and the rest of its text; None: see above.

    limit: the most values that it may have. (bytes, TextIds, uint32 [m, 3]): the text with null for
    both tables, the vocabulary, and of each merge the rows in it of the left part, of the right one
    and of what they make. The rest is not checked. Costs about 5 ns a byte.
    """
    cdef const u8* p = <const u8*>PyBytes_AS_STRING(data)
    cdef size_t n = PyBytes_GET_SIZE(data), count = 0
    cdef Cursor c
    cdef Places at
    cdef i32 why = 0
    cdef int size = 0
    cdef u32* rows = NULL
    cdef bint done = False
    cdef TextIds ids = TextIds.__new__(TextIds)
    memset(&at, 0, sizeof(at))
    c.p, c.at = p, 0
    if n > <size_t>0x7FFFFFFF:
        return None
    with nogil:
        if (valid_bytes(p, n, &why, &size) == n and most_values(p, n) <= limit
                and find_model(&c, n, ids, &at)):
            c.at = at.merges
            done = read_merges(&c, n, ids, &rows, &count) and c.at == at.merges_end
    try:
        if not done:
            return None
        merges = np.empty((count, 3), np.uint32)
        memcpy(cnp.PyArray_DATA(merges), rows, count * 3 * sizeof(u32))
        merges.flags.writeable = False
    finally:
        free(rows)
    if at.vocab < at.merges:
        rest = data[:at.vocab], data[at.vocab_end:at.merges], data[at.merges_end:]
    else:
        rest = data[:at.merges], data[at.merges_end:at.vocab], data[at.vocab_end:]
    return b"null".join(rest), ids, merges
