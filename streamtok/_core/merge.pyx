"""The merge engine: byte pair encoding of one stretch of bytes, without the GIL.

Merges the adjacent pair of lowest rank, the leftmost on ties, until no pair is in the table. Short
stretches scan a small array for the lowest rank. Longer ones keep a doubly linked list of nodes and
a binary min-heap of candidates (rank, position, versions); a merge bumps the versions of both its
nodes, so that a candidate which was pushed before and now means other tokens is recognised and
dropped when it is popped. That makes O(n log n) for any input. The technique is the usual one
(SentencePiece's agenda of symbol pairs, Kudo and Richardson 2018); the results are those of the
obvious O(n^2) loop in `reference.py`.

Does not look whole pieces up and knows no pieces: that is `encoder.pyx`.
"""

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from streamtok._core.types cimport NONE, u8, u32, u64
from streamtok._core.vocab cimport Tokens, find_pair, st_pairs


cdef extern from "merge_lanes.h" nogil:
    enum:
        ST_MERGE_LANES
    ctypedef size_t st_merge_function(const st_pairs* pairs, const u32* byte_token,
                                      const u32* byte_pairs, const u8* p, size_t n,
                                      u32* out) noexcept
    st_merge_function* st_merge_tier()
    ctypedef void st_merge_batch_function(const st_pairs* pairs, const u32* byte_token,
                                          const u32* byte_pairs, const u8* bytes, size_t stride,
                                          const u8* sizes, size_t count, u32* out,
                                          u8* counts) noexcept
    st_merge_batch_function* st_merge_batch_tier()

cdef st_merge_function* merge_in_lanes = st_merge_tier()
cdef st_merge_batch_function* merge_batch = st_merge_batch_tier()


def use_lanes(bint wanted):
    """bool: whether short pieces are merged in registers from now on. For tests."""
    global merge_in_lanes, merge_batch
    merge_in_lanes = st_merge_tier() if wanted else NULL
    merge_batch = st_merge_batch_tier() if wanted else NULL
    return merge_in_lanes != NULL


cdef void merger_free(Merger* m) noexcept nogil:
    free(m.nodes)
    free(m.heap)
    free(m.result)
    m.nodes = NULL
    m.heap = NULL
    m.result = NULL
    m.capacity = m.result_capacity = 0


cdef int grow_result(Merger* m, size_t n) except -1 nogil:
    if n <= m.result_capacity:
        return 0
    cdef size_t capacity = n + n // 2 + 64
    cdef u32* result = <u32*>malloc(capacity * sizeof(u32))
    if result == NULL:
        raise MemoryError("no memory for the tokens of a piece")
    free(m.result)
    m.result = result
    m.result_capacity = capacity
    return 0


cdef int grow_lists(Merger* m, size_t n) except -1 nogil:
    if n <= m.capacity:
        return 0
    cdef size_t capacity = n + n // 2 + 64
    cdef Node* nodes = <Node*>malloc(capacity * sizeof(Node))
    # A merge pushes two candidates and takes one node away: below 3 n pushes in all.
    cdef Candidate* heap = <Candidate*>malloc(3 * capacity * sizeof(Candidate))
    if nodes == NULL or heap == NULL:
        free(nodes)
        free(heap)
        raise MemoryError("no memory to merge a piece")
    free(m.nodes)
    free(m.heap)
    m.nodes = nodes
    m.heap = heap
    m.capacity = capacity
    return 0


cdef size_t merge_short(const Tokens* t, u32* tokens, const u8* p, size_t n) noexcept nogil:
    cdef u32[SCAN_LIMIT] ranks      # rank of the pair that starts here: the token it would become
    cdef size_t i, best
    cdef u32 rank, lowest
    for i in range(n):
        tokens[i] = t.byte_token[p[i]]
    for i in range(n - 1):
        ranks[i] = t.byte_pairs[(<u32>p[i] << 8) | p[i + 1]]
    ranks[n - 1] = NONE
    while n > 1:
        lowest = ranks[0]
        best = 0
        for i in range(1, n - 1):
            rank = ranks[i]
            if rank < lowest:
                lowest = rank
                best = i
        if lowest == NONE:
            break
        tokens[best] = lowest
        n -= 1
        for i in range(best + 1, n):
            tokens[i] = tokens[i + 1]
            ranks[i] = ranks[i + 1]
        ranks[best] = find_pair(t, lowest, tokens[best + 1]) if best + 1 < n else <u32>NONE
        if best > 0:
            ranks[best - 1] = find_pair(t, tokens[best - 1], lowest)
    return n


cdef inline void push(Candidate* heap, size_t* size, Candidate item) noexcept nogil:
    cdef size_t at = size[0], up
    size[0] = at + 1
    while at > 0:
        up = (at - 1) >> 1
        if heap[up].key <= item.key:
            break
        heap[at] = heap[up]
        at = up
    heap[at] = item


