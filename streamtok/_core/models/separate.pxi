"""SentencePiece's models of words and of characters: each is looked up by itself, in the whole text.

A word begins with each space. A character is the longest piece that the rest of the text begins with,
since only user-defined symbols are longer than a character. What is not found is unknown, and a run of
it is one id, unless it becomes its bytes.
"""

cdef size_t piece_end(const Model* m, const u8* p, size_t at, size_t n, u32* id, bint* is_open) noexcept nogil:
    """Where the word or character ends that begins at p[at], at < n; id: its own, or `unknown`.

    is_open: it may be another one if p[:n] goes on.
    """
    cdef const Trie* t = &m.trie
    cdef const u8* found
    cdef size_t end = at + character_size(p + at, n - at), seen = at
    cdef u32 node = ROOT
    id[0] = m.unknown
    if m.kind == SENTENCE_WORDS:
        found = <const u8*>memchr(p + at + 1, c" ", n - at - 1)
        is_open[0] = found == NULL
        end = n if found == NULL else <size_t>(found - p)
        node = node_of(t, p + at, end - at)
        if node != NONE and t.values[node] != NONE:
            id[0] = t.values[node]
        return end
    while seen < n and node != NONE:
        node = child_of(t, node, p[seen])
        seen += 1
        if node != NONE and t.values[node] != NONE:
            id[0] = t.values[node]
            end = seen
    is_open[0] = node != NONE and t.first[node] < t.first[node + 1]
    return end


cdef size_t separate_ids(const Model* m, const u8* p, size_t n, u32* out, Place* places) noexcept nogil:
    """The ids of p[:n]; their number."""
    cdef size_t at = 0, end, run = 0, count = 0
    cdef u32 id
    cdef bint is_open
    while at < n:
        end = piece_end(m, p, at, n, &id, &is_open)
        if id != m.unknown:
            out[count] = id
            set_place(places, count, at, end)
            count += 1
            run = end
        elif end == n or not runs_are_joined(m) or is_known(m, p, end, n):
            count += run_ids(m, p, run, end, out + count, places + count if places != NULL else NULL)
            run = end
        at = end
    return count


cdef bint is_known(const Model* m, const u8* p, size_t at, size_t n) noexcept nogil:
    cdef u32 id
    cdef bint is_open
    piece_end(m, p, at, n, &id, &is_open)
    return id != m.unknown


cdef size_t final_separate(const Model* m, const u8* p, size_t n) noexcept nogil:
    """Up to where the ids of p[:n] are final, whatever follows."""
    cdef size_t at = 0, end, done = 0
    cdef u32 id
    cdef bint is_open
    while at < n:
        end = piece_end(m, p, at, n, &id, &is_open)
        if is_open:
            break
        at = end
        if id != m.unknown or not runs_are_joined(m):
            done = end
        # A run ends where a known piece begins.
    return done
