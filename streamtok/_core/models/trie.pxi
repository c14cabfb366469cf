"""A trie of the pieces of a model: walking it along a text finds all pieces that the text begins with.

Nodes are numbered level by level, so the children of a node are adjacent, in order of their bytes.
Node 0 is the root.
"""

cdef enum:
    ROOT = 0
    FEW_CHILDREN = 8        # up to this many children are compared one by one


cdef struct PieceRange:     # the pieces, in byte order, that begin with the bytes that lead to a node
    u32 low
    u32 high


cdef inline u32 child_of(const Trie* t, u32 node, u8 byte) noexcept nogil:
    """The child of `node` that this byte leads to, or NONE."""
    cdef u32 child = t.first[node], end = t.first[node + 1]
    cdef const u8* found
    if end - child > FEW_CHILDREN:
        if node == ROOT:
            return t.begins[byte]
        found = <const u8*>memchr(t.labels + child, byte, end - child)
        return NONE if found == NULL else <u32>(found - t.labels)
    while child < end:
        if t.labels[child] == byte:
            return child
        child += 1
    return NONE


cdef u32 node_of(const Trie* t, const u8* p, size_t n) noexcept nogil:
    """The node that p[:n] leads to, or NONE."""
    cdef u32 node = ROOT
    cdef size_t i
    for i in range(n):
        node = child_of(t, node, p[i])
        if node == NONE:
            break
    return node


cdef int trie_open(Trie* t, const u8* blob, const u32* offsets, const u32* ids, u32 count) except -1:
    """Build `t`, which must be all zero, from distinct pieces in byte order."""
    cdef size_t capacity = <size_t>offsets[count] + 1       # a byte makes at most one node
    cdef PieceRange* ranges
    cdef void* fitting
    t.first = <u32*>memory_for(capacity + 1, sizeof(u32), b"nodes of a trie")
    t.labels = <u8*>memory_for(capacity, 1, b"nodes of a trie")
    t.values = <u32*>memory_for(capacity, sizeof(u32), b"nodes of a trie")
    ranges = <PieceRange*>memory_for(capacity, sizeof(PieceRange), b"nodes of a trie")
    with nogil:
        fill_trie(t, ranges, blob, offsets, ids, count)
    free(ranges)
    # Free the memory that is left over because pieces share prefixes.
    fitting = realloc(t.first, (<size_t>t.n + 1) * sizeof(u32))
    t.first = <u32*>fitting if fitting != NULL else t.first
    fitting = realloc(t.labels, t.n)
    t.labels = <u8*>fitting if fitting != NULL else t.labels
    fitting = realloc(t.values, <size_t>t.n * sizeof(u32))
    t.values = <u32*>fitting if fitting != NULL else t.values
    return 0


cdef void trie_close(Trie* t) noexcept:
    free(t.first)
    free(t.labels)
    free(t.values)


cdef void fill_trie(Trie* t, PieceRange* ranges, const u8* blob, const u32* offsets, const u32* ids,
                    u32 count) noexcept nogil:
    cdef u32 node = 0, level_end = 1, low, high, piece, depth = 0
    cdef u8 byte
    t.n = 1
    t.labels[ROOT] = 0
    ranges[ROOT].low, ranges[ROOT].high = 0, count
    while node < t.n:
        if node == level_end:
            depth += 1
            level_end = t.n
        low, high = ranges[node].low, ranges[node].high
        t.values[node] = NONE
        if low < high and offsets[low + 1] - offsets[low] == depth:
            t.values[node] = ids[low]       # the shortest piece comes first in byte order
            low += 1
        t.first[node] = t.n
        while low < high:
            byte = blob[offsets[low] + depth]
            piece = low + 1
            while piece < high and blob[offsets[piece] + depth] == byte:
                piece += 1
            t.labels[t.n] = byte
            ranges[t.n].low, ranges[t.n].high = low, piece
            t.n += 1
            low = piece
        node += 1
    t.first[t.n] = t.n
    for depth in range(256):
        t.begins[depth] = NONE
    for node in range(t.first[ROOT], t.first[ROOT + 1]):
        t.begins[t.labels[node]] = node
