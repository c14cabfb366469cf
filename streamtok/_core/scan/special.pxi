"""Find special tokens in bytes, as tiktoken's two regular expressions do in a whole text.

tiktoken first refuses the text if a disallowed string occurs anywhere in it. Then it searches for the
leftmost offset where a special token matches. If several match, it takes the first in its order. If
that one is not allowed, the search continues one byte later. Here one trie holds both sets of strings,
so that a stream also sees where a string may begin whose end has not arrived.
"""

cdef enum Finding:
    NOTHING         # no special token begins before the end of the bytes
    PARTIAL         # one may begin at `start`, but the bytes end too early to tell
    ALLOWED         # buffer[start:end] is the special token `which`
    DISALLOWED      # buffer[start:end] is a disallowed string


cdef struct Found:
    Finding kind
    size_t start
    size_t end
    i32 which


cdef enum:
    LONGEST_SPECIAL = 1024  # bytes: limits the cost of a search for each byte of a text
    SEARCH_STEP = 1 << 14   # bytes between two checks for signals


@cython.final
cdef class SpecialMatcher:
    """Finds allowed special tokens and disallowed strings. Immutable.

    specials: (text, id) pairs in order of preference. allowed, disallowed: sets of strings. Strings
    are compared as UTF-8.

    Raises ValueError for a string longer than LONGEST_SPECIAL.
    """

    cdef readonly tuple specials        # the strings that may match, in order of preference
    cdef readonly object allowed
    cdef readonly object disallowed
    cdef Trie trie                      # of all strings; values: their numbers in byte order
    cdef i32* which                     # by number: index in `specials`, or -1
    cdef u8* is_disallowed              # by number
    cdef u8* is_allowed                 # by index in `specials`
    cdef u32* ids                       # by index in `specials`
    cdef int single                     # the byte that all strings begin with, or -1
    cdef int second                     # the byte that follows it in all strings, or -1
    cdef bint both                      # whether there are special tokens and disallowed strings
    cdef readonly bint is_empty
    cdef size_t longest                 # bytes of the longest string

    def __cinit__(self, specials, allowed, disallowed):
        cdef i32 i
        # Without an allowed token, only disallowed strings matter. Otherwise, all special tokens do:
        # a token that is not allowed hides those after it in the order of preference.
        wanted = list(specials) if any(text in allowed for text, _ in specials) else []
        self.specials = tuple([text for text, _ in wanted])
        self.allowed = frozenset(allowed)
        self.disallowed = frozenset(disallowed)
        self.both = bool(wanted) and bool(disallowed)
        self.is_empty = not wanted and not disallowed
        self.ids = <u32*>memory_for(len(wanted), sizeof(u32), b"special tokens")
        self.is_allowed = <u8*>memory_for(len(wanted), 1, b"special tokens")
        strings: dict = {}
        for i, (text, token) in enumerate(wanted):
            self.ids[i] = token
            self.is_allowed[i] = text in allowed
            strings.setdefault(text.encode("utf-8"), (i, False))
        for text in self.disallowed:
            text = text.encode("utf-8")
            strings[text] = (strings.get(text, (-1, False))[0], True)
        self.longest = max([len(text) for text in strings], default=0)
        for text in strings:
            check_special_size(text)
        build_trie(self, sorted(strings), strings)

    def __dealloc__(self):
        trie_close(&self.trie)
        free(self.which)
        free(self.is_disallowed)
        free(self.is_allowed)
        free(self.ids)

    @property
    def reach(self):
        """Bytes of the longest string that may match."""
        return self.longest

    def split(self, bytes data not None):
        """list of (start, end, id): segments of text, with id -1, and special tokens, in order.

        If there is a disallowed string, the list has only its (start, end, None).
        """
        cdef const u8* p = <const u8*><const char*>data
        cdef size_t begin = 0, end = len(data)
        cdef Found found
        cdef Watch watch
        watch.looked = 0
        result = []
        while True:
            self.search(&watch, p, begin, end, True, &found)
            if found.kind == DISALLOWED:
                return [(found.start, found.end, None)]
            result.append((begin, found.start, -1))
            if found.kind != ALLOWED:
                return result
            result.append((found.start, found.end, self.ids[found.which]))
            begin = found.end

    def finds(self, bytes data not None, size_t start, size_t stop, bint final):
        """(open, list of (start, end, index)): the special tokens in data[start:stop], and their
        index in `specials`. Only for a matcher without disallowed strings.

        open: the offset where a token may begin whose end has not arrived; `stop` if none, or if `final`.
        """
        cdef const u8* p = <const u8*><const char*>data
        cdef Found found
        cdef list result = []
        if not start <= stop <= <size_t>len(data):
            raise ValueError(f"no bytes {start}:{stop} in {len(data)}")
        while True:
            found = self.find(p, start, stop, final)
            if found.kind != ALLOWED:
                return found.start, result
            result.append((found.start, found.end, found.which))
            start = found.end

    cdef int search(self, Watch* watch, const u8* p, size_t start, size_t end, bint final,
                    Found* found) except -1 nogil:
        """Find the first match in p[start:end], into `found`. final: no more bytes follow."""
        cdef size_t stop = end
        while True:
            if end - start > SEARCH_STEP and not self.is_empty:
                stop = start + SEARCH_STEP
            found[0] = self.find(p, start, stop, final and stop == end)
            if stop == end or found.kind == ALLOWED or found.kind == DISALLOWED:
                return 0
            # No special token begins before found.start, which is at most LONGEST_SPECIAL before `stop`.
            start = found.start
            stop = end
            look(watch)

    cdef Found find(self, const u8* p, size_t start, size_t end, bint final) noexcept nogil:
        """As `search`, but for a short text: does not check for signals."""
        cdef Found found, inner
        cdef const u8* hit
        cdef size_t i = start
        found.kind = NOTHING
        found.start = found.end = end
        found.which = -1
        if self.is_empty:
            return found
        while i < end:
            if self.second >= 0:
                i += strategy.find_pair(p + i, end - i, <u8>self.single, <u8>self.second)
                if i == end:
                    break
            elif self.single >= 0:
                hit = <const u8*>memchr(p + i, self.single, end - i)
                if hit == NULL:
                    break
                i = hit - p
            elif self.trie.begins[p[i]] == NONE:
                i += 1
                continue
            inner = match_at(self, p, i, end, final, True)
            if inner.kind != NOTHING:
                found = inner
                break
            i += 1
        return found

    cdef bint crosses(self, const u8* p, size_t offset, size_t end) noexcept nogil:
        """Whether one of the strings begins before `offset` and ends after it, in p[:end]."""
        cdef size_t first = offset - self.longest + 1 if offset >= self.longest else 0
        cdef size_t i = offset, at
        cdef u32 node
        while i > first:
            i -= 1
            node = self.trie.begins[p[i]]
            at = i + 1
            while node != NONE:
                if at > offset and self.trie.values[node] != NONE:
                    return True
                if at == end:
                    break
                node = child_of(&self.trie, node, p[at])
                at += 1
        return False


