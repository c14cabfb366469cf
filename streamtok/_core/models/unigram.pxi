"""Unigram: find the pieces of a pre-token with the greatest sum of scores.

The sums are equal to those of tokenizers to the last bit: they are float64, and scores are added from
the beginning of the pre-token. A path replaces another path to the same position only if it is better,
so of two last pieces with equal sums, the one that begins earlier wins. A character that is not a piece
is unknown; a run of unknown characters is looked up as a whole.

**In an open pre-token**, a position is *live* if a piece that starts there may reach beyond the end.
These are the end itself and each position from which the bytes up to the end begin a longer piece. The
best path of any continuation goes through a live position, and begins with the best path to it. So the
pieces that the best paths to all live positions share are final. The search can continue from the last
shared position, with its score: a path to a live position that avoids it has already lost to one that
goes through it. No id is final inside a run of unknown characters, unless each becomes its bytes.

**In SentencePiece**, the whole text is one pre-token, and sums are float32. If the sum of a position is
far from 0, it is subtracted from all sums in use (`rebase`), which rounds them. So the sums of all
positions matter, and the search continues only from a position on the best paths to all later ones. Each
unknown character becomes its own bytes; a run is not looked up.
"""

cdef enum:
    UNKNOWN_PENALTY = 10        # how much the score of an unknown character is below the least score
    FARTHEST = 100000           # distance from 0 beyond which SentencePiece subtracts a sum
    LOOK_MASK = (1 << 14) - 1   # bytes between two checks for signals, less one


cdef int lattice_grow(Lattice* lattice, size_t size) except -1 nogil:
    if size > lattice.capacity:
        lattice.nodes = <BestPath*>grown(lattice.nodes, &lattice.capacity, size, sizeof(BestPath),
                                         b"paths of a pre-token")
    return 0


cdef inline void improve(const Model* m, BestPath* node, double score, u32 start, u32 id) noexcept nogil:
    if m.is_sentencepiece:
        score = <float>score        # as if it had been added up in float32
    if node.start == NONE or score > node.score:
        node.score, node.start, node.id = score, start, id


cdef double rebase(BestPath* nodes, size_t at, size_t last) noexcept nogil:
    """Subtract the sum of position `at` from the sums of at .. last; return its new sum, 0."""
    cdef double far = nodes[at].score
    cdef size_t i
    for i in range(at, last + 1):
        if i == at or nodes[i].start != NONE:
            nodes[i].score = <float>(nodes[i].score - far)
    return 0


cdef int find_paths(const Model* m, Lattice* lattice, Watch* watch, const u8* p, size_t n,
                    double before) except -1 nogil:
    """Find the best paths to all positions of p[:n]. before: the score of the text before it."""
    cdef const Trie* t = &m.trie
    cdef BestPath* nodes
    cdef size_t at = 0, size, end, last = 0
    cdef u32 node
    cdef double score
    cdef bint is_known
    if n >= NONE:
        raise OverflowError(f"a pre-token of {n} bytes is too long for Unigram")
    lattice_grow(lattice, n + 1)
    nodes = lattice.nodes
    for at in range(n + 1):
        nodes[at].start = NONE
    nodes[0].score = before
    at = 0
    while at < n:
        score = nodes[at].score
        if m.is_sentencepiece and (score < -FARTHEST or score > FARTHEST):
            score = rebase(nodes, at, last)
        size = character_size(p + at, n - at)
        is_known = False
        node = ROOT
        end = at
        while end < n:
            node = child_of(t, node, p[end])
            if node == NONE:
                break
            end += 1
            if t.values[node] != NONE:
                improve(m, &nodes[end], m.scores[t.values[node]] + score, <u32>at, t.values[node])
                is_known = is_known or end - at == size
                last = end if end > last else last
        if not is_known:
            last = at + size if at + size > last else last
            improve(m, &nodes[at + size], m.unknown_score + score, <u32>at, m.unknown)
        if (at ^ (at + size)) & ~<size_t>LOOK_MASK:
            look(watch)
        at += size
    return 0


cdef inline bint runs_are_joined(const Model* m) noexcept nogil:
    """Whether the ids of an unknown character depend on its unknown neighbours."""
    return not m.is_sentencepiece or m.byte_ids == NULL


cdef size_t bytes_of_run(const Model* m, const u8* p, size_t start, size_t end, u32* out,
                         IdSpan* id_spans) noexcept nogil:
    """Write the ids of the bytes of p[start:end], with "▁" for a space; return their number."""
    cdef size_t i, k, count = 0
    cdef const char* mark = "\xe2\x96\x81"
    for i in range(start, end):
        for k in range(3 if p[i] == c" " else 1):
            out[count] = m.byte_ids[<u8>mark[k] if p[i] == c" " else p[i]]
            set_id_span(id_spans, count, i, i + 1)
            count += 1
    return count


