"""Finds special tokens in bytes, as tiktoken's two regular expressions do in a whole text.

tiktoken first refuses the text if a disallowed string occurs anywhere in it. Then it looks for the
leftmost place where any special token matches; where several do, the first in its order is taken;
if that one is not allowed, the search goes on one byte later. Here one trie holds both sets, so
that a stream can see, too, where a string may begin whose end has not arrived.
"""

cdef enum Finding:
    NOTHING         # no special token begins before the end of the bytes
    PARTIAL         # one may begin at `start`: the bytes end too early to tell
    ALLOWED         # buffer[start:end] is the special token `which`
    DISALLOWED      # buffer[start:end] is text that must not be there


cdef struct Found:
    Finding kind
    size_t start
    size_t end
    i32 which


cdef struct TrieNode:
    u8 byte
    bint is_disallowed
    i32 which           # number of the special token that ends here, or -1
    i32 child           # first of the nodes below, or -1
    i32 sibling         # next node below the same parent, or -1


@cython.final
cdef class SpecialMatcher:
    """`specials`: (text, id) in order of preference; `allowed`, `disallowed`: sets of strings.

    Immutable. Strings are compared as UTF-8.
    """

    cdef readonly tuple specials        # the strings that may match, in order of preference
    cdef readonly object allowed
    cdef readonly object disallowed
    cdef TrieNode* nodes
    cdef u8* is_allowed
    cdef u32* ids
    cdef i32[256] roots
    cdef int single                     # the one byte that all begin with, or -1
    cdef int second                     # the one that follows it in all of them, or -1
    cdef bint both                      # whether there are allowed and disallowed ones
    cdef readonly bint is_empty
    cdef size_t longest                 # bytes of the longest string

    def __cinit__(self, specials, allowed, disallowed):
        cdef i32 i
        # Only what can be taken or refused matters, but a special token that is preferred to an
        # allowed one hides it.
        wanted = list(specials) if any(text in allowed for text, _ in specials) else []
        self.specials = tuple([text for text, _ in wanted])
        self.allowed = frozenset(allowed)
        self.disallowed = frozenset(disallowed)
        self.both = bool(wanted) and bool(disallowed)
        self.is_empty = not wanted and not disallowed
        self.ids = <u32*>malloc((len(wanted) + 1) * sizeof(u32))
        self.is_allowed = <u8*>malloc(len(wanted) + 1)
        if self.ids == NULL or self.is_allowed == NULL:
            raise MemoryError("no memory for the special tokens")
        strings: dict = {}
        for i, (text, token) in enumerate(wanted):
            self.ids[i] = token
            self.is_allowed[i] = text in allowed
            strings.setdefault(text.encode("utf-8"), (i, False))
        for text in self.disallowed:
            text = text.encode("utf-8")
            strings[text] = (strings.get(text, (-1, False))[0], True)
        self.longest = max([len(text) for text in strings], default=0)
        plant(self, sorted(strings.items()))

    def __dealloc__(self):
        free(self.nodes)
        free(self.ids)
        free(self.is_allowed)

    @property
    def reach(self):
        """Bytes of the longest string that may match."""
        return self.longest

    def finds(self, str text not None, Py_ssize_t at, bint final):
        """(open, found): all things of note from character `at` on; all offsets in characters.

        found: list of (start, end, which), in order; `which` is a place in `specials`, or -1 for a
        disallowed string, which nothing follows. open: where a string may begin whose end has not
        arrived; without one, and with `final`, the length of the text.
        """
        cdef Text utf8
        cdef Room room
        cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text)
        cdef object passed = None       # with lone surrogates, which no special token has
        if self.is_empty:
            return length, ()
        room.bytes = NULL
        room.size = 0
        try:
            text_open(&utf8, &room, text, "strict")
        except UnicodeEncodeError:
            passed = str.encode(text, "utf-8", "surrogatepass")
        try:
            if passed is not None:
                text_open(&utf8, NULL, passed, "strict")
            try:
                return list_finds(self, utf8.data, utf8.size, length, at, final)
            finally:
                text_close(&utf8)
        finally:
            st_free_block(room.bytes)

    def split(self, bytes data not None):
        """list of (start, end, token): segments in order, with token -1, and special tokens.

        token None: a disallowed string stands there; nothing follows.
        """
        cdef const u8* p = <const u8*><const char*>data
        cdef size_t begin = 0, end = len(data)
        cdef Found found
        result = []
        while True:
            found = self.find(p, begin, end, True)
            if found.kind == DISALLOWED:
                return [(found.start, found.end, None)]
            result.append((begin, found.start, -1))
            if found.kind != ALLOWED:
                return result
            result.append((found.start, found.end, self.ids[found.which]))
            begin = found.end

    cdef Found find(self, const u8* p, size_t start, size_t end, bint final) noexcept nogil:
        """The first thing of note in p[start:end]; with `final`, nothing can follow."""
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
            elif self.roots[p[i]] < 0:
                i += 1
                continue
            inner = match_at(self, p, i, end, final)
            if inner.kind != NOTHING:
                found = inner
                break
            i += 1
        return found

    cdef bint crosses(self, const u8* p, size_t place, size_t end) noexcept nogil:
        """Whether any of the strings begins before `place` and ends after it, in p[:end]."""
        cdef size_t first = place - self.longest + 1 if place >= self.longest else 0
        cdef size_t i, at
        cdef i32 node
        for i in range(first, place):
            node = self.roots[p[i]]
            at = i + 1
            while node >= 0:
                if at > place and (self.nodes[node].is_disallowed or self.nodes[node].which >= 0):
                    return True
                if at == end:
                    break
                node = child_at(self, node, p[at])
                at += 1
        return False