def check_special_size(bytes text not None):
    """Raise ValueError for a text that is too long for `SpecialMatcher`."""
    if len(text) > LONGEST_SPECIAL:
        raise ValueError(
            f"special tokens, added tokens and texts in disallowed_special have at most "
            f"{<int>LONGEST_SPECIAL} bytes; {text[:40].decode('utf-8', 'replace')!r}… has {len(text)}"
        )


cdef inline bint has_children(const Trie* t, u32 node) noexcept nogil:
    """Whether a longer string begins with the bytes that lead to `node`."""
    return t.first[node] < t.first[node + 1]


cdef Found match_at(SpecialMatcher m, const u8* p, size_t start, size_t end, bint final,
                    bint takes) noexcept nogil:
    """The match that begins at `start`. takes: whether to find allowed tokens, or only disallowed strings."""
    cdef const Trie* t = &m.trie
    cdef Found found, inner
    cdef u32 node = t.begins[p[start]], number
    cdef size_t i = start, refused = 0, best = 0
    cdef i32 which = -1
    found.kind = NOTHING
    found.start = start
    found.end = start
    found.which = -1
    while node != NONE:
        i += 1
        number = t.values[node]
        if number != NONE:
            if m.is_disallowed[number]:
                refused = i
            if m.which[number] >= 0 and (which < 0 or m.which[number] < which):
                which = m.which[number]
                best = i
        if i == end:
            if has_children(t, node) and not final and refused == 0:
                found.kind = PARTIAL
                found.end = end
                return found
            break
        node = child_of(t, node, p[i])
    if refused:
        found.kind = DISALLOWED
        found.end = refused
        return found
    if not takes or which < 0 or not m.is_allowed[which]:
        return found
    if m.both:
        # The text is refused even if a disallowed string begins inside the special token.
        for i in range(start + 1, best):
            inner = match_at(m, p, i, end, final, False)
            if inner.kind == PARTIAL:       # hold back the special token until it is certain
                inner.start = start
            if inner.kind != NOTHING:
                return inner
    found.kind = ALLOWED
    found.end = best
    found.which = which
    return found


cdef int build_trie(SpecialMatcher m, list texts, dict strings) except -1:
    """Build the trie of `texts`, the sorted keys of `strings`: {bytes: (which, is_disallowed)}."""
    cdef size_t i, n = len(texts)
    cdef bytes blob = b"".join(texts)
    cdef u32* bounds            # offsets [n + 1], then numbers [n]
    cdef const Trie* t = &m.trie
    cdef u32 node
    if <size_t>len(blob) >= NONE:
        no_memory(n, b"special tokens")
    m.which = <i32*>memory_for(n, sizeof(i32), b"special tokens")
    m.is_disallowed = <u8*>memory_for(n, 1, b"special tokens")
    bounds = <u32*>memory_for(2 * n + 1, sizeof(u32), b"special tokens")
    try:
        bounds[0] = 0
        for i, text in enumerate(texts):
            m.which[i], m.is_disallowed[i] = strings[text]
            bounds[i + 1] = bounds[i] + <u32>len(text)
            bounds[n + 1 + i] = <u32>i
        trie_open(&m.trie, <const u8*><const char*>blob, bounds, bounds + n + 1, <u32>n)
    finally:
        free(bounds)
    m.single = m.second = -1
    node = t.first[ROOT]
    if t.first[ROOT + 1] - node == 1:
        m.single = t.labels[node]
        if t.first[node + 1] - t.first[node] == 1 and t.values[node] == NONE:
            m.second = t.labels[t.first[node]]
    return 0
