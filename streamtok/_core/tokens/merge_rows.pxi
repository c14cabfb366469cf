"""Find the numbers of the texts in a list of merges, with a hash table of their UTF-8.

A dict takes five times as long, because it needs a str of each half and of both together.
"""

cdef struct Name:
    const u8* text
    size_t size

cdef struct Names:
    Name* known                 # [n]
    u64* slots                  # upper half of the hash, then 1 + number; 0: empty
    u64 mask


def find_rows(list names not None, list merges not None, str prefix not None=""):
    """(uint32 [m, 3], first_bad): for each merge, the numbers of its two texts and of their concatenation.

    names: the texts by number, all different. merges: each is a list of two texts, or a str of two
    texts with a space between them. prefix: the second text must begin with it, and the concatenation
    leaves it out. first_bad: the first merge that is malformed or has a text that is not in `names`;
    -1: none. Rows from `first_bad` on are undefined.
    """
    cdef size_t n = len(names), m = len(merges), i, size
    cdef Names table
    cdef Name left, right, dropped
    cdef u8* joined = NULL
    cdef size_t capacity = 0
    cdef Py_ssize_t first_bad = -1
    if n > MAX_TOKENS or m > MAX_TOKENS:
        raise ValueError(f"{n} texts and {m} merges are more than the {MAX_TOKENS} that fit")
    rows = np.empty(3 * m, dtype=np.uint32)
    cdef u32* row = <u32*>array_memory(rows, UINT32)
    read_name(prefix, &dropped)
    table.mask = table_size(n) - 1
    table.known, table.slots = NULL, NULL
    try:
        table.known = <Name*>memory_for(n, sizeof(Name), b"texts")
        table.slots = <u64*>zeros_for(table.mask + 1, sizeof(u64), b"texts")
        for i in range(n):
            read_name(names[i], &table.known[i])
            add_name(&table, <u32>i)
        for i in range(m):
            if (not read_merge(merges[i], &left, &right) or right.size < dropped.size
                    or memcmp(right.text, dropped.text, dropped.size) != 0):
                first_bad = <Py_ssize_t>i
                break
            size = left.size + right.size - dropped.size
            if size > capacity:
                joined = <u8*>grown(joined, &capacity, size, 1, b"bytes of a merge")
            memcpy(joined, left.text, left.size)
            memcpy(joined + left.size, right.text + dropped.size, right.size - dropped.size)
            row[3 * i] = find_name(&table, left.text, left.size)
            row[3 * i + 1] = find_name(&table, right.text, right.size)
            if i > 0 and is_text(&table.known[row[3 * i - 1]], joined, size):   # often the last merge's token
                row[3 * i + 2] = row[3 * i - 1]
            else:
                row[3 * i + 2] = find_name(&table, joined, size)
            if row[3 * i] == NONE or row[3 * i + 1] == NONE or row[3 * i + 2] == NONE:
                first_bad = <Py_ssize_t>i
                break
    finally:
        free(table.known)
        free(table.slots)
        free(joined)
    return rows.reshape(m, 3), first_bad


cdef int read_name(object text, Name* name) except -1:
    """Borrow the UTF-8 of a str, which caches it."""
    cdef Py_ssize_t size
    name.text = <const u8*>PyUnicode_AsUTF8AndSize(text, &size)
    name.size = <size_t>size
    return 0


cdef bint read_merge(object merge, Name* left, Name* right) except -1:
    """Read the two texts of a merge. Returns False if it is malformed."""
    cdef const u8* space
    if type(merge) is list and len(<list>merge) == 2:
        first, second = <list>merge
        if type(first) is not str or type(second) is not str:
            return False
        read_name(first, left)
        read_name(second, right)
        return True
    if type(merge) is not str:
        return False
    read_name(merge, right)
    left.text = right.text
    space = <const u8*>memchr(right.text, c" ", right.size)
    if space == NULL:
        return False
    left.size = space - left.text
    right.text = space + 1
    right.size -= left.size + 1
    return memchr(right.text, c" ", right.size) == NULL


cdef inline bint is_text(const Name* name, const u8* p, size_t n) noexcept nogil:
    return name.size == n and memcmp(name.text, p, n) == 0


cdef void add_name(Names* table, u32 number) noexcept nogil:
    cdef const Name* name = &table.known[number]
    cdef u64 h = st_hash_bytes(name.text, name.size)
    cdef u64 at = h & table.mask
    while table.slots[at] != 0:
        at = (at + 1) & table.mask
    table.slots[at] = (h >> 32) << 32 | (<u64>number + 1)


cdef u32 find_name(const Names* table, const u8* p, size_t n) noexcept nogil:
    """The number of the text p[:n], or NONE."""
    cdef u64 h = st_hash_bytes(p, n)
    cdef u64 at = h & table.mask
    while table.slots[at] != 0:
        if (table.slots[at] ^ h) >> 32 == 0:
            if is_text(&table.known[<u32>table.slots[at] - 1], p, n):
                return <u32>table.slots[at] - 1
        at = (at + 1) & table.mask
    return NONE