cdef Found match_at(SpecialMatcher m, const u8* p, size_t start, size_t end,
                    bint final) noexcept nogil:
    cdef Found found, inner
    cdef i32 node = m.roots[p[start]]
    cdef size_t i = start, refused = 0, best = 0
    cdef i32 which = -1
    found.kind = NOTHING
    found.start = start
    found.end = start
    found.which = -1
    while node >= 0:
        i += 1
        if m.nodes[node].is_disallowed:
            refused = i
        if m.nodes[node].which >= 0 and (which < 0 or m.nodes[node].which < which):
            which = m.nodes[node].which
            best = i
        if i == end:
            if m.nodes[node].child >= 0 and not final and refused == 0:
                found.kind = PARTIAL
                found.end = end
                return found
            break
        node = child_at(m, node, p[i])
    if refused:
        found.kind = DISALLOWED
        found.end = refused
        return found
    if which < 0 or not m.is_allowed[which]:
        return found
    if m.both:
        # A disallowed string that begins inside the special token refuses the text all the same.
        for i in range(start + 1, best):
            inner = refused_at(m, p, i, end, final)
            if inner.kind == DISALLOWED:
                return inner
            if inner.kind == PARTIAL:
                found.kind = PARTIAL
                found.end = end
                return found
    found.kind = ALLOWED
    found.end = best
    found.which = which
    return found


cdef Found refused_at(SpecialMatcher m, const u8* p, size_t start, size_t end,
                      bint final) noexcept nogil:
    cdef Found found
    cdef i32 node = m.roots[p[start]]
    cdef size_t i = start
    found.kind = NOTHING
    found.start = start
    found.end = start
    found.which = -1
    while node >= 0:
        i += 1
        if m.nodes[node].is_disallowed:
            found.kind = DISALLOWED
            found.end = i
        if i == end:
            if m.nodes[node].child >= 0 and not final and found.kind == NOTHING:
                found.kind = PARTIAL
            break
        node = child_at(m, node, p[i])
    return found


cdef i32 child_at(SpecialMatcher m, i32 node, u8 byte) noexcept nogil:
    """The node below `node` for `byte`, or -1."""
    cdef i32 child = m.nodes[node].child
    while child >= 0 and m.nodes[child].byte < byte:
        child = m.nodes[child].sibling
    return child if child >= 0 and m.nodes[child].byte == byte else -1


