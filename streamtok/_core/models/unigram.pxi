"""Unigram: the pieces of a pre-token with the greatest sum of scores.

The sums are those of tokenizers to the last bit: float64, from the beginning of the pre-token on. A
path replaces another one to the same position only if it is better, so the piece that begins earlier wins
ties. A character that is not a piece is unknown; a run of unknown ones is looked up as a whole.

**Of an open pre-token**, a position is *live* if a path may go over its end from there: the end itself, and
each position from which the bytes up to the end begin a longer piece. The best path of any continuation
goes through a live position, and begins with the best path to it. So what the best paths to all live
positions share is final. Paths may go on from the last position that they share, with its score: a path to a
live position that does not go through it loses to one that does, and ties with it only if it begins
later. Nothing ends inside a run of unknown characters, unless each becomes its bytes.

**In SentencePiece** the whole text is one pre-token, and sums are float32. Where that of a position is far
from 0, it is subtracted from all sums that are in use (`bring_back`), which rounds them. So it matters
what the sums of all positions are, and paths go on only from a position that all later ones share. An
unknown character becomes its bytes by itself, and a run is not looked up.
"""

cdef enum:
    UNKNOWN_PENALTY = 10        # that much worse than the least score is an unknown character
    FARTHEST = 100000           # from 0 of a sum in SentencePiece
    LOOK_MASK = (1 << 14) - 1   # bytes, less one, between two looks at signals


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


cdef double bring_back(BestPath* nodes, size_t at, size_t last) noexcept nogil:
    """Subtract the sum of the position `at` from those of all up to `last`; its own, from then on."""
    cdef double far = nodes[at].score
    cdef size_t i
    for i in range(at, last + 1):
        if i == at or nodes[i].start != NONE:
            nodes[i].score = <float>(nodes[i].score - far)
    return 0


cdef int find_paths(const Model* m, Lattice* lattice, Watch* watch, const u8* p, size_t n,
                    double before) except -1 nogil:
    """The best paths to all positions of p[:n], after what has the score `before`."""
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
            score = bring_back(nodes, at, last)
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
    """Whether what unknown characters become depends on those beside them."""
    return not m.is_sentencepiece or m.byte_ids == NULL


cdef size_t bytes_of_run(const Model* m, const u8* p, size_t start, size_t end, u32* out,
                         IdSpan* id_spans) noexcept nogil:
    """The ids of the bytes of p[start:end], in which a space stands for "▁"; their number."""
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
    """The ids of the run of unknown characters p[start:end]; their number."""
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
    """The ids of the path to `end`; their number. The nodes are of no use then, except for their scores."""
    cdef size_t at = end, start = 0, count = 0
    cdef u32 before, forward = NONE
    # Each position of the path learns where the next one is, instead of where its piece began.
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
    """Up to where the best path is final, whatever follows p[:n], of which `nodes` are the paths."""
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
    """The last position that is on the best paths to all positions after it, whatever follows p[:n]."""
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
