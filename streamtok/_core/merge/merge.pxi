"""The merge engine: byte pair encoding of one segment of bytes, without the GIL.

Repeatedly merges the adjacent pair of lowest rank (of equal ranks, the leftmost) until no adjacent pair
is in the table.
`merge_long` takes O(n log n) for any input, with three data structures, as in SentencePiece's agenda
of symbol pairs (Kudo and Richardson 2018):

- The *linked list*: one `Node` for each byte. A merge changes the left node of a pair and unlinks
  the right one.
- The *heap*: one `Candidate` for each pair that may merge, ordered by rank, then from left to right.
- The *version stamps*: a node counts the merges that it took part in, and a candidate carries the
  versions of both its nodes. If they differ, the candidate is stale: its tokens have changed since.
  It stays in the heap until it is popped, and is then dropped.

`reference/heap_merge.py` has the same steps in Python, `reference/bpe.py` the obvious O(n^2) loop,
and all three return the same tokens. `docs/explanation/how_it_works.md` draws the steps.

Ordinary text hardly ever needs the heap. Most of its pre-tokens are in the cache and are not merged
at all (`cache/pretoken_cache.pxi`). New pre-tokens are usually short. Up to 64 bytes, scanning all
ranks for the lowest is cheaper than a heap: `merge/turns.h` does that for one pre-token or many, and
`merge/columns.h` for many in registers. Longer pre-tokens become segments of 64 bytes
(`merge/segments.pxi`). The heap is needed only for vocabularies with equal ranks (`ties`), and for
segments of 1 KiB, which are used where a long run repeats itself or short segments do not agree. It
bounds the cost of the worst input.

Before the heap is used, tokens are merged in rounds as long as these pay: in a run of spaces or
dashes, the same pair merges everywhere, and one round does the work of a thousand candidates.

Pre-tokens are looked up in `cache/pretoken_encoder.pxi`, not here.
"""

cdef enum:
    ROUND_SHARE = 16        # a round pays if at least one pair in 16 has the lowest rank


cdef void merger_free(Merger* m) noexcept nogil:
    free(m.nodes)
    free(m.heap)
    free(m.result)
    m.nodes = NULL
    m.heap = NULL
    m.result = NULL
    m.capacity = m.result_capacity = 0


cdef int grow_lists(Merger* m, size_t n) except -1 nogil:
    cdef size_t capacity, candidates
    if n > m.capacity:
        m.nodes = <Node*>grown(m.nodes, &capacity, n, sizeof(Node), b"bytes of a pre-token")
        # A merge pushes two candidates and removes one node: fewer than 3 n pushes in all.
        m.heap = <Candidate*>grown(m.heap, &candidates, 3 * capacity, sizeof(Candidate), b"pairs of a pre-token")
        m.capacity = capacity
    return 0


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


cdef inline u64 rank_of(const Tokens* t, u32 token) noexcept nogil:
    """The rank of the merge into `token`. If several tokens share it, the leftmost pair merges first."""
    return t.ties[token] if t.ties != NULL else token


cdef inline void consider(const Tokens* t, Merger* m, size_t* size, u32 left) noexcept nogil:
    """Push a candidate for the pair that starts at node `left`, if it can merge."""
    cdef Node* node = &m.nodes[left]
    cdef Candidate item
    cdef u32 token = find_pair(t, node.token, m.nodes[node.next].token)
    if token != NONE:
        item.key = (rank_of(t, token) << 32) | left
        item.left_version = node.version
        item.right_version = m.nodes[node.next].version
        push(m.heap, size, item)


cdef size_t merge_round(const Tokens* t, u32* tokens, u32* ranks, size_t n, u32 least) noexcept nogil:
    """Merge the pairs of the lowest rank, `least`, from left to right; return the number of tokens left.

    ranks[i] is the token that tokens[i] and tokens[i + 1] merge into; ranks[n - 1] is NONE. Stops
    early if a merge makes a pair of lower rank, which must merge first.
    """
    cdef size_t i = 0, k = 0
    while i < n:
        tokens[k] = tokens[i]
        ranks[k] = ranks[i]
        if ranks[i] != least:
            i += 1
            k += 1
            continue
        tokens[k] = least
        i += 2
        ranks[k] = find_pair(t, least, tokens[i]) if i < n else NONE
        if k > 0:
            ranks[k - 1] = find_pair(t, tokens[k - 1], least)
        if ranks[k] < least or (k > 0 and ranks[k - 1] < least):
            k += 1
            memmove(tokens + k, tokens + i, (n - i) * sizeof(u32))
            memmove(ranks + k, ranks + i, (n - i) * sizeof(u32))
            return k + n - i
        k += 1
    return k