cdef size_t run_ids(const Model* m, const u8* p, size_t start, size_t end, u32* out,
                    IdSpan* id_spans) noexcept nogil:
    """Write the ids of p[start:end], a run of unknown characters; return their number."""
    cdef u32 node
    cdef size_t i, count = 1
    cdef bint has_bytes = m.byte_ids != NULL
    if m.is_sentencepiece:
        if has_bytes:
            return bytes_of_run(m, p, start, end, out, id_spans)
        out[0] = m.unknown
        set_id_span(id_spans, 0, start, end)
        return 1
    node = node_of(&m.trie, p + start, end - start)
    out[0] = m.unknown
    if node != NONE and m.trie.values[node] != NONE:
        out[0] = m.trie.values[node]
        has_bytes = False
    for i in range(start, end):
        if not has_bytes:
            break
        has_bytes = m.byte_ids[p[i]] != NONE
    if has_bytes:
        count = end - start
        for i in range(count):
            out[i] = m.byte_ids[p[start + i]]
    for i in range(count):
        set_id_span(id_spans, i, start, end)
    return count


cdef size_t path_ids(const Model* m, BestPath* nodes, Watch* watch, const u8* p, size_t end, u32* out,
                     IdSpan* id_spans) except? 0 nogil:
    """Write the ids of the path to `end`; return their number. Only the scores of `nodes` remain valid."""
    cdef size_t at = end, start = 0, count = 0
    cdef u32 before, forward = NONE
    # Reverse the path: each position on it gets the next position instead of the start of its piece.
    while at > 0:
        before = nodes[at].start
        nodes[at].start = forward
        forward = <u32>at
        if (at ^ before) & ~<size_t>LOOK_MASK:
            look(watch)
        at = before
    while at < end:
        if (at ^ start) & ~<size_t>LOOK_MASK:
            look(watch)
        start = at
        at = forward
        forward = nodes[at].start
        if nodes[at].id != m.unknown:
            out[count] = nodes[at].id
            set_id_span(id_spans + count if id_spans != NULL else NULL, 0, start, at)
            count += 1
            continue
        check_unknown(m, p + start, at - start)
        while at < end and nodes[forward].id == m.unknown:
            at = forward
            forward = nodes[at].start
        count += run_ids(m, p, start, at, out + count, id_spans + count if id_spans != NULL else NULL)
    return count


cdef size_t unigram(const Model* m, Lattice* lattice, Watch* watch, const u8* p, size_t n, u32* out,
                    IdSpan* id_spans) except? 0 nogil:
    find_paths(m, lattice, watch, p, n, 0)
    return path_ids(m, lattice.nodes, watch, p, n, out, id_spans)


cdef bint is_live(const Model* m, const u8* p, size_t n) noexcept nogil:
    """Whether a piece is longer than p[:n] and begins with it."""
    cdef u32 node = node_of(&m.trie, p, n)
    return node != NONE and m.trie.first[node] < m.trie.first[node + 1]


cdef size_t final_position(const Model* m, const BestPath* nodes, Watch* watch, const u8* p,
                        size_t n) except? 0 nogil:
    """The position up to which the best path is final, whatever follows p[:n]. nodes: paths of p[:n]."""
    cdef size_t live, at, shared = n
    if m.is_sentencepiece:
        return common_position(m, nodes, p, n)
    for live in range(n - (m.longest - 1) if n > m.longest - 1 else 0, n):
        if (live > 0 and nodes[live].start == NONE) or not is_live(m, p + live, n - live):
            continue
        at = live
        look(watch)
        while at != shared:
            if at > shared:
                at = nodes[at].start
            else:
                shared = nodes[shared].start
        if shared == 0:
            return 0
    while shared > 0 and nodes[shared].id == m.unknown and runs_are_joined(m):
        shared = nodes[shared].start
    return shared


cdef size_t common_position(const Model* m, const BestPath* nodes, const u8* p, size_t n) noexcept nogil:
    """The last position on the best paths to all positions after it, whatever follows p[:n]."""
    cdef size_t at = n, lowest = n, first = n, live
    for live in range(n - (m.longest - 1) if n > m.longest - 1 else 0, n):
        if (live == 0 or nodes[live].start != NONE) and is_live(m, p + live, n - live):
            first = live
            break
    while at > 0:
        if at <= first and lowest >= at and nodes[at].start != NONE and not (
                nodes[at].id == m.unknown and runs_are_joined(m)):
            return at
        if nodes[at].start != NONE and nodes[at].start < lowest:
            lowest = nodes[at].start
        at -= 1
    return 0