cdef inline void sift_down(Candidate* heap, size_t size, size_t at) noexcept nogil:
    cdef Candidate item = heap[at]
    cdef size_t down
    while True:
        down = 2 * at + 1
        if down >= size:
            break
        if down + 1 < size and heap[down + 1].key < heap[down].key:
            down += 1
        if item.key <= heap[down].key:
            break
        heap[at] = heap[down]
        at = down
    heap[at] = item


cdef inline u64 place_of(const Tokens* t, u32 token) noexcept nogil:
    """Where the merge into `token` stands in the order; several may share a place: the leftmost."""
    return t.ties[token] if t.ties != NULL else token


cdef inline void consider(const Tokens* t, Merger* m, size_t* size, u32 left) noexcept nogil:
    """Push the pair that starts at node `left`, if it can merge."""
    cdef Node* node = &m.nodes[left]
    cdef Candidate item
    cdef u32 token = find_pair(t, node.token, m.nodes[node.next].token)
    if token != NONE:
        item.key = (place_of(t, token) << 32) | left
        item.left_version = node.version
        item.right_version = m.nodes[node.next].version
        push(m.heap, size, item)


cdef size_t merge_long(const Tokens* t, Merger* m, const u8* p, size_t n) noexcept nogil:
    cdef Node* nodes = m.nodes
    cdef Candidate* heap = m.heap
    cdef Candidate top
    cdef size_t size = 0, count = 0, i
    cdef u32 at, right, rank
    for i in range(n):
        nodes[i].previous = <u32>i - 1          # NONE for the first
        nodes[i].next = <u32>(i + 1)
        nodes[i].token = t.byte_token[p[i]]
        nodes[i].version = 0
    nodes[n - 1].next = NONE
    for i in range(n - 1):
        rank = t.byte_pairs[(<u32>p[i] << 8) | p[i + 1]]
        if rank != NONE:
            heap[size].key = (place_of(t, rank) << 32) | i
            heap[size].left_version = heap[size].right_version = 0
            size += 1
    for i in range(size // 2, 0, -1):
        sift_down(heap, size, i - 1)
    while size > 0:
        top = heap[0]
        size -= 1
        if size > 0:
            heap[0] = heap[size]
            sift_down(heap, size, 0)
        at = <u32>top.key
        if nodes[at].version != top.left_version:
            continue
        right = nodes[at].next
        if right == NONE or nodes[right].version != top.right_version:
            continue
        if t.ties == NULL:
            nodes[at].token = <u32>(top.key >> 32)
        else:                                   # its place does not say what the pair becomes
            nodes[at].token = find_pair(t, nodes[at].token, nodes[right].token)
        nodes[at].version += 1
        nodes[right].version += 1               # the node is gone: whatever names it is stale
        nodes[at].next = nodes[right].next
        if nodes[at].next != NONE:
            nodes[nodes[at].next].previous = at
            consider(t, m, &size, at)
        if nodes[at].previous != NONE:
            consider(t, m, &size, nodes[at].previous)
    at = 0
    while at != NONE:
        m.result[count] = nodes[at].token
        count += 1
        at = nodes[at].next
    return count


cdef Py_ssize_t merge(const Tokens* t, Merger* m, const u8* p, size_t n) except -1 nogil:
    """Encode p[:n], n < 2**32 - 1, into m.result; returns the number of tokens."""
    if n == 0:
        return 0
    if n >= NONE:
        raise MemoryError("a piece of 4 GiB cannot be merged at once")
    grow_result(m, n)
    if t.ties == NULL:          # else only the heap knows the order
        if n <= ST_MERGE_LANES and merge_in_lanes != NULL:
            return <Py_ssize_t>merge_in_lanes(&t.pairs, t.byte_token, t.byte_pairs, p, n, m.result)
        if n <= SCAN_LIMIT:
            return <Py_ssize_t>merge_short(t, m.result, p, n)
    grow_lists(m, n)
    return <Py_ssize_t>merge_long(t, m, p, n)


cdef int merge_many(const Tokens* t, Merger* m, const u8* pieces, size_t stride, const u8* sizes,
                    size_t count, u32* tokens, u8* counts) except -1 nogil:
    """Encode `count` pieces, at most ST_MERGE_BATCH, of up to `stride` <= 64 bytes each.

    Piece i is at pieces[stride * i], its tokens go to tokens[stride * i], their number to counts[i].
    Four bytes after the last piece must be readable.
    """
    cdef size_t i
    if merge_batch != NULL and t.ties == NULL:
        merge_batch(&t.pairs, t.byte_token, t.byte_pairs, pieces, stride, sizes, count, tokens, counts)
        return 0
    for i in range(count):
        counts[i] = <u8>merge(t, m, pieces + stride * i, sizes[i])
        memcpy(&tokens[stride * i], m.result, counts[i] * sizeof(u32))
    return 0