cdef size_t merge_in_rounds(const Tokens* t, u32* tokens, u32* ranks, size_t n) noexcept nogil:
    """Merge in rounds as long as they pay; return the number of tokens left."""
    cdef size_t i, same
    cdef u32 least
    while n > 1:
        least = NONE
        for i in range(n - 1):
            least = ranks[i] if ranks[i] < least else least
        if least == NONE:
            break
        same = 0
        for i in range(n - 1):
            same += ranks[i] == least
        if same * ROUND_SHARE < n:
            break
        n = merge_round(t, tokens, ranks, n, least)
    return n


cdef size_t merge_long(const Tokens* t, Merger* m, const u8* p, size_t n) noexcept nogil:
    """Encode p[:n] into m.result with the linked list, the heap and the version stamps.

    Returns the number of tokens. m must have room for n nodes.
    """
    cdef Node* nodes = m.nodes
    cdef Candidate* heap = m.heap
    cdef Candidate top
    cdef u32* ranks = <u32*>m.nodes
    cdef size_t size = 0, count = 0, i
    cdef u32 at, right, rank
    for i in range(n):
        m.result[i] = t.byte_token[p[i]]
    for i in range(n - 1):
        ranks[i] = t.byte_pairs[(<u32>p[i] << 8) | p[i + 1]]
    ranks[n - 1] = NONE
    if t.ties == NULL:          # with ties, a rank is not the merged token
        n = merge_in_rounds(t, m.result, ranks, n)
    for i in range(n - 1):
        rank = ranks[i]
        if rank != NONE:
            heap[size].key = (rank_of(t, rank) << 32) | i
            heap[size].left_version = heap[size].right_version = 0
            size += 1
    for i in range(n):
        nodes[i].previous = <u32>i - 1          # NONE for the first
        nodes[i].next = <u32>(i + 1)
        nodes[i].token = m.result[i]
        nodes[i].version = 0
    nodes[n - 1].next = NONE
    if size == 0:
        return n
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
            continue                            # stale: the left node has changed
        right = nodes[at].next
        if right == NONE or nodes[right].version != top.right_version:
            continue                            # stale: the right node has changed
        if t.ties == NULL:
            nodes[at].token = <u32>(top.key >> 32)
        else:                                   # the rank is not the merged token
            nodes[at].token = find_pair(t, nodes[at].token, nodes[right].token)
        nodes[at].version += 1
        nodes[right].version += 1               # unlinked: every candidate with this node is stale
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
    """Encode p[:n], n < 2**32 - 1, into m.result; return the number of tokens."""
    if n == 0:
        return 0
    if n >= NONE:
        raise MemoryError("a pre-token of 4 GiB cannot be merged at once")
    if n > m.result_capacity:
        m.result = <u32*>grown(m.result, &m.result_capacity, n, sizeof(u32), b"tokens of a pre-token")
    if t.ties == NULL and n <= ST_SHORT:        # with ties, only the heap merges in the right order
        return merge_alone(t, p, n, m.result)
    grow_lists(m, n)
    return <Py_ssize_t>merge_long(t, m, p, n)


cdef Py_ssize_t merge_alone(const Tokens* t, const u8* p, size_t n, u32* tokens) noexcept nogil:
    """Encode p[:n], 1 <= n <= ST_SHORT, into tokens[:n]; return the number of tokens."""
    cdef u16 first = 0
    cdef u8 size = <u8>n, count
    strategy.merge_batch(&t.pairs, t.byte_token, t.byte_pairs, p, &first, &size, 1, tokens, &first, &count)
    return count


cdef int merge_many(const Tokens* t, Merger* m, const u8* bytes, const u16* units, const u8* sizes,
                    size_t count, u32* tokens, const u16* slots, u8* counts) except -1 nogil:
    """Encode `count` pieces, at most ST_MERGE_BATCH, of up to ST_SHORT bytes each.

    Piece i is at bytes[16 * units[i]]. Its tokens go to tokens[16 * slots[i]], and their number to
    counts[i].
    """
    cdef size_t i
    if t.ties == NULL:
        strategy.merge_batch(&t.pairs, t.byte_token, t.byte_pairs, bytes, units, sizes, count, tokens,
                             slots, counts)
        return 0
    for i in range(count):
        counts[i] = <u8>merge(t, m, bytes + 16 * units[i], sizes[i])
        memcpy(tokens + 16 * slots[i], m.result, counts[i] * sizeof(u32))
    return 0