cdef size_t common_start(bytes one, bytes other):
    """How many bytes they begin with are the same."""
    cdef size_t i = 0, size = min(len(one), len(other))
    cdef const char* a = one
    cdef const char* b = other
    while i < size and a[i] == b[i]:
        i += 1
    return i


cdef int plant(SpecialMatcher m, list strings) except -1:
    """Make the trie of (bytes, (which, is disallowed)), which are sorted by their bytes.

    So each one shares a path with the one before it, and the nodes below a node come in order.
    """
    cdef size_t total = 0, shared, depth
    cdef i32 node = 0, i
    cdef i32* path = <i32*>malloc((m.longest + 1) * sizeof(i32))   # of the string before
    cdef bytes text, before = b""
    cdef const u8* p
    for text, _ in strings:
        total += len(text) - common_start(before, text)
        before = text
    m.nodes = <TrieNode*>malloc((total + 1) * sizeof(TrieNode))
    if m.nodes == NULL or path == NULL or total > 0x7FFFFFFF:
        free(path)
        raise MemoryError("no memory for the special tokens")
    for i in range(256):
        m.roots[i] = -1
    before = b""
    for text, (which, is_disallowed) in strings:
        p = <const u8*><const char*>text
        shared = common_start(before, text)
        for depth in range(shared, len(text)):
            m.nodes[node].byte = p[depth]
            m.nodes[node].is_disallowed = False
            m.nodes[node].which = m.nodes[node].child = m.nodes[node].sibling = -1
            if depth == 0:
                m.roots[p[0]] = node
            elif depth == shared and <size_t>len(before) > shared:
                m.nodes[path[depth]].sibling = node
            else:
                m.nodes[path[depth - 1]].child = node
            path[depth] = node
            node += 1
        m.nodes[node - 1].which = which
        m.nodes[node - 1].is_disallowed = is_disallowed
        before = text
    free(path)
    m.single = m.second = -1
    if strings and strings[0][0][0] == strings[len(strings) - 1][0][0]:       # in order: so are all between them
        m.single = strings[0][0][0]
        node = m.roots[m.single]
        i = m.nodes[node].child
        if (i >= 0 and m.nodes[i].sibling < 0 and m.nodes[node].which < 0
                and not m.nodes[node].is_disallowed):
            m.second = m.nodes[i].byte
    return 0


cdef object list_finds(SpecialMatcher m, const u8* p, size_t size, Py_ssize_t length,
                       Py_ssize_t first, bint final):
    """`SpecialMatcher.finds` in UTF-8 of `length` characters."""
    cdef Found found
    cdef bint is_ascii = <size_t>length == size
    cdef size_t begin = first if is_ascii else skip_characters(p, size, first)
    cdef Py_ssize_t start = first, end
    cdef list result = []
    while True:
        if size - begin >= RELEASE_FROM:
            with nogil:
                found = m.find(p, begin, size, final)
        else:
            found = m.find(p, begin, size, final)
        if found.kind == NOTHING:
            return length, result
        start += found.start - begin if is_ascii else count_characters(p, begin, found.start)
        if found.kind == PARTIAL:
            return start, result
        end = start + (found.end - found.start if is_ascii else
                       count_characters(p, found.start, found.end))
        result.append((start, end, -1 if found.kind == DISALLOWED else found.which))
        if found.kind == DISALLOWED:
            return end, result
        start, begin = end, found.end


cdef size_t count_characters(const u8* p, size_t start, size_t end) noexcept nogil:
    """Of UTF-8 that is well-formed, but for surrogates."""
    cdef size_t i, count = 0
    for i in range(start, end):
        count += (p[i] & 0xC0) != 0x80
    return count


cdef size_t skip_characters(const u8* p, size_t size, size_t count) noexcept nogil:
    """Where character number `count` begins."""
    cdef size_t i = 0
    while i < size:
        if (p[i] & 0xC0) != 0x80:
            if count == 0:
                break
            count -= 1
        i += 1
    return i
